// Who starved, by the rule of the command's summaries: nothing delivered, or nothing for longer than a tenth of what the run measures.
import type { Shown } from "./run";

const LONG = 0.1;
const MOST_NAMED = 4;

/** The flows that starved until now, in words; none before so long a silence was possible. */
export function starved(run: Shown): string[] {
  const { duration_s: duration, warmup_s: warmup, flows } = run.stage;
  const { duration_s: at, flows: measured } = run.measured;
  const long = LONG * (duration - warmup);
  const said: string[] = [];
  flows.forEach((flow, number) => {
    const { delivered_bytes: delivered, longest_gap_s: known } = measured[number];
    // A recording has no gaps, but the bytes: a flow without any has been silent since it began.
    const gap = known ?? (delivered === 0 ? Math.max(0, at - Math.max(warmup, flow.start_s)) : 0);
    const over = at >= duration;
    const nothing = delivered === 0 && gap > (over ? 0 : long);
    if (nothing) said.push(`flow ${number} (${flow.from}→${flow.to}) delivered nothing`);
    else if (gap > long) said.push(`flow ${number} (${flow.from}→${flow.to}) was silent for ${gap.toFixed(1)} s`);
  });
  return said.length > MOST_NAMED ? [...said.slice(0, MOST_NAMED), `${said.length - MOST_NAMED} more`] : said;
}
