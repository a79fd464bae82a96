// Runs scenarios in the committed WebAssembly. Standard input: a JSON list of {name, text, files, point, seed, until};
// standard output: the size of the module in gzip, then a fingerprint for each.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const dist = join(dirname(dirname(fileURLToPath(import.meta.url))), "dist");
const { default: init, Scenario } = await import(join(dist, "meshpace.js"));
const module = readFileSync(join(dist, "meshpace.wasm"));
await init({ module_or_path: module });
console.log(gzipSync(module, { level: 9 }).length);
for (const { name, text, files, point, seed, until } of JSON.parse(readFileSync(0, "utf8"))) {
  const scenario = new Scenario(name, text);
  for (const [file, content] of Object.entries(files)) scenario.addFile(file, new TextEncoder().encode(content));
  scenario.read([]);
  const player = scenario.play(point, seed);
  // In steps, with and without somebody who looks.
  for (let part = 1; part <= 8; part++) player.advance((until * part) / 8, part % 2 === 0);
  console.log(player.fingerprint());
}
