// What `meshpace run --record` or `emulate --record` wrote, or is writing, played from its lines (docs/record-stream.md, format 2). Nothing is computed: every time is a
// place in sorted lists.
import { NODE_FIELDS, SAMPLE_HEAD, SAMPLE_PER_FLOW } from "./engine";
import type { Described, Measured, Source, Stage } from "./engine";
import type { Air, Frame, Sequence, Shown, Spot } from "./run";

const FORMAT = 2;
const KINDS: Record<string, number> = { rts: 0, cts: 1, data: 2, ack: 3, "block-ack": 5, "block-ack-request": 6 };
const SECOND = 1e9;
const JAIN_WINDOW = 2;

type Timed<T> = { at: number; value: T };
/** The last entry not later than `at`; -1 if there is none. */
function last(list: { at: number }[], at: number): number {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle].at <= at) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

export class Recording implements Shown {
  stage!: Stage;
  described!: Described;
  source!: Source;
  frames: Frame[] = [];
  spots: Spot[] = [];
  nodes = new Float64Array();
  routes: number[][] = [];
  samples: number[] = [];
  readonly marks: number[][] = [];
  measured!: Measured;
  now = 0;
  /** Bytes of whole lines that were taken. */
  taken = 0;
  /** The time of the last line. */
  private latest = 0;
  private lines = 0;
  private onAir: (Frame & { at: number })[] = [];
  private lost: (Spot & { at: number })[] = [];
  private collided: { at: number }[] = [];
  private waiting: Timed<number>[][] = [];
  private places: Timed<[number, number]>[][] = [];
  private ways: Timed<number[] | null>[][] = [];
  private counts: { at: number; delivered: number; sent: number; again: number; timeouts: number | null }[][] = [];
  /** Frames of which the air time is in `links`. */
  private counted = 0;
  private links = new Map<string, Air>();
  /** By node, the neighbour that it sent an RTS or data to last. */
  private tried: number[] = [];
  /** By number, when a packet of data was sent. */
  private sentAt = new Map<number, number>();
  private delays: { sum: number; count: number }[] = [];
  private fingerprint = "";
  /** Whether the run was recorded to its end. */
  complete = false;

  constructor(private name: string) {}

  /** Takes the next bytes, from the end of the last whole line on. Throws what is wrong with them, with the line. True if there was a whole line. */
  take(content: Uint8Array): boolean {
    // What is not whole comes again, or is what a run that was killed left of its last line.
    const whole = content.lastIndexOf(10) + 1;
    if (whole === 0) {
      if (this.lines === 0) throw new Error(`${this.name}, line 1: no recording: its first line is not whole`);
      return false;
    }
    const text = new TextDecoder().decode(content.subarray(0, whole));
    for (let from = 0; from < text.length; ) {
      const to = text.indexOf("\n", from);
      const line = text.slice(from, to);
      if (this.lines++ === 0) this.head(line);
      else {
        try {
          this.line(JSON.parse(line));
        } catch {
          throw new Error(`${this.name}, line ${this.lines}: damaged`);
        }
      }
      from = to + 1;
    }
    this.taken += whole;
    this.measured = this.measureAt(this.now);
    this.look();
    return true;
  }

  private head(line: string): void {
    const name = this.name;
    let head: Record<string, any>;
    try {
      head = JSON.parse(line);
    } catch {
      throw new Error(`${name}, line 1: no recording: its first line is no JSON object`);
    }
    if (head.stream !== "meshpace") throw new Error(`${name}, line 1: no recording of meshpace run --record`);
    if (head.format > FORMAT) throw new Error(`${name}, line 1: format ${head.format}; this page knows ${FORMAT}. Take the page of the newer meshpace.`);
    this.source = { name, text: "", files: {}, sets: [], point: 0, seed: head.seed };
    this.described = { name: `${head.scenario} (recorded)`, points: [], warnings: [] };
    this.stage = {
      model: head.model,
      seed: head.seed,
      duration_s: head.duration_ns / SECOND,
      warmup_s: head.warmup_ns / SECOND,
      nodes: head.nodes,
      moves: false,
      links: head.links,
      range_m: 250,
      sensed_m: 550,
      queue: 50,
      flows: [],
    };
    const per = <T>(count: number): T[][] => Array.from({ length: count }, () => []);
    this.waiting = per(head.nodes.length);
    this.places = per(head.nodes.length);
    for (const flow of head.flows) this.begin(flow.from, flow.to, flow.transport, 0, flow.name ?? null);
    this.nodes = new Float64Array(head.nodes.length * NODE_FIELDS);
  }

  /** A flow; the samples before have nothing of it. */
  private begin(from: number, to: number, transport: string, at: number, name: string | null = null): void {
    const before = this.sampleWidth;
    this.stage.flows.push({ name, from, to, transport, start_s: at });
    this.ways.push([]);
    this.counts.push([]);
    this.delays.push({ sum: 0, count: 0 });
    const rows = this.samples.length / before;
    const nothing: number[] = new Array(SAMPLE_PER_FLOW).fill(NaN);
    this.samples = Array.from({ length: rows }, (_, row) => [...this.samples.slice(row * before, (row + 1) * before), ...nothing]).flat();
  }

  private line(line: any[]): void {
    const at = line[1] / SECOND;
    this.latest = at;
    switch (line[0]) {
      case "frame": {
        const [, , number, from, to, kind, bytes, air, , retry, body] = line;
        const carried = body === null ? 0 : body[0] === "routing" ? 3 : body[0] === "arp" ? 4 : body[3] === "ack" ? 2 : 1;
        if (to !== null && (kind === "rts" || kind === "data")) this.tried[from] = to;
        const flow = body?.[0] === "packet" && body[2] < this.stage.flows.length ? body[2] : -1;
        this.onAir.push({ at, number, from, to: to ?? -1, kind: KINDS[kind] ?? 2, start: at, air: air / SECOND, bytes, flow, carried, retry, received: false, collided: false });
        break;
      }
      case "got": {
        const frame = this.onAir[line[2]];
        if (frame && (frame.to === line[3] || frame.to < 0)) frame.received = true;
        break;
      }
      case "collision":
        this.collided.push({ at });
        this.lost.push({ kind: "collision", node: line[3], other: this.onAir[line[2]]?.from ?? -1, at });
        break;
      case "lost": {
        const [, , node, why, , , next] = line;
        const gone = why === "link-failure" || why === "flushed";
        // Routing gives a packet up under the name of its destination; the neighbour is the one that the node tried last.
        const neighbour = why === "link-failure" ? this.tried[node] : next;
        this.lost.push({ kind: gone ? "link" : "drop", node, other: gone ? (neighbour ?? -1) : -1, at });
        if (why === "link-failure") this.marks.push([at, 2, node]);
        break;
      }
      case "route": {
        const [, , flow, nodes] = line;
        const before = this.ways[flow].at(-1)?.value;
        this.ways[flow].push({ at, value: nodes });
        if (!nodes && before) this.marks.push([at, 3, this.stage.flows[flow].from]);
        if (nodes && before === null) this.marks.push([at, 4, this.stage.flows[flow].from]);
        break;
      }
      case "queue":
        this.waiting[line[2]].push({ at, value: line[3] });
        break;
      case "place":
        this.stage.moves = true;
        this.places[line[2]].push({ at, value: [line[3], line[4]] });
        break;
      case "begin":
        this.begin(line[3], line[4], line[5], at);
        break;
      case "sent":
        if (line[5] === "data") this.sentAt.set(line[3], at);
        break;
      case "arrived": {
        const [, , , packet, flow] = line;
        const sent = this.sentAt.get(packet);
        if (sent === undefined || !this.delays[flow]) break;
        this.sentAt.delete(packet);
        this.delays[flow].sum += at - sent;
        this.delays[flow].count++;
        break;
      }
      case "flow":
        this.sample(at, line);
        break;
      case "end":
        this.complete = true;
        // An emulation ends with its programs.
        this.stage.duration_s = Math.min(this.stage.duration_s, at);
        this.fingerprint = line[3];
        break;
    }
  }

  private sample(at: number, line: any[]): void {
    const [, , flow, delivered, sent, again, timeouts, window, interval, rtt, cov] = line;
    const before = this.counts[flow].at(-1);
    if (timeouts > (before?.timeouts ?? 0)) this.marks.push([at, 1, flow]);
    this.counts[flow].push({ at, delivered, sent, again, timeouts });
    if (flow === 0) this.samples.push(at, NaN, ...new Array(SAMPLE_PER_FLOW * this.stage.flows.length).fill(NaN));
    const start = this.samples.length - this.sampleWidth;
    const place = start + SAMPLE_HEAD + flow * SAMPLE_PER_FLOW;
    const earlier = start >= this.sampleWidth ? place - this.sampleWidth : -1;
    const so = (field: number): number => (earlier >= 0 && this.samples[earlier + field]) || 0;
    // The recording has means of what came since the sample before.
    const mean = (field: number, value: number | null): number[] => [so(field) + (value ?? 0), so(field + 1) + (value === null ? 0 : 1)];
    const { sum, count } = this.delays[flow];
    const values = [delivered, window ?? NaN, interval === null ? NaN : interval / SECOND, ...mean(3, cov), again, timeouts, ...mean(7, rtt === null ? null : rtt / SECOND), sum, count];
    values.forEach((value, field) => (this.samples[place + field] = value));
    if (flow === this.stage.flows.length - 1) this.samples[start + 1] = this.jainOfWindow(at);
  }

  /** Jain's index of the last whole window of 2 s before `at`, windows counted from the warm-up on. */
  private jainOfWindow(at: number): number {
    const first = this.stage.warmup_s % JAIN_WINDOW;
    const end = first + Math.floor((at - first + 1e-9) / JAIN_WINDOW) * JAIN_WINDOW;
    return end < first + JAIN_WINDOW - 1e-9 ? NaN : jain(this.deliveredBetween(end - JAIN_WINDOW, end));
  }
  private deliveredBetween(from: number, to: number): number[] {
    return this.counts.map((list) => (list[last(list, to + 1e-9)]?.delivered ?? 0) - (list[last(list, from + 1e-9)]?.delivered ?? 0));
  }

  get sampleWidth(): number {
    return SAMPLE_HEAD + SAMPLE_PER_FLOW * this.stage.flows.length;
  }
  get over(): boolean {
    return this.now >= this.stage.duration_s;
  }
  /** There will be no more of it: it ends where it ends. */
  close(): void {
    if (!this.complete) this.stage.duration_s = this.reach;
  }
  /** How far it is written. */
  get reach(): number {
    return this.complete ? this.stage.duration_s : Math.min(this.latest, this.stage.duration_s);
  }

  advance(to: number): void {
    this.hasten(to);
    this.show();
  }
  hasten(to: number): void {
    this.now = Math.max(this.now, Math.min(to, this.reach));
  }
  approach(to: number): void {
    this.now = Math.min(this.now, to);
    this.show();
  }
  step(): void {
    const next = this.onAir[last(this.onAir, this.now) + 1];
    this.advance(next ? next.at : this.reach);
  }
  stepBack(): void {
    const at = this.now;
    let place = last(this.onAir, at);
    while (place >= 0 && this.onAir[place].at >= at) place--;
    this.approach(this.onAir[place]?.at ?? 0);
  }
  private show(): void {
    const place = last(this.onAir, this.now);
    this.frames = this.onAir.slice(Math.max(0, place - 100), place + 1);
    const lost = last(this.lost, this.now);
    this.spots = this.lost.slice(Math.max(0, lost - 40), lost + 1);
  }
  forget(before: number): void {
    this.frames = this.frames.filter((frame) => frame.start + frame.air >= before);
    this.spots = this.spots.filter((spot) => spot.at >= before);
  }
  look(): void {
    for (let node = 0; node < this.stage.nodes.length; node++) {
      const [x, y] = this.places[node][last(this.places[node], this.now)]?.value ?? this.stage.nodes[node];
      const queue = this.waiting[node][last(this.waiting[node], this.now)]?.value ?? 0;
      this.nodes.set([x, y, queue, 0, 0, 0], node * NODE_FIELDS);
    }
    this.routes = this.ways.map((list, flow) => list[last(list, this.now)]?.value ?? [this.stage.flows[flow].from]);
  }
  get known(): number {
    return this.reach;
  }
  readMarks(): void {}
  /** The bytes of segments are not recorded. */
  sequence(): Sequence | null {
    return null;
  }
  queues(node: number): Float64Array {
    const every = this.samples.length / this.sampleWidth;
    const lists = node < 0 ? this.waiting : [this.waiting[node]];
    const sum = new Float64Array(every);
    for (const list of lists) {
      let place = -1;
      for (let row = 0; row < every; row++) {
        while (place + 1 < list.length && list[place + 1].at <= this.samples[row * this.sampleWidth] + 1e-9) place++;
        sum[row] += place < 0 ? 0 : list[place].value;
      }
    }
    return sum;
  }
  air(): Air[] {
    const until = last(this.onAir, this.now) + 1;
    // Counted on from where it was counted last.
    if (until < this.counted) [this.counted, this.links] = [0, new Map()];
    for (; this.counted < until; this.counted++) {
      const { from, to, kind, air, retry } = this.onAir[this.counted];
      const answers = kind === 1 || kind === 3 || kind === 5;
      const [a, b] = answers ? [to, from] : [from, to];
      const link = this.links.get(`${a} ${b}`) ?? { from: a, to: b, data: 0, again: 0, control: 0 };
      this.links.set(`${a} ${b}`, link);
      link[kind !== 2 ? "control" : retry ? "again" : "data"] += air;
    }
    return [...this.links.values()];
  }
  measure(): void {
    this.measured = this.measureAt(this.now);
  }
  private measureAt(at: number): Measured {
    const { warmup_s: warmup, flows } = this.stage;
    const seconds = at - warmup;
    const delivered = this.deliveredBetween(warmup, at);
    const now = this.counts.map((list) => list[last(list, at + 1e-9)] ?? { sent: 0, again: 0, timeouts: 0 });
    const windows: number[] = [];
    for (let end = warmup + JAIN_WINDOW; end <= at + 1e-9; end += JAIN_WINDOW) windows.push(jain(this.deliveredBetween(end - JAIN_WINDOW, end)));
    const counted = windows.filter((value) => !Number.isNaN(value));
    const known = (value: number): number | null => (Number.isFinite(value) ? value : null);
    return {
      aggregate_goodput_bps: seconds > 0 ? (delivered.reduce((a, b) => a + b, 0) * 8) / seconds : null,
      jain: known(jain(delivered)),
      jain_2s: counted.length ? counted.reduce((a, b) => a + b, 0) / counted.length : null,
      retransmission_index: null,
      frames: last(this.onAir, at) + 1,
      collisions: last(this.collided, at) + 1,
      mac_drops: null,
      queue_drops: null,
      fingerprint: this.fingerprint,
      duration_s: at,
      flows: flows.map((flow, number) => ({
        delivered_bytes: delivered[number],
        longest_gap_s: null,
        goodput_bps: seconds > 0 ? (delivered[number] * 8) / seconds : null,
        retransmissions: now[number].again,
        timeouts: now[number].timeouts,
        cov_rtt: null,
        transport: flow.transport,
      })),
    };
  }
  place(node: number): [number, number] {
    return [this.nodes[node * NODE_FIELDS], this.nodes[node * NODE_FIELDS + 1]];
  }
  tell(node: number): string {
    return `Node ${node} · queue ${this.nodes[node * NODE_FIELDS + 2]} · NAV and backoff are not recorded`;
  }
  free(): void {}
}

/** R. Jain, D. Chiu, W. Hawe, 1984; NaN if nothing was delivered. */
function jain(shares: number[]): number {
  const sum = shares.reduce((a, b) => a + b, 0);
  const squares = shares.reduce((a, b) => a + b * b, 0);
  return squares > 0 ? (sum * sum) / (shares.length * squares) : NaN;
}
