// How fast the committed WebAssembly runs a scenario without drawing: `node speed.mjs FILE [SECONDS]`. Processor time, not the clock's.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const dist = join(dirname(dirname(fileURLToPath(import.meta.url))), "dist");
const { default: init, Scenario } = await import(join(dist, "meshpace.js"));
await init({ module_or_path: readFileSync(join(dist, "meshpace.wasm")) });
const [, , file, seconds = "200"] = process.argv;
const scenario = new Scenario(file, readFileSync(file, "utf8"));
scenario.read([]);
for (const part of ["first", "second"]) {
  const player = scenario.play(0, 1);
  const before = process.cpuUsage();
  player.advance(Number(seconds), false);
  const { user, system } = process.cpuUsage(before);
  const took = (user + system) / 1e6;
  console.log(`${part} run: ${took.toFixed(3)} s for ${player.frames()} frames, ${((took / player.frames()) * 1e6).toFixed(2)} us a frame`);
}
