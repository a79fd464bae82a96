// Builds crates/wasm and its JavaScript into web/build. What it needs (the WebAssembly target, web/bindgen) it builds or tells.
import { execFileSync } from "node:child_process";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const web = dirname(fileURLToPath(import.meta.url));
const root = dirname(web);
const target = process.env.CARGO_TARGET_DIR ?? join(root, "target");
const run = (program, args, cwd = root, env = {}) => execFileSync(program, args, { cwd, stdio: "inherit", env: { ...process.env, ...env } });
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
// Where this machine keeps sources is in no message of a panic: the module is the same from every machine. The last prefix that fits is taken.
const prefixes = { [root]: ".", [process.env.CARGO_HOME ?? join(homedir(), ".cargo")]: "cargo", [quiet("rustc", ["--print", "sysroot"]).trim()]: "rust" };
const flags = Object.entries(prefixes).map(([from, to]) => `--remap-path-prefix=${from}=${to}`);
run("cargo", ["build", "--locked", "--profile", "web", "--target", triple, "-p", "meshpace-wasm"], root, { CARGO_ENCODED_RUSTFLAGS: flags.join("\x1f") });
run("cargo", ["build", "--locked", "--quiet", "--target-dir", join(target, "bindgen")], join(web, "bindgen"));
run(join(target, "bindgen", "debug", "meshpace-bindgen"), [join(target, triple, "web", "meshpace_wasm.wasm"), join(web, "build")]);
