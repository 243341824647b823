import type { Clock, ModelClient, ModelDelta } from "../model/ports.ts";

/** What everybody waits after a refusal for being too fast, where the server does not say how long. */
const pauseAfterRefusal = 3_000;
/** No server is waited for longer at one go. */
const longestPause = 60_000;

/**
 * The calls to one provider, of all agents of a run: at most so many at once, first come, first served. A 429 slows
 * everybody down: nobody begins before the server's delay is over, and half as many may call; each success allows one
 * more again.
 */
export class Limiter {
  readonly #most: number;
  readonly #clock: Clock;
  readonly #line = new Set<() => void>();
  #allowed: number;
  #running = 0;
  #pausedUntil = -Infinity;
  #stopTimer: (() => void) | undefined;

  constructor(most: number, clock: Clock) {
    this.#most = most;
    this.#allowed = most;
    this.#clock = clock;
  }

  /** Resolves when the call may begin: true, and it has to be given back by {@link leave}; false when it was aborted. */
  enter(signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false);
    if (this.#line.size === 0 && this.#running < this.#allowed && this.#pausedUntil <= this.#clock.monotonic()) {
      this.#running++;
      return Promise.resolve(true);
    }
    return new Promise((resolve) => {
      const begin = (): void => {
        signal.removeEventListener("abort", give);
        this.#running++;
        resolve(true);
      };
      const give = (): void => {
        this.#line.delete(begin);
        if (this.#line.size === 0) this.#stopTimer?.();
        resolve(false);
      };
      signal.addEventListener("abort", give, { once: true });
      this.#line.add(begin);
      this.#serve();
    });
  }

  leave(end: ModelDelta | undefined): void {
    this.#running--;
    if (end?.type === "done") this.#allowed = Math.min(this.#most, this.#allowed + 1);
    if (end?.type === "failed" && end.failure.kind === "rate_limit" && end.failure.transient) {
      this.#allowed = Math.max(1, Math.floor(this.#allowed / 2));
      const pause = Math.min(end.failure.retryAfter ?? pauseAfterRefusal, longestPause);
      this.#pausedUntil = Math.max(this.#pausedUntil, this.#clock.monotonic() + pause);
    }
    this.#serve();
  }

  #serve(): void {
    const wait = this.#pausedUntil - this.#clock.monotonic();
    if (wait > 0) {
      if (this.#line.size === 0) return;
      this.#stopTimer?.();
      this.#stopTimer = this.#clock.after(Math.ceil(wait), () => this.#serve());
      return;
    }
    for (const begin of this.#line) {
      if (this.#running >= this.#allowed) return;
      this.#line.delete(begin);
      begin();
    }
  }
}

/** The client, whose calls wait for their turn. */
export function limited(client: ModelClient, limiter: Limiter): ModelClient {
  const { provider, facts } = client;
  return {
    provider,
    facts,
    async *stream(request, signal) {
      if (!(await limiter.enter(signal))) {
        const message = "the model call was cancelled";
        yield { type: "failed", failure: { kind: "cancelled", message, transient: false } };
        return;
      }
      let last: ModelDelta | undefined;
      try {
        for await (const delta of client.stream(request, signal)) {
          last = delta;
          yield delta;
        }
      } finally {
        limiter.leave(last);
      }
    },
  };
}
