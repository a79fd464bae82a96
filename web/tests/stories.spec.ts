// The guided stories: in every step there is something to be seen, and what its text says is true of it. What happened is read from the recording that the
// command makes of the same run.
import { expect, test } from "@playwright/test";
import type { Page } from "@playwright/test";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { MESHPACE, exported, holdTime, now, number, pass, seek } from "./folder";

const SHOTS = process.env.MESHPACE_SHOTS;
/** Metres, of the radio that the scenarios have by default (two-ray ground). */
const [DECODED, SENSED] = [250, 550];

let place: string;
let address: string;
let close: () => void;
test.beforeAll(async () => ({ place, address, close } = await exported()));
test.afterAll(() => close());

type Frame = { at: number; end: number; from: number; to: number | null; kind: string; body: any[] | null; got: number[]; collided: boolean };
type Packet = { at: number; node: number; flow: number; what: string };
type Recorded = {
  record: Record<string, any>;
  places: [number, number][];
  frames: Frame[];
  collisions: { at: number; frame: Frame }[];
  sent: Packet[];
  arrived: Packet[];
  failures: { at: number; node: number; next: number }[];
  timeouts: { at: number; flow: number }[];
  routes: { at: number; flow: number; nodes: number[] | null }[];
  moved: boolean;
};

const made = new Map<string, Recorded>();
/** What the command records of a scenario under a transport. */
function recorded(story: string, text: string, transport: string): Recorded {
  const key = `${story} ${transport}`;
  const known = made.get(key);
  if (known) return known;
  const [file, lines] = [join(place, `${story}.toml`), join(place, `${story}-${transport}.jsonl`)];
  writeFileSync(file, text);
  const record = JSON.parse(execFileSync(MESHPACE, ["run", file, "--set", `flow.transport="${transport}"`, "--format", "json", "--record", lines], { stdio: ["ignore", "pipe", "ignore"] }).toString());
  const run: Recorded = { record, places: [], frames: [], collisions: [], sent: [], arrived: [], failures: [], timeouts: [], routes: [], moved: false };
  const kinds = new Map<number, string>();
  const timeouts = new Map<number, number>();
  for (const line of readFileSync(lines, "utf8").trimEnd().split("\n").map((line) => JSON.parse(line))) {
    if (!Array.isArray(line)) {
      run.places = line.nodes;
      continue;
    }
    const at = line[1] / 1e9;
    if (line[0] === "frame") run.frames.push({ at, end: at + line[7] / 1e9, from: line[3], to: line[4], kind: line[5], body: line[10], got: [], collided: false });
    if (line[0] === "got") run.frames[line[2]].got.push(line[3]);
    if (line[0] === "collision") {
      run.frames[line[2]].collided = true;
      run.collisions.push({ at, frame: run.frames[line[2]] });
    }
    if (line[0] === "sent") {
      kinds.set(line[3], line[5]);
      run.sent.push({ at, node: line[2], flow: line[4], what: line[5] });
    }
    if (line[0] === "arrived") run.arrived.push({ at, node: line[2], flow: line[4], what: kinds.get(line[3]) ?? "" });
    // The neighbour is the one that it tried last.
    if (line[0] === "lost" && line[3] === "link-failure") run.failures.push({ at, node: line[2], next: run.frames.findLast(({ kind, from }) => kind === "rts" && from === line[2])!.to as number });
    if (line[0] === "route") run.routes.push({ at, flow: line[2], nodes: line[3] });
    if (line[0] === "place") run.moved = true;
    if (line[0] === "flow" && line[6] > (timeouts.get(line[2]) ?? 0)) {
      timeouts.set(line[2], line[6]);
      run.timeouts.push({ at, flow: line[2] });
    }
  }
  made.set(key, run);
  return run;
}
/** The record of the whole run, changed by `--set` arguments. */
function run(story: string, text: string, ...sets: string[]): Record<string, any> {
  const file = join(place, `${story}-changed.toml`);
  writeFileSync(file, text);
  return JSON.parse(execFileSync(MESHPACE, ["run", file, "--format", "json", ...sets.flatMap((set) => ["--set", set])], { stdio: ["ignore", "pipe", "ignore"] }).toString());
}

type Shown = { from: number; to: number };
const within = <T extends { at: number }>(list: T[], { from, to }: Shown): T[] => list.filter(({ at }) => at >= from && at <= to);
const distance = (run: Recorded, a: number, b: number): number => Math.hypot(run.places[a][0] - run.places[b][0], run.places[a][1] - run.places[b][1]);
const overlap = (a: Frame, b: Frame): boolean => a.at < b.end && b.at < a.end;
const routing = (what: string) => (frame: Frame): boolean => frame.body?.[0] === "routing" && frame.body[1] === what;
const timeouts = (record: Record<string, any>): number => record.flows.reduce((sum: number, flow: { timeouts: number }) => sum + flow.timeouts, 0);
/** When data of a flow arrived; the silences between two arrivals that are longer than so many seconds. */
const arrivals = (run: Recorded, flow: number): number[] => run.arrived.filter((packet) => packet.flow === flow && packet.what === "data").map(({ at }) => at);
function silences(run: Recorded, flow: number, least: number): Shown[] {
  const times = arrivals(run, flow);
  return times.slice(1).map((to, before) => ({ from: times[before], to })).filter(({ from, to }) => to - from > least);
}
const times = (list: Packet[], flow: number, what: string): number[] => list.filter((packet) => packet.flow === flow && packet.what === what).map(({ at }) => at);
const gaps = (times: number[]): number[] => times.slice(1).map((at, before) => at - times[before]);

/** The last seven RTS of a node to a neighbour before it gave that up; none of them was answered. */
function sevenAttempts(run: Recorded, { at, node, next }: { at: number; node: number; next: number }): Frame[] {
  const attempts = run.frames.filter((frame) => frame.kind === "rts" && frame.from === node && frame.to === next && frame.at < at).slice(-7);
  expect(attempts.length).toBe(7);
  for (const attempt of attempts) {
    const answer = run.frames.find((frame) => frame.kind === "cts" && frame.to === node && frame.at > attempt.end && frame.at < attempt.end + 1e-4);
    expect(answer?.got ?? [], "no CTS came back").not.toContain(node);
  }
  return attempts;
}
/** A frame is lost to a station three hops from its sender: hidden from it, sensed by the addressee, too far to decode the addressee's CTS. */
function hasHidden(run: Recorded, shown: Shown): void {
  const lost = within(run.collisions, shown);
  expect(lost.length).toBeGreaterThan(0);
  const hidden = lost.filter(({ frame }) =>
    run.frames.some((other) => {
      const far = distance(run, other.from, frame.to as number);
      return other !== frame && overlap(other, frame) && distance(run, other.from, frame.from) > SENSED && Math.abs(other.from - frame.from) === 3 && far > DECODED && far <= SENSED;
    }),
  );
  expect(hidden.length).toBe(lost.length);
}

type Step = { title: string; plays: boolean; transports: string[]; claim: (runs: Recorded[], shown: Shown, page: Page, text: string) => Promise<void> | void };
const CLAIMS: Record<string, Step[]> = {
  collapse: [
    {
      title: "A window is a burst",
      plays: true,
      transports: ["newreno"],
      claim: ([run], shown) => {
        const data = within(run.frames, shown).filter(({ body }) => body?.[0] === "packet" && body[3] === "data" && body[2] === 0);
        expect(data.some((one) => data.some((other) => overlap(one, other) && one.from !== other.from && one.body?.[1] !== other.body?.[1]))).toBe(true);
      },
    },
    { title: "A hidden terminal", plays: true, transports: ["newreno"], claim: ([run], shown) => hasHidden(run, shown) },
    {
      title: "What it costs",
      plays: true,
      transports: ["newreno"],
      claim: ([run], { from, to }) => {
        const before = silences(run, 0, 3.5).filter((silence) => silence.to < to);
        expect(before.length, "it fell to nothing and came back, twice").toBeGreaterThanOrEqual(2);
        expect(before.at(-1)?.to).toBeGreaterThan(from);
        const failures = run.failures.filter(({ at }) => at < to);
        sevenAttempts(run, failures.at(-1)!);
        expect(run.timeouts.some(({ at }) => at < to)).toBe(true);
        expect(run.routes.some(({ at, nodes }) => at < to && nodes === null)).toBe(true);
      },
    },
    {
      title: "Now change it",
      plays: false,
      transports: ["newreno"],
      claim: ([{ record, ...recorded }], shown, _, text) => {
        hasHidden({ record, ...recorded }, shown);
        const two = run("collapse", text, "topology.hops=2");
        expect([two.mac_drops, timeouts(two)]).toEqual([0, 0]);
        expect(record.mac_drops).toBeGreaterThan(0);
        const [ap, train] = ["tcp-ap", "quiet-train"].map((transport) => run("collapse", text, `flow.transport="${transport}"`).aggregate_goodput_bps);
        expect(record.aggregate_goodput_bps).toBeLessThan(ap);
        expect(ap).toBeLessThan(train);
      },
    },
  ],
  routes: [
    {
      title: "Nobody moves",
      plays: true,
      transports: ["newreno"],
      claim: ([run], shown) => {
        expect(run.moved).toBe(false);
        const frames = within(run.frames, shown);
        const asked = new Set(frames.filter(routing("request")).map(({ from, to }) => (expect(to).toBeNull(), from)));
        expect([...asked].sort(), "every node repeats it, but the one that is asked for").toEqual([0, 1, 2, 3, 4, 5, 6]);
        const told = frames.filter(routing("reply")).filter((frame) => frame.got.includes(frame.to as number));
        expect(told.map(({ from, to }) => [from, to]), "hop by hop").toEqual([[7, 6], [6, 5], [5, 4], [4, 3], [3, 2], [2, 1], [1, 0]]);
      },
    },
    {
      title: "A collision looks like a break",
      plays: true,
      transports: ["newreno"],
      claim: ([run], shown) => {
        const failed = within(run.failures, shown).find((failure) => sevenAttempts(run, failure)[0].at >= shown.from);
        expect(failed).toBeDefined();
        const { at, node, next } = failed!;
        expect(run.frames.some((frame) => frame.at > at && frame.from === next && frame.got.includes(node)), "the neighbour is still there").toBe(true);
        const after = within(run.frames, { from: at, to: shown.to });
        const error = after.find(routing("error"));
        expect(error?.from, "it says so").toBe(node);
        expect(after.some((frame) => routing("request")(frame) && frame.from === 0 && frame.at > error!.at), "the source searches").toBe(true);
      },
    },
    {
      title: "Group by group",
      plays: true,
      transports: ["newreno"],
      claim: ([run], shown) => {
        const failed = within(run.failures, shown)[0];
        const timeout = within(run.timeouts, { from: failed.at, to: shown.to }).find(({ flow }) => silences(run, flow, 1).some(({ from, to }) => to > failed.at && from < shown.to));
        expect(timeout, "a timeout, and nothing delivered for a second").toBeDefined();
        expect(within(run.routes, { from: shown.from, to: shown.to + 0.1 }).some(({ nodes }) => nodes === null), "a route lost").toBe(true);
        const between = within(run.frames, { from: failed.at, to: timeout!.at });
        expect(between.some((frame) => routing("request")(frame) && frame.from === 0), "a search").toBe(true);
        expect(between.some((frame) => routing("reply")(frame) && frame.to === 0), "without an answer").toBe(false);
      },
    },
    {
      title: "Now change it",
      plays: false,
      transports: ["newreno"],
      claim: ([{ record, failures }], shown, _, text) => {
        expect(within(failures, shown).length).toBeGreaterThan(0);
        const still = run("routes", text, 'routing.protocol="static"');
        expect(still.collisions).toBeGreaterThan(record.collisions);
        expect(still.route_errors).toBe(0);
        expect(still.aggregate_goodput_bps).toBeGreaterThan(2 * record.aggregate_goodput_bps);
        const paced = run("routes", text, 'flow.transport="tcp-ap"');
        expect(paced.collisions).toBeGreaterThan(record.collisions / 2);
        expect(paced.mac_drops).toBeLessThan(record.mac_drops / 5);
      },
    },
  ],
  pacing: [
    {
      title: "The same mesh twice",
      plays: true,
      transports: ["newreno", "tcp-ap"],
      claim: ([window, paced], shown) => {
        const spacing = (run: Recorded): number[][] => [0, 1].map((flow) => gaps(times(within(run.sent, shown), flow, "data")));
        expect(Math.min(...spacing(window).flat()), "several at once").toBeLessThan(1e-3);
        for (const each of spacing(paced)) {
          expect(each.length).toBeGreaterThan(1);
          expect(Math.min(...each), "time between any two").toBeGreaterThan(0.01);
        }
      },
    },
    {
      title: "Who gets the channel",
      plays: true,
      transports: ["newreno", "tcp-ap"],
      claim: async ([window, paced], shown, page) => {
        const long = [0, 1].map((flow) => silences(window, flow, 4).filter(({ from }) => from < shown.from));
        expect(long.every((each) => each.length > 0), "in turns").toBe(true);
        const starved = long.map((each) => each.some(({ from, to }) => from < shown.from && to >= shown.to - 0.1));
        expect(starved.filter(Boolean).length, "one of them now").toBe(1);
        for (const flow of [0, 1]) expect(silences(paced, flow, 2).filter(({ from, to }) => from < shown.to && to > shown.from)).toEqual([]);
        await seek(page, shown.to);
        const indices = page.locator("#plots [data-plot=jain] .now");
        await expect(indices).toHaveText(/^0\.50 \| (1\.00|0\.9\d)$/);
      },
    },
    {
      title: "Quiet trains",
      plays: true,
      transports: ["tcp-ap", "quiet-train"],
      claim: async ([each, trains], shown, page, text) => {
        const [source, inside] = [0, { from: shown.from + 0.06, to: shown.to - 0.06 }];
        const count = (run: Recorded): [number, number] => [
          within(run.sent, inside).filter(({ flow, what }) => flow === 0 && what === "data").length,
          within(run.arrived, inside).filter(({ flow, node, what }) => flow === 0 && node === source && what === "ack").length,
        ];
        const [segments, acks] = count(trains);
        expect(segments).toBeGreaterThanOrEqual(7);
        expect(acks, "one for the train, at its end").toBe(0);
        const [others, theirs] = count(each);
        expect(2 * theirs, "TCP-AP's receiver answers every segment").toBeGreaterThanOrEqual(others);
        await seek(page, shown.to);
        const newreno = recorded("pacing", text, "newreno");
        for (const [field, counted] of [["collisions", newreno.collisions], ["mac_drops", newreno.failures]] as const) {
          const [a, b] = [await number(page, field, "A"), await number(page, field, "B")];
          expect(b, field).toBeLessThan(a);
          expect(a, field).toBeLessThan(counted.filter(({ at }) => at < shown.to).length);
        }
      },
    },
    { title: "Now change it", plays: false, transports: ["tcp-ap", "quiet-train"], claim: () => {} },
  ],
};

for (const [id, steps] of Object.entries(CLAIMS)) {
  test(`the story "${id}": every step shows what it says`, async ({ page }) => {
    await holdTime(page);
    await page.goto(address);
    await page.locator(`#stories [data-story=${id}]`).click();
    const story = page.locator("#story");
    for (const [place_, { title, plays, transports, claim }] of steps.entries()) {
      await expect(story).toHaveAttribute("data-step", String(place_ + 1));
      await expect(story.locator("h2")).toContainText(title);
      await expect(page.locator("body")).toHaveAttribute("data-seeking", "false");
      await expect(page.locator("#message"), `${title}: it happens`).toBeHidden();
      const captions = transports.map((transport, run) => `${transports.length > 1 ? "AB"[run] + ": " : ""}${transport}, seed 1`);
      await expect(page.locator("#stage figcaption")).toHaveText(captions);
      const [from, to] = ((await story.getAttribute("data-scene")) ?? "").split(" ").map(Number);
      await expect(page.locator("#play")).toHaveText(plays ? "Pause" : "Play");
      // From the first moment of the scene on, and not beyond its last.
      expect(await now(page)).toBeCloseTo(from, 6);
      if (plays) {
        await pass(page, 0.25);
        const at = await now(page);
        expect(at).toBeGreaterThan(from);
        expect(at).toBeLessThanOrEqual(to);
        await page.locator("#play").click();
        await expect(page.locator("#play")).toHaveText("Play");
      }
      const text = await page.locator("#text").inputValue();
      const runs = transports.map((transport) => recorded(id, text, transport));
      for (const [place, run] of runs.entries()) {
        const frames = within(run.frames, { from, to });
        expect(frames.length, `${title}: frames of ${transports[place]}`).toBeGreaterThan(1);
        // One of them is drawn while it is on the air.
        const middle = frames.find(({ end }) => end < to) ?? frames[0];
        await seek(page, (middle.at + middle.end) / 2);
        await expect(page.locator("#stage canvas").nth(place)).not.toHaveAttribute("data-frames", "0");
        if (SHOTS) await page.screenshot({ path: join(SHOTS, `story-${id}-${place_ + 1}${"ab"[place]}.png`), fullPage: true });
      }
      await claim(runs, { from, to }, page, text);
      if (place_ < steps.length - 1) await story.getByRole("button", { name: "On" }).click();
    }
    await expect(story.getByRole("button", { name: "On" })).toBeDisabled();
    // The change that the last text names.
    await page.locator("[name=transport]").selectOption(id === "pacing" ? "newreno" : "tcp-ap");
    await expect(page.locator("#stage figcaption").first()).toContainText(id === "pacing" ? "newreno" : "tcp-ap");
  });
}

test("a scene that is played stops at its end, and playing goes on from there", async ({ page }) => {
  await holdTime(page);
  await page.goto(`${address}#collapse`);
  const story = page.locator("#story");
  await expect(story).toHaveAttribute("data-story", "collapse");
  await expect(page.locator("body")).toHaveAttribute("data-seeking", "false");
  await expect(page.locator("#play")).toHaveText("Pause");
  await page.locator("#speed").selectOption({ label: "1/20" });
  const [from, to] = ((await story.getAttribute("data-scene")) ?? "").split(" ").map(Number);
  await pass(page, 20 * (to - from) + 1);
  await expect(page.locator("#play")).toHaveText("Play");
  expect(await now(page)).toBeCloseTo(to, 6);
  await page.locator("#play").click();
  await pass(page, 1);
  expect(await now(page)).toBeCloseTo(to + 1 / 20, 3);
});
