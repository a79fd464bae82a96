// What the build leaves beside the page: the module's JavaScript for other programs, the revision of the model, the hash of what the page was built from,
// and an empty scenario.
import { createHash } from "node:crypto";
import { copyFileSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const web = dirname(fileURLToPath(import.meta.url));
const dist = join(web, "dist");
copyFileSync(join(web, "build", "meshpace.js"), join(dist, "meshpace.js"));
const { default: init, modelRevision } = await import(join(dist, "meshpace.js"));
const module = readFileSync(join(dist, "meshpace.wasm"));
await init({ module_or_path: module });
writeFileSync(join(dist, "revision.json"), JSON.stringify({ model: modelRevision() }) + "\n");
// crates/wasm/tests/it/dist.rs computes the same: each path below the root, and what the file has, each ended by a zero byte, in the order of the paths.
const root = dirname(web);
const files = (folder, end) => readdirSync(join(root, folder)).filter((name) => name.endsWith(end)).map((name) => `${folder}/${name}`);
const sources = [
  ...["index.html", "package-lock.json", "tsconfig.json", "vite.config.ts", "build-wasm.mjs", "finish.mjs", "bindgen/Cargo.toml", "bindgen/Cargo.lock", "bindgen/src/main.rs"].map((name) => `web/${name}`),
  ...files("web/src", ""),
  "crates/wasm/Cargo.toml",
  ...files("crates/wasm/src", ".rs"),
].sort();
const hash = createHash("sha256");
for (const path of sources) hash.update(path).update("\0").update(readFileSync(join(root, path))).update("\0");
writeFileSync(join(dist, "sources.json"), JSON.stringify({ sha256: hash.digest("hex") }) + "\n");
const uplot = readFileSync(join(web, "node_modules", "uplot", "LICENSE"), "utf8");
writeFileSync(join(dist, "licences.txt"), `This page is of meshpace (MIT OR Apache-2.0) and contains uPlot:\n\n${uplot}`);
writeFileSync(join(dist, "scenario.json"), '{"source":null}\n');
console.log(`model ${modelRevision()}; meshpace.wasm is ${gzipSync(module, { level: 9 }).length} bytes in gzip`);
