// How many pictures a second there are: `node tests/rate.mjs FOLDER FILE [SPEED] [SECONDS]` plays a scenario in headless Chromium and tells the page's own counter, and
// what a trace of the browser has: pictures that the page made, pictures that were shown, and how busy its threads were. `taskset -c 0` before it leaves it one core.
import { open } from "./serve.mjs";

const [, , folder, file, speed = "6", seconds = "10"] = process.argv;
const { browser, page, close } = await open(folder, file);
await page.selectOption("#speed", speed);
await page.evaluate(() => document.getElementById("play").click());
const state = () => page.evaluate(() => ({ ...document.body.dataset, told: document.getElementById("reached").textContent }));
const wait = (s) => new Promise((done) => setTimeout(done, s * 1e3));
// Compilers have seen everything after this.
await wait(8);
await browser.startTracing(page, { categories: ["devtools.timeline", "disabled-by-default-devtools.timeline.frame", "toplevel", "viz", "__metadata"] });
const begun = await state();
await wait(Number(seconds));
const ended = await state();
const trace = JSON.parse((await browser.stopTracing()).toString()).traceEvents;
console.log(`page: "${ended.told}", counter ${ended.pictures} pictures/s, ${((ended.now - begun.now) / seconds).toFixed(2)} simulated seconds per second`);
const names = new Map(trace.filter((event) => event.name === "thread_name").map((event) => [`${event.pid}/${event.tid}`, event.args.name]));
const made = trace.filter((event) => event.name === "FireAnimationFrame").map((event) => event.ts).sort((a, b) => a - b);
const span = (made.at(-1) - made[0]) / 1e6;
const gaps = made.slice(1).map((at, place) => (at - made[place]) / 1e3).sort((a, b) => a - b);
const quantile = (q) => gaps[Math.floor(q * (gaps.length - 1))].toFixed(1);
const shown = trace.filter((event) => event.name === "DrawFrame").length;
console.log(`trace: ${((made.length - 1) / span).toFixed(1)} pictures/s made, ${(shown / span).toFixed(1)} shown; ms between them: median ${quantile(0.5)}, 95 % ${quantile(0.95)}, longest ${quantile(1)}`);
const busy = new Map();
for (const event of trace) {
  if (event.ph !== "X" || !/RunTask/.test(event.name)) continue;
  const thread = names.get(`${event.pid}/${event.tid}`) ?? "?";
  busy.set(thread, (busy.get(thread) ?? 0) + (event.tdur ?? event.dur) / 1e6 / span);
}
for (const [thread, share] of [...busy].sort((a, b) => b[1] - a[1]).slice(0, 6)) console.log(`  ${thread}: busy ${(share * 100).toFixed(0)} %`);
const parts = new Map();
for (const event of trace) {
  if (event.ph !== "X" || names.get(`${event.pid}/${event.tid}`) !== "CrRendererMain" || /RunTask/.test(event.name)) continue;
  parts.set(event.name, (parts.get(event.name) ?? 0) + (event.dur ?? 0) / 1e3 / made.length);
}
for (const [part, ms] of [...parts].sort((a, b) => b[1] - a[1]).slice(0, 8)) console.log(`    ${part}: ${ms.toFixed(2)} ms a picture`);
await close();
