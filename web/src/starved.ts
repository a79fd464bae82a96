// Starved flows, by the rule of the command's summaries: nothing delivered, or nothing for longer than a tenth of what the run measures.
import { flowName } from "./flows";
import type { Shown } from "./run";

const LONG = 0.1;
const MOST_NAMED = 4;

/** The rule, at the end of a run that measured so many seconds: bytes delivered, and the longest gap in seconds, null where that is not known. */
export function kind(delivered: number, gap: number | null, measured: number): "nothing" | "gap" | null {
  // It never had anything to send.
  if (gap === 0) return null;
  if (delivered === 0) return "nothing";
  return gap !== null && gap > LONG * measured ? "gap" : null;
}

/** The flows that starved until now, in words; none before so long a silence was possible. */
export function starved(run: Pick<Shown, "stage" | "measured">): string[] {
  const { duration_s: duration, warmup_s: warmup, flows } = run.stage;
  const { duration_s: at, flows: measured } = run.measured;
  const said: string[] = [];
  flows.forEach((flow, number) => {
    const { delivered_bytes: delivered, longest_gap_s: gap } = measured[number];
    const found = kind(delivered, gap, duration - warmup);
    // Until the end, nothing is only told of when it has lasted; a recording without gaps has the bytes: a flow without any has been silent since it began.
    const silent = gap ?? Math.max(0, at - Math.max(warmup, flow.start_s));
    if (!found || (at < duration && silent <= LONG * (duration - warmup))) return;
    const what = found === "nothing" ? "delivered nothing" : `was silent for ${silent.toFixed(1)} s`;
    said.push(`${flowName(flows, number)} (node ${flow.from} to node ${flow.to}) ${what}`);
  });
  return said.length > MOST_NAMED ? [...said.slice(0, MOST_NAMED), `${said.length - MOST_NAMED} more`] : said;
}
