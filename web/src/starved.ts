// Silent flows, by the rule of the command's summaries: nothing delivered, or nothing for longer than a tenth of what the run measures. A flow is
// starved if it was silent although there was a path between its ends.
import { flowName } from "./flows";
import type { Shown } from "./run";

const LONG = 0.1;
const MOST_NAMED = 4;

/** What a flow did: it delivered nothing, or nothing for long; and whether it had no path meanwhile. */
export type Silence = { what: "nothing" | "gap"; noPath: boolean };

/**
 * The rule, at the end of a run that measured so many seconds: bytes delivered, the longest gap in seconds, and that without its time without
 * a path; null where that is not known.
 */
export function silence(delivered: number, gap: number | null, withPath: number | null, measured: number): Silence | null {
  // It never had anything to send.
  if (gap === 0) return null;
  const long = (one: number | null): boolean => one !== null && one > LONG * measured;
  const pathless = withPath !== null && gap !== null && withPath < gap && !long(withPath);
  if (delivered === 0) return { what: "nothing", noPath: pathless };
  return long(gap) ? { what: "gap", noPath: pathless } : null;
}

/** The flows that starved until now, or had no path, in words; none before so long a silence was possible. */
export function silent(run: Pick<Shown, "stage" | "measured">, noPath: boolean): string[] {
  const { duration_s: duration, warmup_s: warmup, flows } = run.stage;
  const { duration_s: at, flows: measured } = run.measured;
  const said: string[] = [];
  flows.forEach((flow, number) => {
    const { delivered_bytes: delivered, longest_gap_s: gap, longest_gap_with_path_s: withPath } = measured[number];
    const found = silence(delivered, gap, withPath ?? null, duration - warmup);
    if (found?.noPath !== noPath) return;
    // Until the end, nothing is only told of when it has lasted; a recording without gaps has the bytes: a flow without any has been silent since it began.
    const lasted = (found.noPath ? gap : withPath ?? gap) ?? Math.max(0, at - Math.max(warmup, flow.start_s));
    if (at < duration && lasted <= LONG * (duration - warmup)) return;
    const what = found.what === "nothing" ? "delivered nothing" : `was silent for ${lasted.toFixed(1)} s`;
    said.push(`${flowName(flows, number)} (node ${flow.from} to node ${flow.to}) ${what}`);
  });
  return said.length > MOST_NAMED ? [...said.slice(0, MOST_NAMED), `${said.length - MOST_NAMED} more`] : said;
}
