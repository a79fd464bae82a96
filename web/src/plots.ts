// Plots beside the mesh: what the senders do and what arrives, of every run on the page.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { SAMPLE_HEAD, SAMPLE_PER_FLOW } from "./engine";
import { faint, flowColour, ink } from "./colours";
import type { Shown } from "./run";

/** Samples that goodput and cov are taken over. */
const WINDOW_S = 2;
const MOST_POINTS = 600;
const MOST_FLOWS = 8;

type Value = (run: Shown, sample: number, flow: number) => number | null;
type Plot = { id: string; title: string; unit: string; perFlow: boolean; value: Value; digits: number; most?: number };

const at = (run: Shown, sample: number, flow: number, field: number): number =>
  run.samples[sample * run.sampleWidth + SAMPLE_HEAD + flow * SAMPLE_PER_FLOW + field];
const time = (run: Shown, sample: number): number => run.samples[sample * run.sampleWidth];
const known = (value: number): number | null => (Number.isFinite(value) ? value : null);
const back = (run: Shown, sample: number): number => {
  const step = time(run, 1) - time(run, 0) || 0.1;
  return Math.max(0, sample - Math.round(WINDOW_S / step));
};

const PLOTS: Plot[] = [
  {
    id: "goodput", title: "Goodput",
    unit: "kbit/s over 2 s",
    perFlow: true,
    digits: 0,
    value: (run, sample, flow) => {
      const from = back(run, sample);
      const seconds = time(run, sample) - time(run, from);
      return seconds > 0 ? known(((at(run, sample, flow, 0) - at(run, from, flow, 0)) * 8) / seconds / 1e3) : null;
    },
  },
  {
    id: "jain", title: "Jain's index",
    unit: "of 2-second windows",
    perFlow: false,
    digits: 2,
    most: 1,
    // One flow alone shares with nobody.
    value: (run, sample) => (run.stage.flows.length > 1 ? known(run.samples[sample * run.sampleWidth + 1]) : null),
  },
  { id: "window", title: "Window", unit: "segments", perFlow: true, digits: 1, value: (run, sample, flow) => known(at(run, sample, flow, 1)) },
  {
    id: "pacing", title: "Pacing interval",
    unit: "ms between segments",
    perFlow: true,
    digits: 1,
    value: (run, sample, flow) => known(at(run, sample, flow, 2) * 1e3),
  },
  {
    id: "cov", title: "Variation of the RTT",
    unit: "cov, mean over 2 s",
    perFlow: true,
    digits: 2,
    value: (run, sample, flow) => {
      const from = back(run, sample);
      const count = at(run, sample, flow, 4) - at(run, from, flow, 4);
      return count > 0 ? (at(run, sample, flow, 3) - at(run, from, flow, 3)) / count : null;
    },
  },
];

export class Plots {
  private shown: { plot: Plot; chart: uPlot; series: { run: number; flow: number }[]; value: HTMLElement }[] = [];
  private runs: Shown[] = [];
  private now = 0;
  constructor(private place: HTMLElement) {}

  /** Plots of these runs, from now on. */
  use(runs: Shown[]): void {
    this.shown.forEach(({ chart }) => chart.destroy());
    this.place.replaceChildren();
    this.runs = runs;
    const isShared = runs.some((run) => run.stage.flows.length > 1);
    this.shown = PLOTS.filter((plot) => plot.perFlow || isShared).map((plot) => {
      const figure = document.createElement("figure");
      figure.dataset.plot = plot.id;
      const caption = document.createElement("figcaption");
      const value = document.createElement("span");
      value.className = "now";
      caption.append(`${plot.title} `, Object.assign(document.createElement("small"), { textContent: plot.unit }), value);
      figure.append(caption);
      this.place.append(figure);
      const series = runs.flatMap((run, number) =>
        (plot.perFlow ? run.stage.flows.slice(0, MOST_FLOWS) : [null]).map((_, flow) => ({ run: number, flow })),
      );
      const chart = new uPlot(
        {
          width: figure.clientWidth || 300,
          height: 120,
          legend: { show: false },
          cursor: { show: false },
          scales: { x: { time: false }, y: plot.most ? { range: [0, plot.most] } : {} },
          axes: [
            { stroke: ink, grid: { show: false }, ticks: { stroke: faint, size: 4 }, size: 24, font: "11px system-ui" },
            { stroke: ink, grid: { stroke: faint, width: 0.3 }, ticks: { show: false }, size: 40, font: "11px system-ui" },
          ],
          series: [
            {},
            ...series.map(({ run, flow }) => ({
              stroke: () => (plot.perFlow ? flowColour(flow) : ink()),
              width: 1.6,
              dash: run === 1 ? [5, 4] : undefined,
              points: { show: false },
            })),
          ],
          hooks: {
            draw: [
              (chart) => {
                const x = chart.valToPos(this.now, "x", true);
                if (!(x >= chart.bbox.left && x <= chart.bbox.left + chart.bbox.width)) return;
                chart.ctx.strokeStyle = ink();
                chart.ctx.lineWidth = 1;
                chart.ctx.beginPath();
                chart.ctx.moveTo(x, chart.bbox.top);
                chart.ctx.lineTo(x, chart.bbox.top + chart.bbox.height);
                chart.ctx.stroke();
              },
            ],
          },
        },
        [[], ...series.map(() => [])] as uPlot.AlignedData,
        figure,
      );
      return { plot, chart, series, value };
    });
  }

  draw(now: number): void {
    this.now = now;
    const longest = this.runs.reduce((a, b) => (b.samples.length / b.sampleWidth > a.samples.length / a.sampleWidth ? b : a));
    const count = longest.samples.length / longest.sampleWidth;
    const stride = Math.max(1, Math.ceil(count / MOST_POINTS));
    const samples = Array.from({ length: Math.floor(count / stride) }, (_, i) => (i + 1) * stride - 1);
    const x = samples.map((sample) => time(longest, sample));
    for (const { plot, chart, series, value } of this.shown) {
      const lines = series.map(({ run, flow }) =>
        samples.map((sample) => (sample * this.runs[run].sampleWidth < this.runs[run].samples.length ? plot.value(this.runs[run], sample, flow) : null)),
      );
      chart.setSize({ width: chart.root.parentElement?.clientWidth || 300, height: 120 });
      chart.setData([x, ...lines] as uPlot.AlignedData);
      // The numbers at the present time, for those who do not see the plot.
      const place = x.findLastIndex((moment) => moment <= now + 1e-9);
      const texts = this.runs.map((_, run) => {
        const values = lines.filter((_, line) => series[line].run === run).map((line) => line[place]);
        return values.map((one) => (one == null ? "–" : one.toFixed(plot.digits))).join(", ");
      });
      value.textContent = place < 0 ? "" : texts.join(" | ");
    }
  }
}
