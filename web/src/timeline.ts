// The line of time with what stands out in it: timeouts, links given up, routes lost and found.
import { bad, faint, good, ink } from "./colours";
import { flowName } from "./flows";
import type { Shown } from "./run";

const NAMES: Record<number, (whose: number, run: Shown) => string> = {
  1: (flow, run) => `timeout of ${flowName(run.stage.flows, flow)}`,
  2: (node) => `node ${node} gives up a neighbour`,
  3: (node) => `node ${node} loses a route`,
  4: (node) => `node ${node} has a route again`,
};

export type Moment = { at: number; kind: number; text: string; run: number };

/** What stands out in the runs, in the order of time. */
export function moments(runs: Shown[]): Moment[] {
  const all = runs.flatMap((run, number) =>
    run.marks.map(([at, kind, whose]) => ({
      at,
      kind,
      run: number,
      text: NAMES[kind](whose, run) + (runs.length > 1 ? ` (${"AB"[number]})` : ""),
    })),
  );
  return all.sort((a, b) => a.at - b.at);
}

export function draw(canvas: HTMLCanvasElement, runs: Shown[], end: number): void {
  const width = canvas.clientWidth;
  const height = 26;
  const ratio = Math.min(devicePixelRatio || 1, 2);
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const pen = canvas.getContext("2d");
  if (!pen || !end) return;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.strokeStyle = faint();
  runs.forEach((run, row) => {
    const middle = (height * (row + 0.5)) / runs.length;
    pen.strokeStyle = faint();
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(0, middle);
    pen.lineTo(width, middle);
    pen.stroke();
    const tall = height / runs.length / 2 - 1;
    for (const [at, kind] of run.marks) {
      const x = 8 + (at / end) * (width - 16);
      pen.strokeStyle = kind === 1 ? ink() : kind === 4 ? good() : bad();
      pen.lineWidth = kind === 1 ? 2 : 1;
      pen.beginPath();
      pen.moveTo(x, middle - (kind === 2 ? tall / 2 : tall));
      pen.lineTo(x, kind === 1 ? middle + tall : middle);
      pen.stroke();
    }
  });
}
