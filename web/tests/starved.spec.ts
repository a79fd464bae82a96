// The rule of who starved is that of the command: both are held against one table.
import { expect, test } from "@playwright/test";
import { readFileSync } from "node:fs";
import { kind, starved } from "../src/starved";

type Case = { what: string; measured_s: number; delivered_bytes: number; longest_gap_s: number | null; starved: "nothing" | "gap" | null };
const cases = JSON.parse(readFileSync("../crates/lab/src/record/starvation-cases.json", "utf8")) as Case[];

/** What the page says at a time of a run that measures from 20 s on. */
const said = (one: Case, at: number): string[] =>
  starved({
    stage: { warmup_s: 20, duration_s: 20 + one.measured_s, flows: [{ from: 0, to: 1, transport: "newreno", start_s: 1 }] },
    measured: { duration_s: at, flows: [{ delivered_bytes: one.delivered_bytes, longest_gap_s: one.longest_gap_s }] },
  } as unknown as Parameters<typeof starved>[0]);

test("who starved is told by the table that the command is held against", () => {
  expect(cases.length).toBeGreaterThanOrEqual(9);
  for (const one of cases) {
    expect(kind(one.delivered_bytes, one.longest_gap_s, one.measured_s), one.what).toBe(one.starved);
    const text = { nothing: /delivered nothing$/, gap: /was silent for/ };
    const end = said(one, 20 + one.measured_s);
    if (one.starved === null) expect(end, one.what).toEqual([]);
    else expect(end[0], one.what).toMatch(text[one.starved]);
  }
});

test("before a silence can have been long nothing is told", () => {
  const nothing = cases.find(({ longest_gap_s, delivered_bytes }) => longest_gap_s === null && delivered_bytes === 0)!;
  expect(said(nothing, 29)).toEqual([]);
  expect(said(nothing, 31)).toEqual(["flow 0 (node 0 to node 1) delivered nothing"]);
});
