// One run on the page: a player of the simulator and what is drawn of it.
import { AIR_FIELDS, EVENT_FIELDS, NODE_FIELDS, Player, SAMPLE_HEAD, SAMPLE_PER_FLOW, read } from "./engine";
import type { Described, Measured, Source, Stage } from "./engine";
import { flowName } from "./flows";

export type Frame = {
  number: number;
  from: number;
  to: number;
  kind: number;
  start: number;
  air: number;
  bytes: number;
  flow: number;
  carried: number;
  retry: boolean;
  received: boolean;
  collided: boolean;
};
/** Air time of a link until now, seconds; `to` is -1 for broadcasts. */
export type Air = { from: number; to: number; data: number; again: number; control: number };
/** A stretch of a time-sequence graph; each event is seconds, kind (0 sent, 1 sent again, 2 acknowledged, 3 acknowledged once more), first byte, byte after the last. */
export type Sequence = { events: [number, number, number, number][]; /** From when on no events are kept, if it comes to that. */ full: number | null };
/** Something that is shown at a node for a while: a collision, a lost packet, a link given up, a route lost or found. */
export type Spot = { kind: "collision" | "drop" | "link" | "lost" | "found"; node: number; other: number; at: number };

/** Simulated seconds before a target from which on frames are kept for drawing. */
const WATCHED = 0.02;
const MOST_FRAMES = 400;

/** What the page needs of a run: one that is computed here, or one that was recorded. */
export type Shown = Pick<
  Run,
  | "stage" | "described" | "source" | "frames" | "spots" | "nodes" | "routes" | "samples" | "marks" | "measured" | "now" | "over" | "reach" | "sampleWidth"
  | "known" | "readMarks" | "sequence" | "queues" | "air" | "advance" | "hasten" | "approach" | "step" | "stepBack" | "forget" | "look" | "measure" | "place" | "tell" | "free"
>;

export class Run {
  readonly stage: Stage;
  readonly described: Described;
  readonly source: Source;
  private player: Player;
  frames: Frame[] = [];
  spots: Spot[] = [];
  nodes: Float64Array = new Float64Array();
  routes: number[][] = [];
  samples: number[] = [];
  marks: number[][] = [];
  measured: Measured;

  constructor(source: Source) {
    this.source = source;
    const { scenario, described } = read(source);
    this.described = described;
    try {
      this.player = scenario.play(source.point, source.seed);
    } finally {
      scenario.free();
    }
    this.stage = JSON.parse(this.player.stage()) as Stage;
    this.measured = JSON.parse(this.player.record()) as Measured;
    this.look();
  }

  get now(): number {
    return this.player.now();
  }
  get over(): boolean {
    return this.player.isOver();
  }
  /** The latest time that can be gone to. */
  get reach(): number {
    return this.stage.duration_s;
  }

  /** The time until which marks are known. */
  known = 0;

  /** Runs until `to`; frames of the last stretch are kept for drawing. */
  advance(to: number): void {
    if (to - this.now > WATCHED) this.player.advance(to - WATCHED, false);
    this.player.advance(to, true);
    this.take();
  }
  /** Runs toward `to` without anything to draw. */
  hasten(to: number): void {
    this.player.advance(to, false);
    this.known = Math.max(this.known, this.now);
  }
  /** Goes to a kept state at or before `to`. */
  approach(to: number): void {
    if (to < this.now) {
      this.frames = [];
      this.spots = [];
    }
    this.player.approach(to);
  }
  step(): void {
    this.player.step();
    this.take();
  }
  stepBack(): void {
    this.frames = [];
    this.spots = [];
    this.player.stepBack();
    this.take();
  }

  private take(): void {
    this.known = Math.max(this.known, this.now);
    const events = this.player.events();
    const byNumber = new Map(this.frames.map((frame) => [frame.number, frame]));
    for (let i = 0; i < events.length; i += EVENT_FIELDS) {
      const at = events[i + 1];
      switch (events[i]) {
        case 1: {
          const [number, from, to, kind, air, bytes, flow, carried, retry] = events.subarray(i + 2, i + 11);
          const frame = { number, from, to, kind, start: at, air, bytes, flow, carried, retry: retry === 1, received: false, collided: false };
          this.frames.push(frame);
          byNumber.set(number, frame);
          break;
        }
        case 2: {
          const frame = byNumber.get(events[i + 2]);
          if (frame) frame.received = true;
          break;
        }
        case 3: {
          const frame = byNumber.get(events[i + 2]);
          if (frame) frame.collided = true;
          this.spots.push({ kind: "collision", node: events[i + 3], other: frame?.from ?? -1, at });
          break;
        }
        case 4:
          this.spots.push({ kind: "drop", node: events[i + 2], other: -1, at });
          break;
        case 5:
          this.spots.push({ kind: "link", node: events[i + 2], other: events[i + 3], at });
          break;
        case 6:
          this.spots.push({ kind: events[i + 4] === 1 ? "found" : "lost", node: events[i + 2], other: events[i + 3], at });
          break;
      }
    }
    if (this.frames.length > MOST_FRAMES) this.frames.splice(0, this.frames.length - MOST_FRAMES);
    if (this.spots.length > MOST_FRAMES) this.spots.splice(0, this.spots.length - MOST_FRAMES);
  }

  /** Forgets what is too old to be drawn. */
  forget(before: number): void {
    this.frames = this.frames.filter((frame) => frame.start + frame.air >= before);
    this.spots = this.spots.filter((spot) => spot.at >= before);
  }

  /** Reads how nodes and routes stand now. */
  look(): void {
    this.nodes = this.player.nodes();
    this.routes = [];
    let way: number[] = [];
    for (const node of this.player.routes()) {
      if (node < 0) {
        this.routes.push(way);
        way = [];
      } else way.push(node);
    }
  }

  /** Reads the numbers, the samples and the marks. */
  measure(): void {
    this.measured = JSON.parse(this.player.record()) as Measured;
    const width = this.sampleWidth;
    for (const value of this.player.samples(this.samples.length / width)) this.samples.push(value);
    this.readMarks();
  }
  readMarks(): void {
    const marks = this.player.marks();
    this.marks = [];
    for (let i = 0; i < marks.length; i += 3) this.marks.push([marks[i], marks[i + 1], marks[i + 2]]);
  }
  /** The time-sequence graph of a flow between two times, of the time that was ever reached; null where it is not known. */
  sequence(flow: number, from: number, to: number): Sequence | null {
    const [full, ...numbers] = this.player.sequence(flow, from, to);
    const events: Sequence["events"] = [];
    for (let i = 0; i < numbers.length; i += 4) events.push([numbers[i], numbers[i + 1], numbers[i + 2], numbers[i + 3]]);
    return { events, full: Number.isNaN(full) ? null : full };
  }
  /** Packets in the queue of a node at each sample; in all queues together, of node -1. */
  queues(node: number): Float64Array {
    return this.player.queues(node, 0);
  }
  air(): Air[] {
    const numbers = this.player.airTime();
    return Array.from({ length: numbers.length / AIR_FIELDS }, (_, row) => {
      const [from, to, data, again, control] = numbers.subarray(row * AIR_FIELDS, (row + 1) * AIR_FIELDS);
      return { from, to, data, again, control };
    });
  }
  get sampleWidth(): number {
    return SAMPLE_HEAD + SAMPLE_PER_FLOW * this.stage.flows.length;
  }

  place(node: number): [number, number] {
    return [this.nodes[node * NODE_FIELDS], this.nodes[node * NODE_FIELDS + 1]];
  }
  /** How it stands with a node, in words. */
  tell(node: number): string {
    const [queue, nav, backoff, left] = this.nodes.subarray(node * NODE_FIELDS + 2, node * NODE_FIELDS + 6);
    const counter = ["no backoff", `backoff of ${left.toFixed(0)} µs paused`, `backoff: ${left.toFixed(0)} µs left`][backoff];
    const ends = this.stage.flows.flatMap((flow, number) =>
      flow.from === node ? [`source of ${flowName(this.stage.flows, number)}`] : flow.to === node ? [`destination of ${flowName(this.stage.flows, number)}`] : [],
    );
    const reserved = nav > 0 ? `NAV: reserved for ${(nav * 1e3).toFixed(2)} ms` : "NAV: free";
    return [`Node ${node}`, `queue ${queue} of ${this.stage.queue}`, reserved, counter, ...ends].join(" · ");
  }
  free(): void {
    this.player.free();
  }
}
