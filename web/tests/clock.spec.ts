// What seeking and playing cost, with a machine whose time is in the test's hand.
import { expect, test } from "@playwright/test";
import { Clock } from "../src/clock";
import type { Shown } from "../src/run";

/** Milliseconds that computing takes in all, and at most in one picture, while a run of 900 s is sought through whose tenth of a second takes 1 ms. */
function sought(drawing: number): { machine: number; most: number } {
  let machine = 0;
  const real = performance.now;
  performance.now = () => machine;
  try {
    const run = { now: 0, reach: 1000, over: false, stage: { duration_s: 1000 }, approach: () => {}, advance: (to: number) => void (run.now = to), hasten: (to: number) => void ((machine += 1), (run.now = to)) };
    const clock = new Clock();
    clock.use([run as unknown as Shown], 900);
    let most = 0;
    while (clock.seeking) {
      machine += drawing;
      const begun = machine;
      clock.tick(drawing / 1e3);
      most = Math.max(most, machine - begun);
    }
    expect(run.now).toBe(900);
    return { machine, most };
  } finally {
    performance.now = real;
  }
}

test("seeking takes half of the time, however seldom the machine draws", () => {
  // 9000 ms of computing.
  expect(sought(100).machine).toBeLessThan(2.2 * 9000);
});

test("seeking leaves a machine that draws fast its pictures", () => {
  // Sixty pictures a second are 16.7 ms each.
  expect(sought(4).most).toBeLessThan(13);
});

test("a picture is never held up for long", () => {
  expect(sought(3000).most).toBeLessThanOrEqual(201);
});
