// What the build leaves beside the page: the module's JavaScript for other programs, the revision of the model, and an empty scenario.
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
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
const uplot = readFileSync(join(web, "node_modules", "uplot", "LICENSE"), "utf8");
writeFileSync(join(dist, "licences.txt"), `This page is of meshpace (MIT OR Apache-2.0) and contains uPlot:\n\n${uplot}`);
writeFileSync(join(dist, "scenario.json"), '{"source":null}\n');
console.log(`model ${modelRevision()}; meshpace.wasm is ${gzipSync(module, { level: 9 }).length} bytes in gzip`);
