// The exported folder behind a plain file server, and what tests do with its page. MESHPACE is the command.
import { expect } from "@playwright/test";
import type { Page } from "@playwright/test";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";

export const MESHPACE = process.env.MESHPACE ?? "../target/debug/meshpace";
const TYPES: Record<string, string> = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm", ".json": "application/json" };

/** A directory for files of tests, and the address of the page. */
export async function exported(): Promise<{ place: string; address: string; close: () => void }> {
  const place = mkdtempSync(join(tmpdir(), "meshpace-view-"));
  const folder = join(place, "page");
  execFileSync(MESHPACE, ["view", "--export", folder], { stdio: "ignore" });
  const server = createServer((request, answer) => {
    const path = new URL(request.url ?? "/", "http://here").pathname.replace(/^\/below\//, "");
    try {
      const content = readFileSync(join(folder, path === "" ? "index.html" : path));
      answer.writeHead(200, { "Content-Type": TYPES[extname(path)] ?? "text/html" }).end(content);
    } catch {
      answer.writeHead(404).end();
    }
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  const bound = server.address();
  // Not at the top of the server: every address must be relative.
  const address = `http://127.0.0.1:${typeof bound === "object" ? bound?.port : 0}/below/`;
  const close = (): void => {
    server.close();
    rmSync(place, { recursive: true });
  };
  return { place, address, close };
}

export const number = async (page: Page, field: string, run = "A"): Promise<number> =>
  Number(await page.locator(`[data-field=${field}][data-run=${run}]`).getAttribute("data-value"));
export const now = async (page: Page): Promise<number> => Number(await page.locator("body").getAttribute("data-now"));
export const seek = async (page: Page, to: number): Promise<void> => {
  await page.locator("#seek").evaluate((input: HTMLInputElement, value) => {
    input.max = String(Math.max(Number(input.max), value));
    input.step = "any";
    input.value = String(value);
    input.dispatchEvent(new Event("input", { bubbles: true }));
  }, to);
  await expect(page.locator("body")).toHaveAttribute("data-seeking", "false");
  await expect.poll(() => now(page)).toBeCloseTo(to, 6);
};

/** Takes the page's time into the test's hand, before it is opened: the page draws, computes and seeks as ever, but plays only for as long as `pass` lets it. */
export const holdTime = (page: Page): Promise<void> =>
  page.addInitScript(() => {
    const held = globalThis as unknown as { left: number };
    held.left = 0;
    const ask = globalThis.requestAnimationFrame.bind(globalThis);
    let now: number | null = null;
    globalThis.requestAnimationFrame = (draw) =>
      ask((real) => {
        now ??= real;
        // Twenty pictures a second.
        const step = Math.min(held.left, 50);
        held.left -= step;
        draw((now += step));
      });
  });
/** Lets so many seconds of the page's time pass, in however many of the machine's. */
export const pass = async (page: Page, seconds: number): Promise<void> => {
  await page.evaluate((left) => void ((globalThis as unknown as { left: number }).left += left), seconds * 1e3);
  await expect.poll(() => page.evaluate(() => (globalThis as unknown as { left: number }).left)).toBe(0);
};
