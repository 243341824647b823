/**
 * The places in which executions run, and the line before them: first come, first served. Pure; the caller offers
 * steps that become ready at one moment in declaration order, which makes that the tie-break.
 */
export class Slots<T> {
  readonly #line = new Line<T>();
  #free: number;

  constructor(count: number) {
    if (!(count >= 1)) throw new Error(`a run needs at least one slot, not ${count}`);
    this.#free = count;
  }

  /** Puts an entry in line; true if every slot is taken, so that it has to wait. */
  offer(entry: T): boolean {
    this.#line.push(entry);
    return this.#free < this.#line.length;
  }

  /** The first in line, which now holds a slot until {@link release}; undefined if none is free or nobody waits. */
  take(): T | undefined {
    if (this.#free === 0) return undefined;
    const entry = this.#line.shift();
    if (entry !== undefined) this.#free -= 1;
    return entry;
  }

  release(): void {
    this.#free += 1;
  }
}

/** A queue whose `shift` does not move the rest. */
export class Line<T> {
  #entries: T[] = [];
  #head = 0;

  get length(): number {
    return this.#entries.length - this.#head;
  }

  push(entry: T): void {
    this.#entries.push(entry);
  }

  shift(): T | undefined {
    if (this.length === 0) return undefined;
    const entry = this.#entries[this.#head];
    this.#head += 1;
    if (this.#head > 1024 && this.#head * 2 > this.#entries.length) {
      this.#entries = this.#entries.slice(this.#head);
      this.#head = 0;
    }
    return entry;
  }
}
