// The exported folder in a browser, from a plain file server: what is played, changed and read off is what `meshpace run` records.
// MESHPACE is the command; MESHPACE_SHOTS, if set, is where pictures go.
import AxeBuilder from "@axe-core/playwright";
import { expect, test } from "@playwright/test";
import type { Page, Route } from "@playwright/test";
import { execFileSync, spawn } from "node:child_process";
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { deflateRawSync } from "node:zlib";
import { MESHPACE, exported, holdTime, now, number, pass, seek } from "./folder";

const SHOTS = process.env.MESHPACE_SHOTS;

let place: string;
let address: string;
let close: () => void;
let foreign: string[] = [];

test.beforeAll(async () => ({ place, address, close } = await exported()));
test.afterAll(() => close());

test.beforeEach(async ({ page }) => {
  foreign = [];
  page.on("request", (request) => {
    if (!request.url().startsWith(address) && !request.url().startsWith("data:")) foreign.push(request.url());
  });
  page.on("pageerror", (error) => foreign.push(`error: ${error.message}`));
});
test.afterEach(() => expect(foreign, "no request elsewhere, no error").toEqual([]));

/** The record of one run by the command. */
function record(text: string, seed: number, sets: string[], until: number): Record<string, any> {
  const file = join(place, "scenario.toml");
  writeFileSync(file, text);
  const changed = [...sets, `duration="${until} s"`, "sweep={}"].flatMap((set) => ["--set", set]);
  const line = execFileSync(MESHPACE, ["run", file, "--format", "json", "--seed", String(seed), ...changed], { stdio: ["ignore", "pipe", "ignore"] });
  return JSON.parse(line.toString());
}
const open = async (page: Page, hash = ""): Promise<void> => {
  await page.goto(address + hash);
  await expect(page.locator("body")).toHaveAttribute("data-seeking", "false");
};
/** Waits until the page shows this, by the captions of its meshes. A list: one caption alone is refused at once while two runs are still there. */
const shows = (page: Page, ...captions: (string | RegExp)[]): Promise<void> => expect(page.locator("#stage figcaption")).toHaveText(captions);
/** The numbers of the page and those of the record that must agree. */
async function agrees(page: Page, run: string, expected: Record<string, any>): Promise<void> {
  for (const field of ["aggregate_goodput_bps", "jain", "jain_2s", "retransmission_index", "frames", "collisions", "mac_drops"]) {
    expect(await number(page, field, run), `${field} of ${run}`).toBe(expected[field]);
  }
  const timeouts = expected.flows.reduce((sum: number, flow: { timeouts: number }) => sum + flow.timeouts, 0);
  expect(await number(page, "timeouts", run)).toBe(timeouts);
  const fingerprints = (await page.locator("#numbers").getAttribute("data-fingerprints"))?.split(" ");
  expect(fingerprints?.["AB".indexOf(run)]).toBe(expected.fingerprint);
}

test("the cross with NewReno and TCP-AP side by side, and its numbers", async ({ page }) => {
  await open(page);
  await seek(page, 40);
  const text = await page.locator("#text").inputValue();
  await agrees(page, "A", record(text, 1, ['flow.transport="newreno"'], 40));
  await agrees(page, "B", record(text, 1, ['flow.transport="tcp-ap"'], 40));
  // Back and on again is the same.
  await seek(page, 21.5);
  await seek(page, 40);
  await agrees(page, "B", record(text, 1, ['flow.transport="tcp-ap"'], 40));
  // Another seed.
  await page.locator("[name=seed]").fill("5");
  await page.locator("[name=seed]").blur();
  await expect(page.locator("#stage figcaption").first()).toContainText("seed 5");
  await seek(page, 30);
  await agrees(page, "A", record(text, 5, ['flow.transport="newreno"'], 30));
});

test("a flow that starved is named above the numbers", async ({ page }) => {
  const text = readFileSync("../scenarios/examples/long-and-short.toml", "utf8");
  await open(page);
  await page.locator("#editor summary").click();
  await page.locator("#text").fill(text);
  await page.locator("#apply").click();
  await page.locator("[name=point]").selectOption({ label: "flow.transport = quiet-train" });
  await shows(page, "quiet-train, seed 1");
  const alarm = page.locator("#numbers .starved");
  await seek(page, 25);
  await expect(alarm, "too early to say so").toBeHidden();
  await seek(page, 60);
  const [long, short] = record(text, 1, ['flow.transport="quiet-train"'], 60).flows;
  expect(long.delivered_bytes, "as the command has it").toBe(0);
  expect(short.delivered_bytes).toBeGreaterThan(0);
  await expect(alarm).toHaveText("STARVED: flow 0 (node 0 to node 6) delivered nothing");
});

test("a flow without a path is told apart from one that starved", async ({ page }) => {
  await open(page);
  await page.locator("#editor summary").click();
  const positions = '[["0 m", "0 m"], ["200 m", "0 m"], ["5000 m", "0 m"]]';
  await page.locator("#text").fill(`duration = "20 s"\n[topology]\nkind = "nodes"\nallow_partition = true\npositions = ${positions}\n[[flow]]\nfrom = 0\nto = 1\ntransport = "newreno"\n[[flow]]\nfrom = 1\nto = 2\ntransport = "newreno"\n`);
  await page.locator("#apply").click();
  await shows(page, "newreno, seed 1");
  await seek(page, 20);
  await expect(page.locator("#numbers .no-path")).toHaveText("NO PATH: flow 1 (node 1 to node 2) delivered nothing");
  await expect(page.locator("#numbers .starved")).toBeHidden();
});

test("flows are called by the names that the scenario gives them", async ({ page }) => {
  await open(page);
  await page.locator("#editor summary").click();
  await page.locator("#text").fill('duration = "20 s"\n[topology]\nkind = "cross"\n[[flow]]\nname = "upload"\n[[flow]]\n');
  await page.locator("#apply").click();
  await expect(page.locator("#lines")).toContainText("upload: node 0 to node 4");
  await expect(page.locator("#lines")).toContainText("flow 1: node 5 to node 8");
  await expect(page.locator("#plots .lines").first()).toContainText("upload: node 0 to node 4");
  await expect(page.locator("[name=sequence] option").first()).toHaveText("upload");
});

test("every transport can be chosen", async ({ page }) => {
  await open(page);
  const lines = execFileSync(MESHPACE, ["transports", "--format", "json"]).toString().trim().split("\n");
  const names = lines.map((line) => JSON.parse(line).name as string);
  expect(names.length).toBeGreaterThan(20);
  for (const list of ["transport", "compare"]) {
    const offered = await page.locator(`[name=${list}] option`).evaluateAll((options) => options.map((option) => (option as HTMLOptionElement).value));
    expect(names.filter((name) => !offered.includes(name)), list).toEqual([]);
    expect(new Set(offered).size, "each once").toBe(offered.length);
  }
});

test("steps go from frame to frame, and back", async ({ page }) => {
  await open(page);
  await seek(page, 22);
  await page.locator("h1").click();
  const seen: [number, string | null][] = [];
  for (let i = 0; i < 6; i++) {
    await page.keyboard.press("ArrowRight");
    await expect.poll(() => now(page)).toBeGreaterThan(i ? seen[i - 1][0] : 22);
    seen.push([await now(page), await page.locator("#numbers").getAttribute("data-fingerprints")]);
  }
  for (let i = 4; i >= 0; i--) {
    await page.keyboard.press("ArrowLeft");
    await expect.poll(() => now(page)).toBe(seen[i][0]);
    expect(await page.locator("#numbers").getAttribute("data-fingerprints")).toBe(seen[i][1]);
  }
  // In a mesh the same keys go from node to node.
  const at = await now(page);
  await page.locator("#stage canvas").first().focus();
  await page.keyboard.press("ArrowRight");
  await expect(page.locator(".told").first()).toContainText(/^Node 1 · queue \d+ of 50 · NAV: .* · .*backoff/);
  expect(await now(page)).toBe(at);
});

test("a sweep: its points, and what it varies changed by hand", async ({ page }) => {
  await open(page);
  await page.locator("#editor summary").click();
  const text = 'duration = "30 s"\n[topology]\nkind = "chain"\n[[flow]]\n[sweep]\n"topology.hops" = [2, 3]\n"flow.transport" = ["newreno", "tcp-ap"]\n';
  await page.locator("#text").fill(text);
  await page.locator("#apply").click();
  await page.locator("[name=point]").selectOption({ label: "topology.hops = 3, flow.transport = tcp-ap" });
  await shows(page, "tcp-ap, seed 1");
  await page.locator("[name=compare]").selectOption("dcc");
  await shows(page, "A: tcp-ap, seed 1", "B: dcc, seed 1");
  await seek(page, 10);
  for (const [run, transport] of [["A", "tcp-ap"], ["B", "dcc"]]) {
    await agrees(page, run, record(text, 1, ["topology.hops=3", `flow.transport="${transport}"`], 10));
  }
});

test("playing moves on, events can be gone to, a link brings the view back", async ({ page, context }) => {
  await holdTime(page);
  await open(page, "#collapse");
  await expect(page.locator("#play")).toHaveText("Pause");
  const begun = await now(page);
  await pass(page, 1);
  expect(await now(page)).toBeGreaterThan(begun);
  await page.locator("#play").click();
  await seek(page, 30);
  await page.locator("#mark-back").click();
  await expect(page.locator("#mark")).toContainText(/timeout|gives up|route/);
  await expect(page.locator("body")).toHaveAttribute("data-seeking", "false");
  const at = await now(page);
  expect(at).toBeLessThan(30);
  await page.locator("[name=hops]").fill("4");
  await page.locator("[name=hops]").blur();
  await page.locator("#link").click();
  await expect(page.locator("#linked")).not.toHaveText("");
  const link = page.url();
  const other = await context.newPage();
  await other.goto(link);
  await expect.poll(() => now(other)).toBeCloseTo(at, 3);
  await expect(other.locator("#stage canvas")).toHaveCount(1);
  expect(await other.locator("#numbers").getAttribute("data-fingerprints")).toBe(await page.locator("#numbers").getAttribute("data-fingerprints"));
});

test("hops, routing and load are changed in place", async ({ page }) => {
  // On a slow machine the scene would be over before the click, which then would begin it again.
  await holdTime(page);
  await open(page, "#collapse");
  await page.locator("#play").click();
  const text = await page.locator("#text").inputValue();
  await page.locator("[name=hops]").fill("3");
  await page.locator("[name=hops]").blur();
  await page.locator("[name=routing]").selectOption("static");
  await page.locator("[name=load]").selectOption("2");
  await seek(page, 26);
  await agrees(page, "A", record(text, 1, ['flow.transport="newreno"', "topology.hops=3", 'routing.protocol="static"', "flow.count=2"], 26));
});

test("a wrong scenario and a damaged link are told with line and key", async ({ page }) => {
  await open(page);
  await page.locator("#editor summary").click();
  await page.locator("#text").fill("[topology]\nkind = 'chain'\nhop = 3\n[[flow]]\n");
  await page.locator("#apply").click();
  await expect(page.locator("#message")).toContainText("toml:3");
  await expect(page.locator("#message")).toContainText("hop");
  // The button is far below; what went wrong is seen without scrolling.
  await page.locator("#apply").scrollIntoViewIfNeeded();
  await expect(page.locator("#apply")).toBeInViewport();
  await expect(page.locator("#message")).toBeInViewport({ ratio: 1 });
  await page.setViewportSize({ width: 390, height: 800 });
  await page.locator("#apply").scrollIntoViewIfNeeded();
  await expect(page.locator("#message")).toBeInViewport({ ratio: 1 });
  await page.locator("#text").fill("[topology]\nkind = 'grid'\nrows = 40\ncolumns = 40\n[[flow]]\nfrom = 0\nto = 9\n");
  await page.locator("#apply").click();
  await expect(page.locator("#message")).toContainText("1600 nodes");
  await expect(page.locator("#stage canvas")).toHaveCount(2);
  await page.goto(address + "#v1.broken");
  await expect(page.locator("#message")).toContainText("damaged");
});

test("without WebAssembly there is a message", async ({ page }) => {
  await page.addInitScript(() => Reflect.deleteProperty(globalThis, "WebAssembly"));
  await page.goto(address);
  await expect(page.locator("#message")).toContainText("WebAssembly");
});

test("the command's own server, with what it forbids", async ({ page }) => {
  const file = join(place, "own.toml");
  writeFileSync(file, 'title = "Mine"\nduration = "30 s"\n[topology]\nkind = "chain"\nhops = 3\n[[flow]]\n');
  const served = spawn(MESHPACE, ["view", file, "--seed", "3"], { stdio: ["ignore", "pipe", "ignore"] });
  const outside = address;
  try {
    address = await new Promise<string>((ready) => served.stdout.once("data", (line: Buffer) => ready(line.toString().trim())));
    page.on("console", (line) => line.type() === "error" && foreign.push(line.text()));
    await open(page);
    await expect(page).toHaveTitle(/Mine/);
    await seek(page, 12);
    await agrees(page, "A", record(await page.locator("#text").inputValue(), 3, [], 12));
  } finally {
    address = outside;
    served.kill();
  }
});

/** A recording of 8 s: a frame of 2 ms each second; the fourth is lost. 1000 bytes arrive with each of the others. */
function byHand(seed = 9): string[] {
  const at = (seconds: number): number => Math.round(seconds * 1e9);
  const lines: unknown[] = [
    { stream: "meshpace", format: 1, model: 0, scenario: "By hand", seed, point: {}, duration_ns: at(8), warmup_ns: at(2), sample_ns: at(1), nodes: [[0, 0], [200, 0]], links: [[0, 1]], flows: [{ id: 0, from: 0, to: 1, transport: "udp" }] },
  ];
  let delivered = 0;
  for (let second = 1; second < 8; second++) {
    const lost = second === 4;
    lines.push(["frame", at(second - 0.5), second - 1, 0, 1, "data", 1060, at(0.002), 0, false, ["packet", second, 0, "data", 0]]);
    lines.push(lost ? ["collision", at(second - 0.498), second - 1, 1] : ["got", at(second - 0.498), second - 1, 1, -60]);
    delivered += lost ? 0 : 1000;
    lines.push(["flow", at(second), 0, delivered, second, 0, lost ? 1 : 0, 3, null, null, null]);
  }
  lines.push(["end", at(8), 7, "0123456789abcdef"]);
  return lines.map((line) => JSON.stringify(line) + "\n");
}

/** Chooses a file that is a recording by hand. */
const choose = (page: Page, seed = 9): Promise<void> =>
  page.locator("#open").setInputFiles({ name: `run-${seed}.jsonl`, mimeType: "application/jsonl", buffer: Buffer.from(byHand(seed).join("")) });
const recorded = (seed: number): string => `udp, seed ${seed}, recorded`;

test("a recorded run is played and sought", async ({ page }) => {
  await open(page);
  await choose(page);
  await shows(page, recorded(9));
  await seek(page, 7);
  // Five of the seconds 3 to 7, less the lost one: 4000 bytes in 5 s.
  expect(await number(page, "aggregate_goodput_bps")).toBe((4000 * 8) / 5);
  expect(await number(page, "frames")).toBe(7);
  expect(await number(page, "collisions")).toBe(1);
  await page.locator("h1").click();
  await page.keyboard.press("ArrowLeft");
  await expect.poll(() => now(page)).toBe(6.5);
  await page.keyboard.press("[");
  await expect(page.locator("#mark")).toHaveText("4.000 s: timeout of flow 0");
});

test("what is played to its end has the numbers of its end", async ({ page }) => {
  await open(page);
  await choose(page);
  await shows(page, recorded(9));
  // It is over in the first picture.
  await page.locator("#speed").selectOption({ label: "1000 ×" });
  await page.locator("#play").click();
  await expect.poll(() => now(page)).toBe(8);
  await expect(page.locator("#play")).toHaveText("Play");
  await expect.poll(() => number(page, "frames")).toBe(7);
});

/** Holds the page's requests of a pattern until they are let go; `asked` is when the first of them comes. */
async function holdRequests(page: Page, pattern: string, answer: (route: Route) => Promise<void>): Promise<{ asked: Promise<void>; letGo: () => void }> {
  let [came, letGo] = [(): void => {}, (): void => {}];
  const asked = new Promise<void>((done) => (came = done));
  const free = new Promise<void>((done) => (letGo = done));
  await page.route(pattern, async (route) => {
    came();
    await free;
    // The page may have given it up.
    await answer(route).catch(() => {});
  });
  return { asked, letGo };
}

/** Holds whatever the page reads at once (files, links that are packed and unpacked) from now on; each goes on when it is let go, counted from 0. */
async function holdReads(page: Page): Promise<{ held: (count: number) => Promise<void>; letGo: (read: number) => Promise<void> }> {
  await page.addInitScript(() => {
    const reads: (() => void)[] = ((globalThis as any).reads = []);
    for (const kind of [Blob, Response]) {
      const read = kind.prototype.arrayBuffer;
      kind.prototype.arrayBuffer = async function (this: Blob & Response) {
        await new Promise<void>((done) => reads.push(done));
        return read.call(this);
      };
    }
  });
  return {
    held: (count) => expect.poll(() => page.evaluate(() => (globalThis as any).reads.length)).toBe(count),
    letGo: (read) => page.evaluate((read) => (globalThis as any).reads[read](), read),
  };
}

/** Waits until nothing is being opened any more. */
const settled = (page: Page): Promise<void> => expect(page.locator("body")).toHaveAttribute("data-loading", "0");
const ready = (page: Page): Promise<void> => expect(page.locator("body")).toHaveAttribute("data-model", /\d+/);

/** What is behind the # of a link, as docs/viewer.md has it. */
function link(seed: number): string {
  const text = '[topology]\nkind = "chain"\nhops = 2\n[[flow]]\ntransport = "newreno"\n';
  const view = { source: { name: "linked.toml", text, files: {}, sets: [], point: 0, seed }, compare: null, at: 0 };
  return `#v1.${deflateRawSync(JSON.stringify(view)).toString("base64url")}`;
}
const follow = (page: Page, hash: string): Promise<void> => page.evaluate((hash) => void (location.hash = hash), hash);

const scenario = (json: object | null) => (route: Route) => (json ? route.fulfill({ json }) : route.fulfill({ status: 404 }));
const recording = (route: Route): Promise<void> => route.fulfill({ body: byHand(5).join("") });
for (const [what, pattern, answer, given] of [
  ["a story", "**/scenario.json", scenario(null), undefined],
  ["an error", "**/scenario.json", scenario({ source: null, error: "line 3: wrong" }), undefined],
  ["a recording", "**/recording.jsonl", recording, { source: null, recording: "served.jsonl" }],
  ["a recording that is followed", "**/recording.jsonl?*", recording, { source: null, recording: "served.jsonl", live: true }],
] as const) {
  test(`a file that is opened while the page begins with ${what} stays`, async ({ page }) => {
    if (given) await page.route("**/scenario.json", scenario(given));
    const { asked, letGo } = await holdRequests(page, pattern, answer);
    await page.goto(address);
    await ready(page);
    await asked;
    await choose(page);
    await shows(page, recorded(9));
    // It can be used at once.
    await seek(page, 7);
    letGo();
    await settled(page);
    await shows(page, recorded(9));
    await expect(page.locator("#message")).toBeHidden();
    await expect(page.locator("#story")).toBeHidden();
  });
}

for (const [name, order] of [
  ["in their order", [0, 1]],
  ["the other way about", [1, 0]],
] as const) {
  test(`of two files the second stays, read ${name}`, async ({ page }) => {
    const { held, letGo } = await holdReads(page);
    await open(page);
    for (const seed of [0, 1]) {
      await choose(page, seed);
      await held(seed + 1);
    }
    for (const read of order) await letGo(read);
    await settled(page);
    await shows(page, recorded(1));
  });

  test(`of two links the second stays, unpacked ${name}`, async ({ page }) => {
    const { held, letGo } = await holdReads(page);
    await open(page);
    for (const seed of [0, 1]) {
      await follow(page, link(seed));
      await held(seed + 1);
    }
    for (const read of order) await letGo(read);
    await settled(page);
    await shows(page, "newreno, seed 1");
    // The story that was there is not beside it.
    await expect(page.locator("#story")).toBeHidden();
  });
}

test("a link that is followed while the page begins stays", async ({ page }) => {
  const { asked, letGo } = await holdRequests(page, "**/scenario.json", scenario(null));
  await page.goto(address);
  await ready(page);
  await asked;
  await follow(page, link(7));
  await shows(page, "newreno, seed 7");
  letGo();
  await settled(page);
  await shows(page, "newreno, seed 7");
});

test("a story and a scenario that are opened while a file is read stay", async ({ page }) => {
  const { held, letGo } = await holdReads(page);
  await open(page);
  await choose(page);
  await held(1);
  await page.locator("#stories [data-story=collapse]").click();
  await shows(page, /newreno/);
  await letGo(0);
  await settled(page);
  await shows(page, /newreno/);
  await expect(page.locator("#story")).toHaveAttribute("data-story", "collapse");
  await choose(page, 10);
  await held(2);
  await page.locator("#editor summary").click();
  await page.locator("#text").fill('[topology]\nkind = "chain"\nhops = 2\n[[flow]]\ntransport = "dcc"\n');
  await page.locator("#apply").click();
  await shows(page, "dcc, seed 1");
  await letGo(1);
  await settled(page);
  await shows(page, "dcc, seed 1");
});

test("a link that is made does not take the address of what is opened meanwhile", async ({ page, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const { held, letGo } = await holdReads(page);
  await open(page);
  await page.locator("#link").click();
  await held(1);
  await follow(page, "#collapse");
  await shows(page, /newreno/);
  await letGo(0);
  await expect(page.locator("#linked")).toHaveText("copied");
  expect(new URL(page.url()).hash).toBe("#collapse");
});

test("a file that cannot be played leaves the recording that is followed as it was", async ({ page }) => {
  const lines = byHand(5);
  let written = lines.slice(0, 13).join("");
  await page.route("**/scenario.json", scenario({ source: null, recording: "served.jsonl", live: true }));
  await page.route("**/recording.jsonl?*", (route) => route.fulfill({ body: written.slice(Number(new URL(route.request().url()).searchParams.get("from"))) }));
  await open(page);
  await shows(page, recorded(5));
  await page.locator("#open").setInputFiles({ name: "wrong.jsonl", mimeType: "application/jsonl", buffer: Buffer.from("{}\n") });
  await expect(page.locator("#message")).toContainText("no recording of meshpace");
  written = lines.join("");
  await expect(page.locator("#numbers")).toHaveAttribute("data-fingerprints", "0123456789abcdef");
  await seek(page, 8);
  expect(await number(page, "frames")).toBe(7);
  await shows(page, recorded(5));
});

test("a recording is followed while it is written, and when the connection was broken", async ({ page, context }) => {
  const lines = byHand();
  const file = join(place, "growing.jsonl");
  // Four seconds, and a flow that begins later.
  const begin = JSON.stringify(["begin", 6.5e9, 1, 1, 0, "tcp 5 to 6"]) + "\n";
  writeFileSync(file, lines.slice(0, 13).join(""));
  // It grows whenever it is asked for.
  await page.route("**/recording.jsonl?*", async (route) => {
    appendFileSync(file, JSON.stringify(["queue", 4e9, 0, 1]) + "\n");
    await route.continue();
  });
  const served = spawn(MESHPACE, ["view", file], { stdio: ["ignore", "pipe", "ignore"] });
  const outside = address;
  try {
    address = await new Promise<string>((ready) => served.stdout.once("data", (line: Buffer) => ready(line.toString().trim())));
    await open(page);
    await shows(page, recorded(9));
    // It plays to the end of what is there, and waits.
    await expect.poll(() => now(page)).toBe(4);
    await expect(page.locator("#play")).toHaveText("Pause");
    await expect(page.locator("#message")).toBeHidden();
    await page.unrouteAll({ behavior: "wait" });
    appendFileSync(file, lines[13].slice(0, 9));
    await context.setOffline(true);
    await expect(page.locator("#message")).toContainText("no connection");
    appendFileSync(file, lines[13].slice(9) + lines.slice(14, 20).join("") + begin);
    await context.setOffline(false);
    await expect(page.locator("#message")).toBeHidden();
    await expect.poll(() => now(page)).toBeGreaterThan(4);
    await shows(page, "udp, tcp 5 to 6, seed 9, recorded");
    appendFileSync(file, lines.slice(20).join(""));
    await expect.poll(() => now(page)).toBe(8);
    await expect(page.locator("#play")).toHaveText("Play");
    await expect.poll(() => number(page, "frames")).toBe(7);
    expect(await page.locator("#numbers").getAttribute("data-fingerprints")).toBe("0123456789abcdef");
  } finally {
    address = outside;
    served.kill();
  }
});

test("a recording that does not grow plays from its beginning, and its page says so", async ({ page }) => {
  const lines = byHand();
  const file = join(place, "killed.jsonl");
  // Four seconds and half a line.
  writeFileSync(file, lines.slice(0, 13).join("") + lines[13].slice(0, 9));
  const served = spawn(MESHPACE, ["view", file], { stdio: ["ignore", "pipe", "ignore"] });
  const outside = address;
  try {
    address = await new Promise<string>((ready) => served.stdout.once("data", (line: Buffer) => ready(line.toString().trim())));
    await open(page);
    await expect(page.locator("#message")).toContainText("does not grow: its run was interrupted, or waits");
    expect(await now(page)).toBe(0);
    await expect(page.locator("#play")).toHaveText("Play");
    // It goes on, and another one takes its place.
    appendFileSync(file, lines[13].slice(9) + lines.slice(14, 20).join(""));
    await expect(page.locator("#message")).toBeHidden();
    await seek(page, 6);
    writeFileSync(file, lines[0]);
    await expect(page.locator("#message")).toContainText("was replaced by another recording");
  } finally {
    address = outside;
    served.kill();
  }
});

test("a complete recording that comes in pieces plays from its beginning", async ({ page }) => {
  const lines = byHand();
  const more = (JSON.stringify(["queue", 1e9, 0, 1]) + "\n").repeat(120_000);
  const content = Buffer.from(lines.slice(0, 4).join("") + more + lines.slice(4).join(""));
  const piece = 5 << 18;
  expect(content.length).toBeGreaterThan(2 * piece);
  const asked: number[] = [];
  await page.route("**/scenario.json", (route) => route.fulfill({ json: { source: null, recording: "large.jsonl", live: true } }));
  await page.route("**/recording.jsonl?*", (route) => {
    const from = Number(new URL(route.request().url()).searchParams.get("from"));
    asked.push(from);
    return route.fulfill({ body: content.subarray(from, from + piece) });
  });
  await open(page);
  await shows(page, recorded(9));
  await expect(page.locator("#play")).toHaveText("Play");
  expect(await now(page)).toBe(0);
  await expect(page.locator("#message")).toBeHidden();
  await seek(page, 8);
  expect(await number(page, "frames")).toBe(7);
  expect(asked.length).toBe(3);
});

test("a run recorded by the command has the numbers of its record", async ({ page }) => {
  const [file, lines] = [join(place, "recorded.toml"), join(place, "recorded.jsonl")];
  writeFileSync(file, 'duration = "20 s"\nwarmup = "4 s"\n[topology]\nkind = "cross"\n[[flow]]\nfrom = 0\nto = 4\n[[flow]]\nfrom = 5\nto = 8\n');
  const line = execFileSync(MESHPACE, ["run", file, "--seed", "4", "--format", "json", "--record", lines], { stdio: ["ignore", "pipe", "ignore"] });
  const expected = JSON.parse(line.toString());
  await open(page);
  await page.locator("#open").setInputFiles(lines);
  await shows(page, /seed 4, recorded/);
  await seek(page, 20);
  for (const field of ["aggregate_goodput_bps", "jain", "jain_2s", "frames", "collisions"]) expect(await number(page, field), field).toBe(expected[field]);
  expect(await page.locator("#numbers").getAttribute("data-fingerprints")).toBe(expected.fingerprint);
});

for (const width of [1280, 390]) {
  for (const colorScheme of ["light", "dark"] as const) {
    test(`at ${width} px, ${colorScheme}: no serious fault of accessibility, nothing beyond the edge`, async ({ browser }) => {
      const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, reducedMotion: "reduce" });
      const page = await context.newPage();
      await holdTime(page);
      await open(page, "#pacing");
      await page.locator("#play").click();
      await seek(page, 24.003);
      await page.locator("#legend summary").click();
      await page.locator("#editor summary").click();
      const found = await new AxeBuilder({ page }).analyze();
      const serious = found.violations.filter((one) => one.impact === "serious" || one.impact === "critical");
      expect(serious.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).join(" ")}`)).toEqual([]);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
      if (SHOTS) {
        await page.locator("#editor summary").click();
        await page.locator("#legend summary").click();
        await page.setViewportSize({ width, height: await page.evaluate(() => document.documentElement.scrollHeight) });
        await page.waitForTimeout(1500);
        await page.screenshot({ path: join(SHOTS, `view-${width}-${colorScheme}.png`), fullPage: true });
      }
      await context.close();
    });
  }
}
