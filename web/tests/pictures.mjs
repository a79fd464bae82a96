// What a picture costs: `node tests/pictures.mjs FOLDER FILE [SPEED]` plays a scenario for 10 s in headless Chromium, from an exported folder. Tells the page's
// own count of pictures and the processor time of the page's main thread for each, which does not depend on what else the machine does.
import { chromium } from "@playwright/test";
import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const [, , folder, file, speed = "6"] = process.argv;
const given = JSON.stringify({ source: { name: file, text: readFileSync(file, "utf8"), files: {}, sets: [], point: 0, seed: 1 } });
const types = { js: "text/javascript", css: "text/css", wasm: "application/wasm", html: "text/html", json: "application/json" };
const server = createServer((request, answer) => {
  const name = request.url === "/" ? "index.html" : request.url.slice(1);
  answer.setHeader("Content-Type", types[name.split(".").pop()] ?? "text/plain");
  answer.end(name === "scenario.json" ? given : readFileSync(join(folder, name)));
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
const browser = await chromium.launch({ executablePath: process.env.MESHPACE_CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
await page.goto(`http://127.0.0.1:${server.address().port}/`);
await page.waitForSelector("#stage canvas");
await page.selectOption("#speed", speed);
const session = await page.context().newCDPSession(page);
await session.send("Performance.enable", { timeDomain: "threadTicks" });
await page.evaluate(() => {
  globalThis.count = 0;
  const tick = () => (globalThis.count++, requestAnimationFrame(tick));
  requestAnimationFrame(tick);
});
await page.click("#play");
await page.waitForTimeout(3000);
const read = async () => {
  const { metrics } = await session.send("Performance.getMetrics");
  const task = metrics.find((one) => one.name === "TaskDuration").value;
  return { task, ...(await page.evaluate(() => ({ count: globalThis.count, now: Number(document.body.dataset.now), at: performance.now() }))) };
};
const before = await read();
await page.waitForTimeout(10000);
const after = await read();
const pictures = after.count - before.count;
const wall = (after.at - before.at) / 1e3;
console.log(
  `${(pictures / wall).toFixed(1)} pictures/s, ${((after.now - before.now) / wall).toFixed(2)} simulated seconds per second, ` +
    `${(((after.task - before.task) / pictures) * 1e3).toFixed(2)} ms of the main thread a picture`,
);
await browser.close();
server.close();
