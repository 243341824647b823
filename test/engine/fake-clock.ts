import type { Clock } from "../../src/model/ports.ts";

/** A clock that stands still until a test moves it. Timers fire in the order of their time, then of their making. */
export class FakeClock implements Clock {
  #time = 0;
  #made = 0;
  #timers: { readonly at: number; readonly seq: number; readonly callback: () => void }[] = [];

  now(): number {
    return 1_700_000_000_000 + this.#time;
  }

  monotonic(): number {
    return this.#time;
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { at: this.#time + ms, seq: this.#made++, callback };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  /** How many timers have neither fired nor been taken back. */
  get pending(): number {
    return this.#timers.length;
  }

  /** Fires the next timer at its time; false if there is none. */
  fireNext(): boolean {
    const [first, ...rest] = this.#timers;
    if (first === undefined) return false;
    const next = rest.reduce((best, timer) => (timer.at < best.at ? timer : best), first);
    this.#timers = this.#timers.filter((timer) => timer !== next);
    this.#time = next.at;
    next.callback();
    return true;
  }
}
