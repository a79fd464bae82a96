// Plots beside the mesh: what the senders do, what arrives and what waits, of every run on the page.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { SAMPLE_HEAD, SAMPLE_PER_FLOW } from "./engine";
import { faint, flowColour, ink, pinColour } from "./colours";
import { flowWithEnds } from "./flows";
import type { Shown } from "./run";
import { Sequences } from "./sequence";

/** What goodput and means are taken over, seconds. */
const WINDOW_S = 2;
const MOST_POINTS = 600;
export const MOST_FLOWS = 8;
/** What is shown of the run: all of it, or so many seconds, with the present time at their end. */
export const SPANS = [0, 60, 10, 2, 0.5];

/** What a line is of: a flow, a node (-1: all of them), or the whole run. */
type Of = { run: number; flow?: number; node?: number };
type Lines = "flow" | "run" | "queue";
type Value = (run: Shown, sample: number, of: Of) => number | null;
type Plot = { id: string; title: string; unit: string; lines: Lines; value: Value; digits: number; most?: number };

const at = (run: Shown, sample: number, flow: number, field: number): number =>
  run.samples[sample * run.sampleWidth + SAMPLE_HEAD + flow * SAMPLE_PER_FLOW + field];
const time = (run: Shown, sample: number): number => run.samples[sample * run.sampleWidth];
const known = (value: number): number | null => (Number.isFinite(value) ? value : null);
const back = (run: Shown, sample: number): number => {
  const step = time(run, 1) - time(run, 0) || 0.1;
  return Math.max(0, sample - Math.round(WINDOW_S / step));
};
/** The mean over the window of what has a sum and a count; those are two fields. */
const mean =
  (field: number, factor: number): Value =>
  (run, sample, { flow = 0 }) => {
    const from = back(run, sample);
    const count = at(run, sample, flow, field + 1) - at(run, from, flow, field + 1);
    return count > 0 ? (factor * (at(run, sample, flow, field) - at(run, from, flow, field))) / count : null;
  };

const PLOTS: Plot[] = [
  {
    id: "goodput",
    title: "Goodput",
    unit: "kbit/s over 2 s",
    lines: "flow",
    digits: 0,
    value: (run, sample, { flow = 0 }) => {
      const from = back(run, sample);
      const seconds = time(run, sample) - time(run, from);
      return seconds > 0 ? known(((at(run, sample, flow, 0) - at(run, from, flow, 0)) * 8) / seconds / 1e3) : null;
    },
  },
  {
    id: "jain",
    title: "Jain's index",
    unit: "of 2-second windows",
    lines: "run",
    digits: 2,
    most: 1,
    // One flow alone shares with nobody.
    value: (run, sample) => (run.stage.flows.length > 1 ? known(run.samples[sample * run.sampleWidth + 1]) : null),
  },
  { id: "rtt", title: "RTT", unit: "ms, mean over 2 s", lines: "flow", digits: 0, value: mean(7, 1e3) },
  { id: "delay", title: "One-way delay of data", unit: "ms, mean over 2 s", lines: "flow", digits: 0, value: mean(9, 1e3) },
  { id: "queue", title: "Queues", unit: "packets", lines: "queue", digits: 0, value: () => null },
  { id: "window", title: "Window", unit: "segments", lines: "flow", digits: 1, value: (run, sample, { flow = 0 }) => known(at(run, sample, flow, 1)) },
  {
    id: "pacing",
    title: "Pacing interval",
    unit: "ms between segments",
    lines: "flow",
    digits: 1,
    value: (run, sample, { flow = 0 }) => known(at(run, sample, flow, 2) * 1e3),
  },
  { id: "cov", title: "Variation of the RTT", unit: "cov, mean over 2 s", lines: "flow", digits: 2, value: mean(3, 1) },
];

type Drawn = { plot: Plot; chart: uPlot; series: Of[]; value: HTMLElement; lines: (number | null)[][] };

export class Plots {
  private shown: Drawn[] = [];
  private runs: Shown[] = [];
  private x: number[] = [];
  private now = 0;
  /** The plot that is dragged across. */
  private dragged: uPlot | null = null;
  /** What was zoomed to, seconds; null to follow `span`. */
  private zoom: [number, number] | null = null;
  private span = 0;
  private pins: number[] = [];
  private head = document.createElement("div");
  private sequences = new Sequences();
  constructor(private place: HTMLElement) {
    this.head.id = "plots-head";
  }

  /** Plots of these runs, from now on, with the queues of the nodes that are pinned. */
  use(runs: Shown[], pins: number[]): void {
    this.shown.forEach(({ chart }) => chart.destroy());
    this.place.replaceChildren();
    if (runs !== this.runs && runs.some((run) => !this.runs.includes(run))) this.zoom = null;
    this.runs = runs;
    this.pins = pins;
    this.heading();
    const isShared = runs.some((run) => run.stage.flows.length > 1);
    this.shown = PLOTS.filter((plot) => plot.lines !== "run" || isShared).map((plot) => this.plot(plot));
    this.place.append(this.sequences.use(runs, (range) => this.zoomTo(range)));
  }

  /** Who has which line, what is not drawn, and what is shown of the run. */
  private heading(): void {
    const [first] = this.runs;
    const list = Object.assign(document.createElement("ul"), { className: "lines" });
    const item = (colour: string, text: string, dash = false): void => {
      const line = document.createElement("li");
      line.innerHTML = `<svg width="26" height="10" aria-hidden="true"><path d="M1 5H25" fill="none" stroke="${colour}" stroke-width="3"${dash ? ' stroke-dasharray="5 4"' : ""}/></svg> `;
      line.append(text);
      list.append(line);
    };
    const flows = first.stage.flows;
    flows.slice(0, MOST_FLOWS).forEach((_, number) => item(flowColour(number), flowWithEnds(flows, number)));
    this.pins.forEach((node, place) => item(pinColour(place), `queue of node ${node}`));
    if (this.runs.length > 1) {
      item(ink(), "run A");
      item(ink(), "run B", true);
    }
    this.head.replaceChildren(list);
    if (flows.length > MOST_FLOWS) {
      const left = `The plots have flows 0 to ${MOST_FLOWS - 1}; flows ${MOST_FLOWS} to ${flows.length - 1} are in the table and in Jain's index alone.`;
      this.head.append(Object.assign(document.createElement("p"), { className: "note", textContent: left }));
    }
    const wrap = document.createElement("label");
    const select = document.createElement("select");
    SPANS.forEach((span) => select.append(new Option(span ? `the last ${span} s` : "the whole run", String(span))));
    select.name = "span";
    select.value = String(this.span);
    select.addEventListener("change", () => {
      this.span = Number(select.value);
      this.zoom = null;
      this.draw(this.now);
    });
    wrap.append("Plots show ", select);
    const hint = Object.assign(document.createElement("p"), {
      className: "note",
      textContent: "Drag across a plot to zoom in on it, double-click to go back; what a plot has at the pointer stands above it.",
    });
    this.head.append(wrap, hint);
    this.place.append(this.head);
  }

  private plot(plot: Plot): Drawn {
    const figure = document.createElement("figure");
    figure.dataset.plot = plot.id;
    const caption = document.createElement("figcaption");
    const value = Object.assign(document.createElement("span"), { className: "now" });
    caption.append(`${plot.title} `, Object.assign(document.createElement("small"), { textContent: plot.unit }), value);
    figure.append(caption);
    this.place.append(figure);
    const series = this.runs.flatMap((run, number): Of[] => {
      if (plot.lines === "run") return [{ run: number }];
      if (plot.lines === "flow") return run.stage.flows.slice(0, MOST_FLOWS).map((_, flow) => ({ run: number, flow }));
      return (this.pins.length ? this.pins : [-1]).map((node) => ({ run: number, node }));
    });
    if (plot.lines === "queue" && !this.pins.length) caption.querySelector("small")!.textContent = "packets in all of them; pin a node for its own";
    const colour = ({ flow, node }: Of): string => (flow !== undefined ? flowColour(flow) : node !== undefined && node >= 0 ? pinColour(this.pins.indexOf(node)) : ink());
    const chart = new uPlot(
      {
        width: figure.clientWidth || 300,
        height: 120,
        legend: { show: false },
        cursor: { y: false, sync: { key: "time", setSeries: false }, drag: { x: true, y: false, setScale: false } },
        scales: { x: { time: false }, y: plot.most ? { range: [0, plot.most] } : {} },
        axes: [
          { stroke: ink, grid: { show: false }, ticks: { stroke: faint, size: 4 }, size: 24, font: "11px system-ui" },
          { stroke: ink, grid: { stroke: faint, width: 0.3 }, ticks: { show: false }, size: 40, font: "11px system-ui" },
        ],
        series: [
          {},
          ...series.map((of) => ({
            stroke: () => colour(of),
            width: 1.6,
            dash: of.run === 1 ? [5, 4] : undefined,
            points: { show: false },
          })),
        ],
        hooks: {
          draw: [(chart) => presentLine(chart, this.now)],
          setCursor: [() => this.tell()],
          setSelect: [
            (chart) => {
              const { left, width } = chart.select;
              // Plots that follow the pointer follow the selection, too.
              if (this.dragged !== chart || width < 4) return;
              this.dragged = null;
              const range: [number, number] = [chart.posToVal(left, "x"), chart.posToVal(left + width, "x")];
              this.zoomTo(range);
            },
          ],
        },
      },
      [[], ...series.map(() => [])] as uPlot.AlignedData,
      figure,
    );
    chart.over.addEventListener("mousedown", () => (this.dragged = chart));
    chart.over.addEventListener("dblclick", () => this.zoomTo(null));
    return { plot, chart, series, value, lines: [] };
  }

  /** Shows these seconds, or what is chosen. */
  private zoomTo(range: [number, number] | null): void {
    this.zoom = range;
    this.shown.forEach(({ chart }) => chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false));
    this.sequences.unselect();
    this.draw(this.now);
  }

  private range(end: number): [number, number] {
    if (this.zoom) return this.zoom;
    if (this.span) return [Math.max(0, this.now - this.span), Math.max(this.now, this.span)];
    return [0, Math.max(end, 1)];
  }

  draw(now: number): void {
    this.now = now;
    if (!this.runs.length) return;
    const longest = this.runs.reduce((a, b) => (b.samples.length / b.sampleWidth > a.samples.length / a.sampleWidth ? b : a));
    const count = longest.samples.length / longest.sampleWidth;
    const [from, to] = this.range(count ? time(longest, count - 1) : 0);
    this.place.dataset.range = `${from} ${to}`;
    // One sample more at each end, so that lines go on to the edge.
    const step = count > 1 ? time(longest, 1) - time(longest, 0) : 0.1;
    const begin = Math.max(0, Math.floor(from / step) - 2);
    const end = Math.min(count, Math.ceil(to / step) + 1);
    const stride = Math.max(1, Math.ceil((end - begin) / MOST_POINTS));
    const samples = Array.from({ length: Math.max(0, Math.floor((end - begin) / stride)) }, (_, place) => begin + (place + 1) * stride - 1);
    this.x = samples.map((sample) => time(longest, sample));
    for (const drawn of this.shown) {
      const { plot, chart, series } = drawn;
      drawn.lines = series.map((of) => {
        const run = this.runs[of.run];
        const there = run.samples.length / run.sampleWidth;
        if (plot.lines === "queue") {
          const queue = run.queues(of.node ?? -1);
          return samples.map((sample) => (sample < there ? queue[sample] : null));
        }
        return samples.map((sample) => (sample < there ? plot.value(run, sample, of) : null));
      });
      chart.batch(() => {
        const width = chart.root.parentElement?.clientWidth || 300;
        if (chart.width !== width) chart.setSize({ width, height: 120 });
        chart.setData([this.x, ...drawn.lines] as uPlot.AlignedData, false);
        chart.setScale("x", { min: from, max: to });
        // Not done by setData, which is told to leave the scale of x.
        if (!plot.most) chart.setScale("y", extent(drawn.lines, this.x, from, to));
      });
    }
    this.tell();
    this.sequences.draw(now, this.zoom ?? [Math.max(0, now - 2), Math.max(now, 2)], this.zoom !== null);
  }

  /** Writes the numbers at the pointer, or at the present time, for those who do not see the plot. */
  private tell(): void {
    for (const { plot, chart, series, value, lines } of this.shown) {
      const pointed = chart.cursor.idx;
      const place = pointed ?? this.x.findLastIndex((moment) => moment <= this.now + 1e-9);
      const texts = this.runs.map((_, run) => {
        const values = lines.filter((_, line) => series[line].run === run).map((line) => line[place]);
        return values.map((one) => (one == null ? "–" : one.toFixed(plot.digits))).join(", ");
      });
      const when = pointed != null && this.x[pointed] !== undefined ? `${this.x[pointed].toFixed(1)} s: ` : "";
      value.textContent = place < 0 ? "" : when + texts.join(" | ");
    }
  }
}

/** A line where the run stands. */
export function presentLine(chart: uPlot, now: number): void {
  const x = chart.valToPos(now, "x", true);
  if (!(x >= chart.bbox.left && x <= chart.bbox.left + chart.bbox.width)) return;
  chart.ctx.strokeStyle = ink();
  chart.ctx.lineWidth = 1;
  chart.ctx.setLineDash([]);
  chart.ctx.beginPath();
  chart.ctx.moveTo(x, chart.bbox.top);
  chart.ctx.lineTo(x, chart.bbox.top + chart.bbox.height);
  chart.ctx.stroke();
}

/** From zero to a little above the highest value that is in sight. */
function extent(lines: (number | null)[][], x: number[], from: number, to: number): { min: number; max: number } {
  let most = 0;
  for (const line of lines) line.forEach((value, place) => value !== null && x[place] >= from && x[place] <= to && (most = Math.max(most, value)));
  return { min: 0, max: most > 0 ? most * 1.08 : 1 };
}
