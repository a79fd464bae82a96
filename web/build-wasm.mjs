// Builds crates/wasm and its JavaScript into web/build. What it needs (the WebAssembly target, web/bindgen) it builds or tells.
import { execFileSync } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const web = dirname(fileURLToPath(import.meta.url));
const root = dirname(web);
const target = process.env.CARGO_TARGET_DIR ?? join(root, "target");
const run = (program, args, cwd = root) => execFileSync(program, args, { cwd, stdio: "inherit" });
const quiet = (program, args) => {
  try {
    return execFileSync(program, args, { cwd: root, stdio: ["ignore", "pipe", "ignore"] }).toString();
  } catch {
    return "";
  }
};

const triple = "wasm32-unknown-unknown";
if (quiet("rustup", ["--version"]) && !quiet("rustup", ["target", "list", "--installed"]).includes(triple)) {
  run("rustup", ["target", "add", triple]);
}
run("cargo", ["build", "--locked", "--profile", "web", "--target", triple, "-p", "meshpace-wasm"]);
run("cargo", ["build", "--locked", "--quiet", "--target-dir", join(target, "bindgen")], join(web, "bindgen"));
run(join(target, "bindgen", "debug", "meshpace-bindgen"), [join(target, triple, "web", "meshpace_wasm.wasm"), join(web, "build")]);
