// A plain file server for an exported folder, which begins with the scenario of FILE, and Chromium that has opened it.
import { chromium } from "@playwright/test";
import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const types = { js: "text/javascript", css: "text/css", wasm: "application/wasm", html: "text/html", json: "application/json" };

/** Opens the page; `prepare`, if given, runs in it before its own scripts. */
export async function open(folder, file, prepare) {
  const given = JSON.stringify({ source: { name: file, text: readFileSync(file, "utf8"), files: {}, sets: [], point: 0, seed: 1 } });
  const server = createServer((request, answer) => {
    const name = request.url === "/" ? "index.html" : request.url.slice(1);
    answer.setHeader("Content-Type", types[name.split(".").pop()] ?? "text/plain");
    answer.end(name === "scenario.json" ? given : readFileSync(join(folder, name)));
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  const browser = await chromium.launch({ executablePath: process.env.MESHPACE_CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  if (prepare) await page.addInitScript(prepare);
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  await page.waitForSelector("#stage canvas", { state: "attached" });
  const close = async () => {
    await browser.close();
    server.close();
  };
  return { browser, page, close };
}
