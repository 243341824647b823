/** Places for so many at once. Who finds none waits, first come, first served. */
export class Places {
  readonly #line: (() => void)[] = [];
  #free: number;

  constructor(count: number) {
    this.#free = count;
  }

  /** Resolves with what gives the place back; with undefined when `signal` is aborted before there is one. */
  take(signal: AbortSignal | undefined): Promise<(() => void) | undefined> {
    if (signal?.aborted) return Promise.resolve(undefined);
    if (this.#free === 0) return this.#wait(signal);
    this.#free -= 1;
    return Promise.resolve(this.#leave);
  }

  readonly #leave = (): void => {
    const next = this.#line.shift();
    // Handed on, not put back: nobody overtakes the first in line.
    if (next === undefined) this.#free += 1;
    else next();
  };

  async #wait(signal: AbortSignal | undefined): Promise<(() => void) | undefined> {
    const turn = Promise.withResolvers<(() => void) | undefined>();
    const come = (): void => turn.resolve(this.#leave);
    const abort = (): void => {
      const at = this.#line.indexOf(come);
      if (at === -1) return;
      this.#line.splice(at, 1);
      turn.resolve(undefined);
    };
    this.#line.push(come);
    signal?.addEventListener("abort", abort);
    const leave = await turn.promise;
    signal?.removeEventListener("abort", abort);
    return leave;
  }
}
