// Of all that is opened, the page shows what was opened last, whatever is loaded first.

/** Something that is opened: what the page begins with, a story, a link, a file, a scenario that was written. Only `show` brings it on the page. */
export class Opening {
  private static latest: Opening | null = null;
  private static shown: Opening | null = null;
  private readonly control = new AbortController();

  /** What was opened before and is not shown yet will not be shown any more. */
  constructor() {
    if (Opening.latest !== Opening.shown) Opening.latest?.control.abort();
    Opening.latest = this;
  }

  /** What was opened last, be it shown, still loading or refused. */
  static get last(): Opening | null {
    return Opening.latest;
  }

  /** Aborted as soon as it has no more to say: something else was opened before this was shown, or is shown now. */
  get signal(): AbortSignal {
    return this.control.signal;
  }
  get counts(): boolean {
    return !this.signal.aborted;
  }

  /** Waits for a piece of it. Throws if it does not count any more by then. */
  async still<T>(piece: Promise<T>): Promise<T> {
    const value = await piece;
    this.signal.throwIfAborted();
    return value;
  }

  /** Puts it on the page, if it counts. `put` is all or nothing; whether it is shown. */
  show(put: () => boolean): boolean {
    if (!this.counts || !put()) return false;
    if (Opening.shown !== this) Opening.shown?.control.abort();
    Opening.shown = this;
    return true;
  }
}
