import type { Wait } from "../model/ports.ts";
import type { Lane, Loop } from "./loop.ts";

/** What has to know when an execution does nothing but wait: the slot it holds, a loop, a time limit, its scope. */
export interface Around {
  /** All that is left of it waits for somebody outside. */
  rest(waiting: Waiting): void;
  /** Something in it can go on; calls back, at once or later, when there is room for it. */
  wake(then: () => void): void;
}

export interface Waiting {
  /** Whether a step may still run because of it. */
  readonly releases: boolean;
  /** Ends it without an answer. */
  readonly abandon: () => void;
}

/** How many waits of a run may be answered while it goes on. */
export interface Hopes {
  count: number;
}

/** What an attempt calls to wait. */
export function waitIn({ loop, hopes }: { readonly loop: Loop; readonly hopes: Hopes }, around: Around): Wait {
  return (answer, isHere) =>
    new Promise((resolve, reject) => {
      let isOpen = true;
      const close = (then: () => void): void => {
        if (!isOpen) return;
        isOpen = false;
        if (isHere) hopes.count -= 1;
        around.wake(then);
        loop.turn();
      };
      if (isHere) hopes.count += 1;
      around.rest({ releases: false, abandon: () => close(() => resolve(undefined)) });
      loop.turn();
      answer.then(
        (value) => close(() => resolve(value)),
        (bug: unknown) => close(() => reject(bug)),
      );
    });
}

/** Around what holds a slot: it is given back while it waits, and lined up for again. */
export function givingBack(
  { lane, loop }: { readonly lane: Lane; readonly loop: Loop },
  around: Around | undefined,
): Around | undefined {
  if (around === undefined) return undefined;
  return {
    rest: (waiting) => {
      lane.release();
      around.rest(waiting);
    },
    wake: (then) =>
      around.wake(() => {
        lane.line({ decide: () => undefined, start: then }, 0);
        loop.turn();
      }),
  };
}

/** Whether the waits of a scope or loop are worth it, once nothing else goes on in it. */
export type Judge = (waiting: ReadonlyMap<number, Waiting>) => { readonly releases: boolean; readonly isMoot: boolean };

/**
 * What goes on in a scope or loop, by the index of a step or item. When all that is left waits, so does the whole, and
 * when something of it can go on the whole is woken first. Waits that are moot are ended instead.
 */
export class Activity {
  readonly #around: Around | undefined;
  readonly #judge: Judge;
  readonly #waiting = new Map<number, Waiting>();
  /** Those to call once the whole is awake; undefined while nobody wakes it. */
  #wakers: (() => void)[] | undefined;
  #isResting = false;
  #going = 0;

  constructor(around: Around | undefined, judge: Judge) {
    this.#around = around;
    this.#judge = judge;
  }

  begin(): void {
    this.#going += 1;
  }

  /** Call it after whatever follows has begun. */
  end(index: number): void {
    // It was given up in the middle of its wait.
    if (this.#waiting.delete(index)) this.#wake(() => undefined);
    else this.#going -= 1;
    this.#restIfIdle();
  }

  /** What is around one of them; undefined where nothing may wait. */
  of(index: number): Around | undefined {
    if (this.#around === undefined) return undefined;
    return {
      rest: (waiting) => {
        this.#waiting.set(index, waiting);
        this.#going -= 1;
        this.#restIfIdle();
      },
      wake: (then) => {
        this.#waiting.delete(index);
        this.#going += 1;
        this.#wake(then);
      },
    };
  }

  #restIfIdle(): void {
    if (this.#going > 0 || this.#waiting.size === 0 || this.#isResting) return;
    const { releases, isMoot } = this.#judge(this.#waiting);
    const abandon = (): void => {
      for (const { abandon: end } of Array.from(this.#waiting.values())) end();
    };
    if (isMoot) {
      abandon();
      return;
    }
    this.#isResting = true;
    this.#around?.rest({ releases, abandon });
  }

  #wake(then: () => void): void {
    if (!this.#isResting) {
      then();
      return;
    }
    if (this.#wakers !== undefined) {
      this.#wakers.push(then);
      return;
    }
    this.#wakers = [then];
    this.#around?.wake(() => {
      const wakers = this.#wakers ?? [];
      this.#isResting = false;
      this.#wakers = undefined;
      for (const waker of wakers) waker();
    });
  }
}
