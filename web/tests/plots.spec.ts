// Plots, air time, pinned nodes, colours and labels of the page, against the recording that the command makes of the same run.
import { expect, test } from "@playwright/test";
import type { Locator, Page } from "@playwright/test";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Labels } from "../src/labels";
import { MESHPACE, exported, now, seek } from "./folder";

const CROSS = 'duration = "30 s"\n[topology]\nkind = "cross"\n[routing]\nprotocol = "aodv"\n[[flow]]\nfrom = 0\nto = 4\ntransport = "newreno"\n[[flow]]\nfrom = 5\nto = 8\ntransport = "tcp-ap"\n';

let place: string;
let address: string;
let close: () => void;
let lines: any[][];
test.beforeAll(async () => {
  ({ place, address, close } = await exported());
  const [file, recording] = [join(place, "cross.toml"), join(place, "cross.jsonl")];
  writeFileSync(file, CROSS);
  execFileSync(MESHPACE, ["run", file, "--format", "json", "--record", recording], { stdio: "ignore" });
  lines = readFileSync(recording, "utf8").trimEnd().split("\n").slice(1).map((line) => JSON.parse(line));
});
test.afterAll(() => close());

async function open(page: Page, text = CROSS): Promise<void> {
  await page.goto(address);
  await expect(page.locator("body")).toHaveAttribute("data-seeking", "false");
  await page.locator("#editor summary").click();
  await page.locator("#text").fill(text);
  await page.locator("#apply").click();
  await expect(page.locator("#message")).toBeHidden();
  await expect(page.locator("#stage figcaption")).toHaveCount(1);
}
const plot = (page: Page, id: string): Locator => page.locator(`#plots [data-plot=${id}]`);
const value = (page: Page, id: string): Locator => plot(page, id).locator(".now");
const range = async (page: Page): Promise<number[]> => ((await page.locator("#plots").getAttribute("data-range")) ?? "").split(" ").map(Number);
const of = (kind: string): any[][] => lines.filter((line) => line[0] === kind);
/** A line of a flow at a sample. */
const sample = (seconds: number, flow: number): any[] => of("flow").find((line) => line[1] === seconds * 1e9 && line[2] === flow)!;

test("every plot has what was recorded", async ({ page }) => {
  await open(page);
  await seek(page, 20);
  const goodput = [0, 1].map((flow) => (((sample(20, flow)[3] - sample(18, flow)[3]) * 8) / 2 / 1e3).toFixed(0));
  await expect(value(page, "goodput")).toHaveText(goodput.join(", "));
  await expect(value(page, "window")).toHaveText([0, 1].map((flow) => sample(20, flow)[7].toFixed(1)).join(", "));
  // Of data that arrived in these 2 s, from when it was sent.
  const sent = new Map(of("sent").filter((line) => line[5] === "data").map((line) => [line[3], line[1]]));
  const delay = [0, 1].map((flow) => {
    const took = of("arrived").filter((line) => line[4] === flow && line[1] > 18e9 && line[1] <= 20e9 && sent.has(line[3])).map((line) => line[1] - sent.get(line[3]));
    return took.length ? (took.reduce((a, b) => a + b, 0) / took.length / 1e6).toFixed(0) : "–";
  });
  expect(delay.some((one) => one !== "–")).toBe(true);
  await expect(value(page, "delay")).toHaveText(delay.join(", "));
  const queued = new Map<number, number>();
  of("queue").filter((line) => line[1] <= 20e9).forEach((line) => queued.set(line[2], line[3]));
  await expect(value(page, "queue")).toHaveText(String([...queued.values()].reduce((a, b) => a + b, 0)));
  // The mean of the samples is between the least and the greatest mean of a tenth of a second.
  const rtt = ((await value(page, "rtt").textContent()) ?? "").split(", ").map(Number);
  for (const flow of [0, 1]) {
    const means = of("flow").filter((line) => line[2] === flow && line[1] > 18e9 && line[1] <= 20e9 && line[9] !== null).map((line) => line[9] / 1e6);
    expect(Number.isFinite(rtt[flow])).toBe(means.length > 0);
    if (!means.length) continue;
    expect(rtt[flow]).toBeGreaterThanOrEqual(Math.min(...means) - 0.5);
    expect(rtt[flow]).toBeLessThanOrEqual(Math.max(...means) + 0.5);
  }
  expect(rtt.some(Number.isFinite)).toBe(true);
});

test("the pointer reads all plots, dragging zooms, a double click goes back", async ({ page }) => {
  await page.setViewportSize({ width: 1280, height: 2400 });
  await open(page);
  await seek(page, 20);
  expect(await range(page)).toEqual([0, 20]);
  const over = plot(page, "goodput").locator(".u-over");
  const box = (await over.boundingBox())!;
  await page.mouse.move(box.x + box.width / 2, box.y + 40);
  await expect(value(page, "goodput")).toHaveText(/^(9\.[89]|10\.\d) s: /);
  const at = ((await value(page, "goodput").textContent()) ?? "").split(" s")[0];
  for (const id of ["rtt", "delay", "window"]) await expect(value(page, id)).toHaveText(new RegExp(`^${at} s: `));
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.75, box.y + 40, { steps: 4 });
  await page.mouse.up();
  await expect.poll(async () => Math.abs((await range(page))[0] - 10)).toBeLessThan(0.5);
  const [from, to] = await range(page);
  expect(Math.abs(to - 15)).toBeLessThan(0.5);
  // All segments of that stretch, and no others.
  const sent = of("sent").filter((line) => line[4] === 0 && line[5] === "data" && line[2] === 0 && line[1] >= from * 1e9 && line[1] <= to * 1e9).length;
  expect(((await plot(page, "sequence").getAttribute("data-counts")) ?? "").split(" ")[0]).toBe(String(sent));
  expect(sent).toBeGreaterThan(0);
  await over.dblclick();
  await expect.poll(() => range(page)).toEqual([0, 20]);
  await page.locator("[name=span]").selectOption("10");
  await expect.poll(() => range(page)).toEqual([10, 20]);
});

test("the time-sequence graph has the segments of its flow, and those that were sent again", async ({ page }) => {
  await open(page);
  await seek(page, 30);
  for (const flow of [0, 1]) {
    await page.locator("[name=sequence]").selectOption({ label: `flow ${flow}` });
    const [sent, again] = ((await plot(page, "sequence").getAttribute("data-counts")) ?? "").split(" ").map(Number);
    const recorded = of("sent").filter((line) => line[4] === flow && line[5] === "data" && line[1] >= 28e9).length;
    expect(sent, `flow ${flow}`).toBe(recorded);
    expect(again).toBe(sample(30, flow)[5] - sample(28, flow)[5]);
  }
});

test("air time by link is that of the frames", async ({ page }) => {
  await open(page);
  await seek(page, 20);
  const shares = new Map<string, number>();
  for (const [, at, , from, to, kind, , air] of of("frame")) {
    if (at > 20e9) continue;
    const link = to === null ? `${from} to all` : kind === "cts" || kind === "ack" ? `${to}→${from}` : `${from}→${to}`;
    shares.set(link, (shares.get(link) ?? 0) + air / 20e9);
  }
  const rows = page.locator("#air tbody tr");
  await expect(rows).toHaveCount(12);
  const least = [...shares.values()].sort((a, b) => b - a)[11];
  const told = await rows.evaluateAll((rows) => rows.map((row) => [(row as HTMLElement).dataset.link, row.querySelector("td")?.textContent]));
  for (const [link, text] of told) {
    const share = shares.get(link!)!;
    expect(text, link).toBe(`${(100 * share).toFixed(1)} %`);
    expect(share, `${link} is one of the twelve`).toBeGreaterThanOrEqual(least);
  }
  const sizes = told.map(([, text]) => parseFloat(text!));
  expect(sizes).toEqual([...sizes].sort((a, b) => b - a));
});

test("a node is pinned by a click or by Enter: its state and its queue stay", async ({ page }) => {
  await open(page);
  await seek(page, 20);
  const canvas = page.locator("#stage canvas");
  await canvas.focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await expect(page.locator(".pinned li")).toHaveText([/^Node 1 · queue \d+ of 50/]);
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await page.locator("h1").click();
  await expect(page.locator(".pinned li")).toHaveText([/^Node 1 · /, /^Node 2 · /]);
  await expect(page.locator("#plots-head .lines")).toContainText("queue of node 2");
  const queues = [1, 2].map((node) => of("queue").findLast((line) => line[1] <= 20e9 && line[2] === node)?.[3] ?? 0);
  await expect(value(page, "queue")).toHaveText(queues.join(", "));
  // The middle of the cross is the middle of its drawing.
  const box = (await canvas.boundingBox())!;
  await canvas.click({ position: { x: box.width / 2, y: box.height / 2 } });
  await expect(page.locator("body")).toHaveAttribute("data-pins", "1");
});

test("a data frame has the colour of its flow", async ({ page }) => {
  await open(page);
  const [first, second] = ["0,86,163", "179,71,0"];
  const pixels = (): Promise<Record<string, number>> =>
    page.locator("#stage canvas").evaluate((canvas: HTMLCanvasElement) => {
      const { data } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height);
      const count: Record<string, number> = {};
      for (let i = 0; i < data.length; i += 4) {
        if (data[i + 3] === 255) count[data.subarray(i, i + 3).join(",")] = (count[data.subarray(i, i + 3).join(",")] ?? 0) + 1;
      }
      return count;
    });
  const frames = of("frame");
  for (const [flow, mine, other] of [[0, first, second], [1, second, first]] as const) {
    // On the air while nothing of the other flow is, nor was just before.
    const alone = frames.find(
      ([, at, , , , , , air, , , body]) =>
        at > 5e9 && body?.[3] === "data" && body[2] === flow && !frames.some(([, start, , , , , , long]: any[], place) => start < at + air / 2 + 1e4 && start + long > at - 1e6 && frames[place][10]?.[2] === 1 - flow),
    )!;
    await seek(page, (alone[1] + alone[7] / 2) / 1e9);
    await expect.poll(async () => (await pixels())[mine] ?? 0, `flow ${flow}`).toBeGreaterThan(100);
    expect((await pixels())[other] ?? 0).toBe(0);
  }
});

test("of more flows than can be told apart the page says which are plotted", async ({ page }) => {
  await open(page, CROSS.replace('transport = "tcp-ap"', 'transport = "tcp-ap"\ncount = 11'));
  await expect(page.locator("#plots-head")).toContainText("flows 0 to 7; flows 8 to 11 are in the table");
  await open(page);
  await expect(page.locator("#plots-head")).not.toContainText("The plots have");
});

test("the menu has CUBIC, and nothing that the command does not know", async ({ page }) => {
  await open(page);
  const names = await page.locator("[name=transport] option").evaluateAll((options) => options.map((option) => (option as HTMLOptionElement).value).filter((name) => name !== ""));
  expect(names).toContain("cubic");
  const file = join(place, "names.toml");
  // UDP has no rate of its own: the page asks for one.
  for (const name of names.filter((name) => name !== "udp")) {
    writeFileSync(file, CROSS.replaceAll(/transport = ".*"/g, `transport = "${name}"`).replace("30 s", "3 s"));
    execFileSync(MESHPACE, ["run", file, "--format", "json"], { stdio: "ignore" });
  }
});

test("the next event is found in time that was not played, and there is none behind the last", async ({ page }) => {
  await open(page);
  await page.locator("h1").click();
  await page.keyboard.press("]");
  // The mesh begins without routes: the first event is a link given up, or a timeout, whichever comes first.
  await expect(page.locator("#mark")).toContainText(/^\d+\.\d{3} s: /);
  await expect(page.locator("body")).toHaveAttribute("data-seeking", "false");
  const at = await now(page);
  const failed = of("lost").find((line) => line[3] === "link-failure")![1] / 1e9;
  expect(at).toBeLessThanOrEqual(failed + 2e-3);
  expect(at).toBeGreaterThan(1);
  // From any time on it is the next failure, or something before.
  await seek(page, 12);
  await page.keyboard.press("]");
  await expect.poll(() => now(page)).toBeGreaterThan(12);
  const next = of("lost").find((line) => line[3] === "link-failure" && line[1] > 12.01e9)![1] / 1e9;
  expect(await now(page)).toBeLessThanOrEqual(next + 2e-3);
  await page.keyboard.press("End");
  await expect.poll(() => now(page)).toBe(30);
  await page.keyboard.press("]");
  await expect(page.locator("#mark")).toHaveText("no event from here to the end");
  expect(await now(page)).toBe(30);
});

test("labels never cover each other, a node, or the edge", () => {
  let seed = 7;
  const random = (): number => ((seed = (seed * 48271) % 2147483647) / 2147483647);
  let placed = 0;
  for (let round = 0; round < 200; round++) {
    const labels = new Labels();
    const boxes: number[][] = [];
    for (let node = 0; node < 8; node++) {
      const [x, y] = [random() * 280, random() * 180];
      labels.take(x, y, 20, 20);
      boxes.push([x, y, x + 20, y + 20]);
    }
    for (let text = 0; text < 8; text++) {
      const [x, y] = [random() * 300, random() * 200];
      const at = labels.place([-18, 18, -34, 34].map((dy) => [x, y + dy]), 60, 15, [300, 200]);
      if (!at) continue;
      placed++;
      const box = [at[0] - 30, at[1] - 7.5, at[0] + 30, at[1] + 7.5];
      expect(box[0] >= 0 && box[1] >= 0 && box[2] <= 300 && box[3] <= 200).toBe(true);
      for (const other of boxes) expect(box[0] >= other[2] || other[0] >= box[2] || box[1] >= other[3] || other[1] >= box[3]).toBe(true);
      boxes.push(box);
    }
  }
  expect(placed).toBeGreaterThan(300);
});
