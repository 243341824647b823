import { Line, Slots } from "./slots.ts";

/** A scope in execution, as the loop sees it. */
export interface Owner {
  /** All sources of the step have settled: skip it, fail it, start it, or put it in line for a slot. */
  decide(step: number): void;
  /** The step holds a slot; the owner gives it back with {@link Loop.release}. */
  start(step: number): void;
}

/** Where executions line up for a slot. */
export interface Lane {
  /** True if the step has to wait for its slot. */
  line(owner: Owner, step: number): boolean;
  release(): void;
}

interface Entry {
  readonly owner: Owner;
  readonly step: number;
}

/**
 * Turns the whole run: every scope leaves here what is to be decided and what waits for a slot. One flat loop, so that
 * a chain of a hundred thousand steps that all answer at once needs no stack; it pauses now and then so that signals
 * and timers get through.
 */
export class Loop implements Lane {
  readonly #undecided = new Line<Entry>();
  readonly #slots: Slots<Entry>;
  readonly #crash: (bug: unknown) => void;
  #turning = false;

  /** `crash` hears of an exception, which is a bug, once it has stopped the loop. */
  constructor(slots: number, crash: (bug: unknown) => void) {
    this.#slots = new Slots(slots);
    this.#crash = crash;
  }

  decideLater(owner: Owner, step: number): void {
    this.#undecided.push({ owner, step });
  }

  line(owner: Owner, step: number): boolean {
    return this.#slots.offer({ owner, step });
  }

  release(): void {
    this.#slots.release();
  }

  /** Goes on until nothing can be decided or started. Safe to call from anywhere, also from inside a turn. */
  turn(): void {
    if (this.#turning) return;
    this.#turning = true;
    try {
      for (let count = 0; count < turnsBeforePause; count++) {
        if (!this.#once()) {
          this.#turning = false;
          return;
        }
      }
    } catch (bug) {
      this.#crash(bug);
      return;
    }
    setImmediate(() => {
      this.#turning = false;
      this.turn();
    });
  }

  /** Calls back when `work` has ended, and turns on. */
  after<T>(work: Promise<T>, then: (value: T) => void): void {
    work
      .then((value) => {
        then(value);
        this.turn();
      })
      .catch(this.#crash);
  }

  /** Starting goes before deciding: what answers at once has given its slot back before the next step asks for one. */
  #once(): boolean {
    const ready = this.#slots.take();
    if (ready !== undefined) {
      ready.owner.start(ready.step);
      return true;
    }
    const entry = this.#undecided.shift();
    entry?.owner.decide(entry.step);
    return entry !== undefined;
  }
}

const turnsBeforePause = 256;

/** A lane inside another one: an execution in it holds a slot of both. */
export class NarrowLane implements Lane {
  readonly #outer: Lane;
  readonly #waiting = new Line<Entry>();
  #free: number;

  constructor(outer: Lane, slots: number) {
    this.#outer = outer;
    this.#free = slots;
  }

  line(owner: Owner, step: number): boolean {
    if (this.#free === 0) {
      this.#waiting.push({ owner, step });
      return true;
    }
    this.#free -= 1;
    return this.#outer.line(owner, step);
  }

  release(): void {
    this.#outer.release();
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else this.#outer.line(next.owner, next.step);
  }
}
