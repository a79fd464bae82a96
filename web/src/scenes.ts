// Scenes of the stories: what a step speaks of is looked for in the run, so that it is there whatever the model does.
import { SAMPLE_HEAD, SAMPLE_PER_FLOW } from "./engine";
import type { Frame, Shown, Spot } from "./run";

/** The times between which there is something to be seen, seconds. */
export type Interval = { from: number; to: number };
/** Looks for it in the runs on the page; null if it does not happen. The runs may be left at any time. */
export type Scene = (runs: Shown[]) => Interval | null;
type Seen = { frames: Frame[]; spots: Spot[] };

/** As much at a time as a page keeps the frames of, seconds. */
const SLICE = 0.015;
/** What is looked at together: this, and as much before it, seconds. */
const CHUNK = 1;
/** Nothing delivered for so long is a silence, seconds. */
const SILENCE = 4;

const end = (frame: Frame): number => frame.start + frame.air;
const overlap = (a: Frame, b: Frame): boolean => a.start < end(b) && b.start < end(a);
const distance = (run: Shown, a: number, b: number): number => Math.hypot(run.place(a)[0] - run.place(b)[0], run.place(a)[1] - run.place(b)[1]);
const MARK = { timeout: 1, link: 2, lost: 3 };
const ROUTING = 3;

/** Brings a run to a time. */
function go(run: Shown, to: number): void {
  run.approach(to);
  run.hasten(to);
}

/** All frames and spots between two times. */
function watch(run: Shown, from: number, to: number): Seen {
  go(run, from);
  const frames = new Map<number, Frame>();
  const spots = new Set<Spot>();
  while (run.now < to && !run.over) {
    run.advance(Math.min(to, run.now + SLICE));
    run.frames.forEach((frame) => frame.start >= from && frames.set(frame.number, frame));
    run.spots.forEach((spot) => spot.at >= from && spots.add(spot));
  }
  return { frames: [...frames.values()], spots: [...spots] };
}

/** The first that `find` finds from `from` on, within `within` seconds. */
function first(run: Shown, from: number, within: number, find: (seen: Seen) => Interval | null): Interval | null {
  let before: Seen = { frames: [], spots: [] };
  for (let at = from; at < from + within && at < run.stage.duration_s; at += CHUNK) {
    const seen = watch(run, at, at + CHUNK);
    const found = find({ frames: [...before.frames, ...seen.frames], spots: [...before.spots, ...seen.spots] });
    if (found) return found;
    before = seen;
  }
  return null;
}

/** Bytes that a flow had delivered at each sample until the end of the run. */
function delivered(run: Shown): { at: number; bytes: number[] }[] {
  go(run, run.stage.duration_s);
  run.measure();
  const rows = [];
  for (let row = 0; row < run.samples.length; row += run.sampleWidth) {
    rows.push({ at: run.samples[row], bytes: run.stage.flows.map((_, flow) => run.samples[row + SAMPLE_HEAD + flow * SAMPLE_PER_FLOW]) });
  }
  return rows;
}
/** The silences of a flow: from the last bytes to the next ones, if that is long. */
function silences(run: Shown, flow: number, least: number): Interval[] {
  const found: Interval[] = [];
  let last = { at: 0, bytes: 0 };
  for (const { at, bytes } of delivered(run)) {
    if (bytes[flow] === last.bytes) continue;
    if (last.bytes > 0 && at - last.at > least) found.push({ from: last.at, to: at });
    last = { at, bytes: bytes[flow] };
  }
  return found;
}

/** Two segments of a flow are on the air at a time, sent by different nodes. */
export const burst: Scene = ([run]) =>
  first(run, 1, 20, ({ frames }) => {
    const data = frames.filter((frame) => frame.carried === 1);
    for (let place = 1; place < data.length; place++) {
      const [one, other] = [data[place - 1], data[place]];
      if (overlap(one, other) && one.from !== other.from && one.flow === other.flow) return { from: one.start - 2e-3, to: end(other) + 4e-3 };
    }
    return null;
  });

/** A frame is lost at its addressee to a sender that its own sender cannot sense and that cannot decode the addressee's CTS. */
export const hidden: Scene = ([run]) =>
  first(run, 1, 20, ({ frames, spots }) => {
    const { range_m: range, sensed_m: sensed } = run.stage;
    for (const { at } of spots.filter((spot) => spot.kind === "collision")) {
      const lost = frames.findLast((frame) => frame.collided && Math.abs(end(frame) - at) < 1e-4);
      if (!lost || lost.to < 0) continue;
      const disturber = frames.find((other) => {
        const far = distance(run, other.from, lost.to);
        return other !== lost && overlap(other, lost) && distance(run, other.from, lost.from) > sensed && far <= sensed && far > range;
      });
      if (disturber) return { from: Math.min(lost.start, disturber.start) - 1e-3, to: at + 3e-3 };
    }
    return null;
  });

/** The goodput of the flow comes back after it fell to nothing a second time. */
export const backAgain: Scene = ([run]) => {
  const second = silences(run, 0, SILENCE)[1];
  return second ? { from: second.to - 1, to: second.to + 4 } : null;
};

/** The search for the route of flow 0, from the first request until the reply has reached its source. */
export const search: Scene = ([run]) =>
  first(run, 1, 10, ({ frames }) => {
    const source = run.stage.flows[0].from;
    const asked = frames.find((frame) => frame.carried === ROUTING && frame.to < 0 && frame.from === source);
    const told = asked && frames.find((frame) => frame.carried === ROUTING && frame.to === source && frame.start > asked.start);
    return told ? { from: asked.start - 2e-3, to: end(told) + 5e-3 } : null;
  });

/** A link is given up: from the first of the seven attempts until routing searches again. */
export const giveUp: Scene = ([run]) =>
  first(run, 1, 20, ({ frames, spots }) => {
    for (const { node, other, at } of spots.filter((spot) => spot.kind === "link")) {
      const attempts = frames.filter((frame) => frame.from === node && frame.to === other && frame.kind === 0 && frame.start < at).slice(-7);
      const error = frames.find((frame) => frame.carried === ROUTING && frame.to < 0 && frame.start > at);
      const asked = error && frames.find((frame) => frame.carried === ROUTING && frame.to < 0 && frame.start > error.start && run.stage.flows.some((flow) => flow.from === frame.from));
      if (attempts.length === 7 && asked && asked.start - at < 0.1) return { from: attempts[0].start - 1e-3, to: end(asked) + 5e-3 };
    }
    return null;
  });

/** A link given up, a route lost, a request of the source without a reply, a timeout, and nothing delivered for a second. */
export const group: Scene = ([run]) => {
  const still = run.stage.flows.map((_, flow) => silences(run, flow, 1));
  const marks = run.marks;
  for (const [failed, kind] of marks) {
    if (kind !== MARK.link) continue;
    for (const [flow, { from: source }] of run.stage.flows.entries()) {
      const quiet = still[flow].find(({ from, to }) => from - 0.5 < failed && failed < from + 0.5 && to - failed < 3);
      if (!quiet) continue;
      const [lost, timeout] = [MARK.lost, MARK.timeout].map((what) => marks.find(([at, is, whose]) => is === what && at >= failed && at < quiet.to && (what === MARK.lost || whose === flow)));
      if (!lost || !timeout) continue;
      const { frames } = watch(run, failed, timeout[0]);
      const asked = frames.find((frame) => frame.carried === ROUTING && frame.to < 0 && frame.from === source);
      const told = frames.some((frame) => frame.carried === ROUTING && frame.to === source);
      if (asked && !told) return { from: failed - 0.02, to: quiet.to + 0.1 };
    }
  }
  return null;
};

/** When a flow sends between two times. */
const sent = (run: Shown, flow: number, from: number, to: number): number[] => (run.sequence(flow, from, to)?.events ?? []).filter(([, kind]) => kind < 2).map(([at]) => at);
const gaps = (times: number[]): number[] => times.slice(1).map((at, place) => at - times[place]);

/** In A a flow sends segments at once; in B each flow leaves time between two, always. */
export const bursts: Scene = (runs) => {
  const [from, within, long, pause] = [20, 20, 0.5, 0.01];
  runs.forEach((run) => go(run, from + within));
  const flows = runs[0].stage.flows.map((_, flow) => flow);
  for (let at = from; at < from + within; at += long / 5) {
    const [window, paced] = runs.map((run) => flows.map((flow) => gaps(sent(run, flow, at, at + long))));
    if (window.some((each) => each.some((gap) => gap < 1e-3)) && paced.every((each) => each.length >= 2 && each.every((gap) => gap > pause))) return { from: at, to: at + long };
  }
  return null;
};

/** In A one flow delivers nothing, as the other did before; in B both deliver all the time. */
export const turns: Scene = ([window, paced]) => {
  const [first, second] = [0, 1].map((flow) => silences(window, flow, SILENCE));
  const later = [...first, ...second].sort((a, b) => a.from - b.from);
  const turn = later.find((one) => (first.includes(one) ? second : first).some((other) => other.to < one.from));
  if (!turn) return null;
  const shown = { from: turn.from + 0.5, to: Math.min(turn.to, turn.from + 4.5) };
  const rest = [0, 1].flatMap((flow) => silences(paced, flow, 2));
  return rest.some(({ from, to }) => from < shown.to && to > shown.from) ? null : shown;
};

/** In B a train of a flow: at least eight segments, sent between two acknowledgements. In A, meanwhile, an acknowledgement for every two segments at least. */
export const train: Scene = ([each, trains]) => {
  const [from, within, least] = [60, 10, 8];
  [each, trains].forEach((run) => go(run, from + within));
  const of = (run: Shown, from: number, to: number): { sent: number[]; acked: number[] } => ({
    sent: sent(run, 0, from, to),
    acked: (run.sequence(0, from, to)?.events ?? []).filter(([, kind]) => kind >= 2).map(([at]) => at),
  });
  const { sent: segments, acked } = of(trains, from, from + within);
  for (let place = 1; place < acked.length; place++) {
    const [begin, end] = [acked[place - 1], acked[place]];
    const beside = of(each, begin, end);
    if (segments.filter((at) => at > begin && at < end).length >= least && 2 * beside.acked.length >= beside.sent.length && beside.sent.length > 0) return { from: begin - 0.05, to: end + 0.05 };
  }
  return null;
};
