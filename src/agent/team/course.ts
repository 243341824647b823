import type { MemberRun } from "../agent-ports.ts";

/**
 * In a replay: what the members of a team began in the recorded run, and in which order. Who takes up what, and whose
 * run is counted first, is a matter of time; what is said names both.
 */
export class Course {
  #left: readonly MemberRun[];
  /** How many agent runs of members there have been. */
  #counted = 0;
  readonly #waiting = new Map<number, () => void>();

  constructor(runs: readonly MemberRun[]) {
    this.#left = runs;
  }

  /** What begins next; undefined when nothing is laid down any more. */
  get next(): MemberRun | undefined {
    return this.#left[0];
  }

  /** It begins. */
  begin(): MemberRun | undefined {
    const [next, ...left] = this.#left;
    this.#left = left;
    return next;
  }

  /** Undefined when its agent run may begin; else resolves then. */
  turn(run: MemberRun | undefined): Promise<void> | undefined {
    const place = run?.place ?? 0;
    return place <= this.#counted ? undefined : new Promise((resolve) => this.#waiting.set(place, resolve));
  }

  /** Its agent run has begun, or never will. */
  count(run: MemberRun | undefined): void {
    if (run?.place === undefined) return;
    this.#counted = Math.max(this.#counted, run.place + 1);
    this.#waiting.get(this.#counted)?.();
    this.#waiting.delete(this.#counted);
  }

  /** What happens is not what happened: from here on nothing is laid down. */
  leave(): void {
    this.#left = [];
    this.#counted = Infinity;
    for (const go of this.#waiting.values()) go();
    this.#waiting.clear();
  }
}
