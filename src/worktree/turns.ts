/** Where an execution stands among all others: the places of its steps in their scopes, with item and iteration. */
export type Order = readonly number[];

/** One execution that has a worktree, from before it is made until its changes are where they belong. */
export interface Turn {
  /** Whether one that is declared earlier is open. */
  readonly waits: boolean;
  /** Resolves with true when none that is declared earlier is open any more, with false when `signal` came first. */
  mine(signal: AbortSignal): Promise<boolean>;
  /** Gives it up; a second time does nothing. */
  close(): void;
}

interface Entry {
  readonly order: Order;
  wake: () => void;
}

/**
 * Who is open at the same time takes turns in the order of declaration. Each waits only for smaller ones, and these for
 * still smaller ones, so that nobody waits in a circle; whoever has the smallest order waits for nobody.
 */
export class Turns {
  readonly #open = new Set<Entry>();

  open(order: Order): Turn {
    const own: Entry = { order, wake: () => undefined };
    this.#open.add(own);
    const waits = (): boolean => compareOrders(this.#smallest()?.order ?? order, order) < 0;
    return {
      get waits() {
        return waits();
      },
      mine: async (signal) => {
        const { promise, resolve } = Promise.withResolvers<void>();
        own.wake = resolve;
        signal.addEventListener("abort", own.wake, { once: true });
        if (waits() && !signal.aborted) await promise;
        signal.removeEventListener("abort", own.wake);
        return !signal.aborted;
      },
      close: () => {
        if (this.#open.delete(own)) this.#wakeSmallest();
      },
    };
  }

  #smallest(): Entry | undefined {
    let smallest: Entry | undefined;
    for (const entry of this.#open)
      if (smallest === undefined || compareOrders(entry.order, smallest.order) < 0) smallest = entry;
    return smallest;
  }

  /** Those of equal order too, of two attempts that a deadline has parted for example. */
  #wakeSmallest(): void {
    const smallest = this.#smallest();
    if (smallest === undefined) return;
    for (const entry of this.#open) if (compareOrders(entry.order, smallest.order) === 0) entry.wake();
  }
}

/** Negative when `a` is declared first; what lies inside something comes behind it. */
export function compareOrders(a: Order, b: Order): number {
  for (const [index, place] of a.entries()) {
    const other = b[index];
    if (other === undefined) return 1;
    if (place !== other) return place - other;
  }
  return a.length - b.length;
}
