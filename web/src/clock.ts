// The time of all runs on the page: they stand at the same simulated time, always.
import type { Shown } from "./run";

/** Simulated seconds per second; 0 is "one frame after the other". */
export const SPEEDS = [0, 0.0005, 0.002, 0.01, 0.05, 0.2, 1, 5, 20, 100, 1000];
/** Frames per second in the slowest setting. */
const FRAMES_PER_SECOND = 4;
/** What a picture may cost in computing, milliseconds. */
const BUDGET = 11;
/** The most that a picture may cost while a time is sought, milliseconds. */
const SEEKING = 200;

export class Clock {
  runs: Shown[] = [];
  playing = false;
  speed = 6;
  /** Where the runs are going; they may be on the way there. */
  private target = 0;
  private goal: number | null = null;
  private waited = 0;
  /** When the last picture began, by the machine's clock; milliseconds. */
  private begun = performance.now();
  /** What this picture may cost while a time is sought, milliseconds: half of what the last one took, so that a busy machine seeks half of its time. */
  private share = BUDGET;
  /** The speed that is reached, simulated seconds per second, smoothed. */
  reached = 0;
  /** Pictures per second, smoothed. */
  pictures = 0;
  onSeek: () => void = () => {};
  /** What is looked for in time that was not played yet. */
  private looking: { find: () => number | null; none: () => void } | null = null;
  /** Where playing stops by itself, once; null at the end of the run. */
  until: number | null = null;

  get now(): number {
    return this.runs.length ? Math.min(...this.runs.map((run) => run.now)) : 0;
  }
  get end(): number {
    return this.runs[0]?.stage.duration_s ?? 0;
  }
  get seeking(): boolean {
    return this.goal !== null || this.looking !== null;
  }
  /** Simulated seconds per second, for drawing. */
  get pace(): number {
    return this.playing && !this.seeking ? SPEEDS[this.speed] : 0;
  }

  use(runs: Shown[], at: number): void {
    this.runs = runs;
    this.until = null;
    this.looking = null;
    this.target = 0;
    this.goal = null;
    if (at > 0) this.seek(at);
  }

  seek(to: number): void {
    this.until = null;
    this.looking = null;
    const at = Math.max(0, Math.min(to, this.end, ...this.runs.map((run) => run.reach)));
    this.runs.forEach((run) => run.approach(Math.max(0, at - 0.01)));
    this.goal = at;
    this.target = at;
    this.onSeek();
  }

  /** Runs on until `find` has found a time, which is gone to, or tells that there is none until the end. `find` may look at all that is known. */
  lookFor(find: () => number | null, none: () => void): void {
    const at = this.now;
    this.seek(at);
    this.playing = false;
    this.looking = {
      find,
      none: () => {
        this.seek(at);
        none();
      },
    };
  }

  /** To the next frame, in whichever run it is. */
  step(): void {
    this.playing = false;
    if (this.seeking) return;
    this.runs.forEach((run) => run.step());
    const first = Math.min(...this.runs.map((run) => run.now));
    for (const run of this.runs) {
      if (run.now > first) {
        run.approach(first);
        run.advance(first);
      }
    }
    this.target = first;
  }
  /** To the frame before, in whichever run it is. */
  stepBack(): void {
    this.playing = false;
    if (this.seeking) return;
    const at = this.now;
    this.runs.forEach((run) => {
      if (run.now > at) run.approach(at), run.advance(at);
    });
    this.runs.forEach((run) => run.stepBack());
    const latest = Math.max(...this.runs.map((run) => run.now));
    this.runs.forEach((run) => run.now < latest && run.advance(latest));
    this.target = latest;
  }

  /** Moves on by `elapsed` seconds of the wall's clock. */
  tick(elapsed: number): void {
    const began = performance.now();
    this.share = Math.max(BUDGET, Math.min((began - this.begun) / 2, SEEKING));
    this.begun = began;
    this.pictures += (1 / Math.max(elapsed, 1e-3) - this.pictures) * 0.05;
    if (this.goal !== null) {
      this.hasten(this.goal);
      return;
    }
    if (this.looking) {
      this.look(this.looking);
      return;
    }
    if (!this.playing) return;
    const speed = SPEEDS[this.speed];
    const before = this.now;
    if (speed === 0) {
      this.waited += elapsed;
      if (this.waited >= 1 / FRAMES_PER_SECOND) {
        this.waited = 0;
        const playing = this.playing;
        this.step();
        this.playing = playing;
      }
    } else {
      // A page that was hidden does not jump.
      this.target = Math.min(this.end, this.until ?? this.end, this.target + Math.min(elapsed, 0.1) * speed);
      const begun = performance.now();
      // In slices, so that a mesh that is too much for this speed is slower instead of stuck.
      while (this.now < this.target - 1e-9 && performance.now() - begun < BUDGET) {
        const begins = this.now;
        const slice = Math.min(this.target, begins + Math.max(speed * 0.004, 2e-4));
        this.runs.forEach((run) => run.now < slice && run.advance(slice));
        // Over, or not yet written.
        if (this.now <= begins) break;
      }
      if (this.now < this.target - 0.05 * speed) this.target = this.now;
    }
    this.reached += ((this.now - before) / Math.max(elapsed, 1e-3) - this.reached) * 0.1;
    const there = this.until !== null && this.now >= this.until - 1e-9;
    if (there) this.until = null;
    if (there || this.runs.every((run) => run.over)) this.playing = false;
  }

  private look({ find, none }: { find: () => number | null; none: () => void }): void {
    const begun = performance.now();
    for (;;) {
      const found = find();
      if (found !== null) return this.seek(found);
      if (this.runs.every((run) => run.over || run.now >= run.reach)) return none();
      if (performance.now() - begun > this.share) return;
      const slice = Math.min(this.end, this.now + 0.25);
      this.runs.forEach((run) => run.now < slice && run.hasten(slice));
    }
  }

  private hasten(goal: number): void {
    const begun = performance.now();
    while (this.now < goal - 0.011 && !this.runs.every((run) => run.over) && performance.now() - begun < this.share) {
      const slice = Math.min(goal - 0.01, this.now + 0.1);
      this.runs.forEach((run) => run.now < slice && run.hasten(slice));
    }
    if (this.now >= goal - 0.011 || this.runs.every((run) => run.over)) {
      this.runs.forEach((run) => run.now < goal && run.advance(goal));
      this.goal = null;
      this.onSeek();
    }
  }
}
