// The rule of who starved is that of the command: both are held against one table.
import { expect, test } from "@playwright/test";
import { readFileSync } from "node:fs";
import { silence, silent } from "../src/starved";

type Case = { what: string; measured_s: number; delivered_bytes: number; longest_gap_s: number | null; longest_gap_with_path_s?: number; starved: "nothing" | "gap" | null; without_path?: "nothing" | "gap" };
const cases = JSON.parse(readFileSync("../crates/lab/src/record/starvation-cases.json", "utf8")) as Case[];

/** What the page says at a time of a run that measures from 20 s on. */
const said = (one: Case, at: number, noPath = false): string[] =>
  silent({
    stage: { warmup_s: 20, duration_s: 20 + one.measured_s, flows: [{ from: 0, to: 1, transport: "newreno", start_s: 1 }] },
    measured: { duration_s: at, flows: [{ delivered_bytes: one.delivered_bytes, longest_gap_s: one.longest_gap_s, longest_gap_with_path_s: one.longest_gap_with_path_s }] },
  } as unknown as Parameters<typeof silent>[0], noPath);

test("who starved is told by the table that the command is held against", () => {
  expect(cases.length).toBeGreaterThanOrEqual(15);
  for (const one of cases) {
    const found = silence(one.delivered_bytes, one.longest_gap_s, one.longest_gap_with_path_s ?? null, one.measured_s);
    const what = one.starved ?? one.without_path;
    expect(found, one.what).toEqual(what ? { what, noPath: one.starved === null } : null);
    const text = { nothing: /delivered nothing$/, gap: /was silent for/ };
    for (const [noPath, expected] of [[false, one.starved], [true, one.without_path]] as const) {
      const end = said(one, 20 + one.measured_s, noPath);
      if (!expected) expect(end, one.what).toEqual([]);
      else expect(end[0], one.what).toMatch(text[expected]);
    }
  }
});

test("before a silence can have been long nothing is told", () => {
  const nothing = cases.find(({ longest_gap_s, delivered_bytes }) => longest_gap_s === null && delivered_bytes === 0)!;
  expect(said(nothing, 29)).toEqual([]);
  expect(said(nothing, 31)).toEqual(["flow 0 (node 0 to node 1) delivered nothing"]);
});
