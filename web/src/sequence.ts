// The time-sequence graph of a flow, as tcptrace draws it: its segments over their bytes when they are sent, and how far the stream is acknowledged.
import uPlot from "uplot";
import { bad, faint, flowColour, ink } from "./colours";
import { flowName } from "./flows";
import { presentLine } from "./plots";
import type { Sequence, Shown } from "./run";

const HEIGHT = 220;
/** Events that are drawn; of more every second, fourth or eighth segment is. */
const MOST = 3_000;

export class Sequences {
  private figure = document.createElement("figure");
  private note = Object.assign(document.createElement("p"), { className: "note" });
  private value = Object.assign(document.createElement("span"), { className: "now" });
  private which = document.createElement("select");
  private chart: uPlot | null = null;
  private runs: Shown[] = [];
  private drawn: Sequence = { events: [], full: null };
  private stride = 1;
  private base = 0;
  private now = 0;
  /** The plot that is dragged across. */
  private dragged: uPlot | null = null;
  private range: [number, number] = [0, 2];
  private zoomed = false;
  private onZoom: (range: [number, number] | null) => void = () => {};

  constructor() {
    this.figure.dataset.plot = "sequence";
    const caption = document.createElement("figcaption");
    const wrap = document.createElement("label");
    this.which.name = "sequence";
    this.which.addEventListener("change", () => this.draw(this.now, this.range, this.zoomed));
    wrap.append("of ", this.which);
    caption.append("Time-sequence graph ", Object.assign(document.createElement("small"), { textContent: "kB" }), wrap, this.value);
    this.figure.append(caption);
  }

  /** The graph of one flow of these runs; `onZoom` is told what is zoomed to. */
  use(runs: Shown[], onZoom: (range: [number, number] | null) => void): HTMLElement {
    this.onZoom = onZoom;
    const before = this.which.value;
    this.runs = runs;
    this.which.replaceChildren(
      ...runs.flatMap((run, number) => run.stage.flows.map((_, flow) => new Option(`${flowName(run.stage.flows, flow)}${runs.length > 1 ? ` in ${"AB"[number]}` : ""}`, `${number} ${flow}`))),
    );
    if ([...this.which.options].some((option) => option.value === before)) this.which.value = before;
    this.chart?.destroy();
    this.chart = new uPlot(
      {
        width: 300,
        height: HEIGHT,
        legend: { show: false },
        cursor: { sync: { key: "time", setSeries: false }, drag: { x: true, y: false, setScale: false } },
        scales: { x: { time: false } },
        axes: [
          { stroke: ink, grid: { show: false }, ticks: { stroke: faint, size: 4 }, size: 24, font: "11px system-ui" },
          { stroke: ink, grid: { stroke: faint, width: 0.3 }, ticks: { show: false }, size: 48, font: "11px system-ui" },
        ],
        series: [{}, { show: true, stroke: "transparent", points: { show: false } }],
        hooks: {
          draw: [(chart) => this.paint(chart), (chart) => presentLine(chart, this.now)],
          setSelect: [
            (chart) => {
              const { left, width } = chart.select;
              // Plots that follow the pointer follow the selection, too.
              if (this.dragged !== chart || width < 4) return;
              this.dragged = null;
              const range: [number, number] = [chart.posToVal(left, "x"), chart.posToVal(left + width, "x")];
              this.onZoom(range);
            },
          ],
        },
      },
      [[], []] as uPlot.AlignedData,
      this.figure,
    );
    const chart = this.chart;
    chart.over.addEventListener("mousedown", () => (this.dragged = chart));
    chart.over.addEventListener("dblclick", () => this.onZoom(null));
    this.figure.append(this.note);
    return this.figure;
  }

  draw(now: number, range: [number, number], zoomed: boolean): void {
    [this.now, this.range, this.zoomed] = [now, range, zoomed];
    const chart = this.chart;
    if (!chart || !this.which.value) return;
    const [number, flow] = this.which.value.split(" ").map(Number);
    const got = this.runs[number].sequence(flow, range[0], range[1]);
    chart.root.hidden = got === null;
    this.drawn = got ?? { events: [], full: null };
    const { events, full } = this.drawn;
    this.stride = 1;
    while (events.length > MOST * this.stride) this.stride *= 2;
    const again = events.filter(([, kind]) => kind === 1).length;
    const sent = events.filter(([, kind]) => kind < 2).length;
    const acked = events.some(([, kind]) => kind >= 2);
    this.figure.dataset.counts = `${sent} ${again}`;
    this.value.textContent = got ? `${sent} sent, ${again} of them again` : "";
    const transport = this.runs[number].stage.flows[flow].transport;
    this.note.textContent = !got
      ? "A recording does not have the bytes of segments, so that there is no time-sequence graph of it."
      : [
          "Bars: segments; the broad orange ones are sent again. Steps: bytes acknowledged; ticks on them: acknowledged once more.",
          zoomed ? "" : "These are the last 2 s.",
          !acked && /^(tpa|udp)/.test(transport) ? `${transport.startsWith("udp") ? "UDP has no acknowledgements." : "Acknowledgements of TPA name blocks and are not drawn."}` : "",
          this.stride > 1 ? `One segment in ${this.stride} is drawn: zoom in for all.` : "",
          full === null ? "" : `After ${full.toFixed(0)} s no more segments are kept.`,
        ]
          .filter((text) => text !== "")
          .join(" ");
    const bytes = events.flatMap(([, , from, to]) => [from, to]);
    const [low, high] = bytes.reduce(([low, high], byte) => [Math.min(low, byte), Math.max(high, byte)], [Infinity, 0]);
    this.base = bytes.length ? low : 0;
    chart.batch(() => {
      const width = this.figure.clientWidth || 300;
      if (chart.width !== width) chart.setSize({ width, height: HEIGHT });
      chart.setData([range, [this.base / 1e3, high / 1e3]] as uPlot.AlignedData, false);
      chart.setScale("x", { min: range[0], max: range[1] });
      const margin = Math.max((high - this.base) * 0.04, 1000);
      chart.setScale("y", { min: Math.max(0, this.base - margin) / 1e3, max: (Math.max(high, this.base) + margin) / 1e3 });
    });
  }

  unselect(): void {
    this.chart?.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  }

  private paint(chart: uPlot): void {
    const pen = chart.ctx;
    const ratio = devicePixelRatio || 1;
    const flow = Number(this.which.value.split(" ")[1]);
    const x = (at: number): number => chart.valToPos(at, "x", true);
    const y = (byte: number): number => chart.valToPos(byte / 1e3, "y", true);
    pen.save();
    pen.beginPath();
    pen.rect(chart.bbox.left, chart.bbox.top, chart.bbox.width, chart.bbox.height);
    pen.clip();
    pen.setLineDash([]);
    const bars = (kind: number, colour: string, width: number): void => {
      pen.strokeStyle = colour;
      pen.lineWidth = width * ratio;
      pen.beginPath();
      let number = 0;
      for (const [at, is, from, to] of this.drawn.events) {
        // What is sent again is never left out.
        if (is !== kind || (kind === 0 && number++ % this.stride > 0)) continue;
        // At least as high as can be seen.
        const [top, bottom] = [y(to), Math.max(y(from), y(to) + 3 * ratio)];
        pen.moveTo(x(at), bottom);
        pen.lineTo(x(at), top);
      }
      pen.stroke();
    };
    // The staircase of acknowledgements.
    pen.strokeStyle = ink();
    pen.lineWidth = ratio;
    pen.beginPath();
    let begun = false;
    for (const [at, kind, from, to] of this.drawn.events) {
      if (kind === 2) {
        if (begun) pen.lineTo(x(at), y(from));
        else pen.moveTo(x(this.range[0]), y(from)), pen.lineTo(x(at), y(from));
        pen.lineTo(x(at), y(to));
        begun = true;
      } else if (kind === 3 && begun) {
        pen.lineTo(x(at), y(to));
        pen.lineTo(x(at), y(to) - 5 * ratio);
        pen.moveTo(x(at), y(to));
      }
    }
    pen.stroke();
    bars(0, flowColour(flow), 2);
    bars(1, bad(), 4);
    pen.restore();
  }
}
