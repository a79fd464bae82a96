// What a picture costs: `node tests/pictures.mjs FOLDER FILE [SPEED]` plays a scenario in headless Chromium, from an exported folder, with pictures asked for
// as if there were 60 a second, however busy the machine is. Tells the processor time of the page's main thread for each: 60 a second leave 16.7 ms.
import { open } from "./serve.mjs";

const [, , folder, file, speed = "6"] = process.argv;
const { page, close } = await open(folder, file, () => {
  let [waiting, now] = [[], performance.now()];
  globalThis.requestAnimationFrame = (call) => waiting.push(call);
  globalThis.picture = (later) => {
    now += later;
    waiting.splice(0).forEach((call) => call(now));
  };
});
await page.selectOption("#speed", speed);
await page.evaluate(() => document.getElementById("play").click());
const session = await page.context().newCDPSession(page);
await session.send("Performance.enable", { timeDomain: "threadTicks" });
const busy = async () => (await session.send("Performance.getMetrics")).metrics.find((one) => one.name === "TaskDuration").value;
const show = (pictures) =>
  page.evaluate(async (pictures) => {
    for (let i = 0; i < pictures; i++) {
      globalThis.picture(1000 / 60);
      await new Promise((done) => setTimeout(done));
    }
    return Number(document.body.dataset.now);
  }, pictures);
// The machine's compilers have seen everything after this.
const begun = await show(300);
const before = await busy();
const ended = await show(600);
const cost = ((await busy()) - before) / 600;
console.log(`${(cost * 1e3).toFixed(2)} ms of the main thread a picture, ${((ended - begun) / 10).toFixed(2)} simulated seconds per second at 60 pictures a second`);
await close();
