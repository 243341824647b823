import type { Clock } from "../model/ports.ts";

/** A signal of one's own; whoever made it closes it, so that no timer and no listener outlives its use. */
export interface Deadline {
  readonly signal: AbortSignal;
  /** Whether time was up before anything else aborted it. */
  readonly passed: () => boolean;
  readonly close: () => void;
}

/** Aborted after `ms`, or together with `parent`. */
export function deadline(clock: Clock, ms: number, parent: AbortSignal): Deadline {
  const own = new AbortController();
  let passed = false;
  const unlink = whenAborted(parent, () => own.abort());
  const stop = clock.after(ms, () => {
    passed = !own.signal.aborted;
    own.abort();
  });
  const close = (): void => {
    unlink();
    stop();
  };
  return { signal: own.signal, passed: () => passed, close };
}

/** Calls back when the signal is aborted, at once if it is already; the returned function takes that back. */
export function whenAborted(signal: AbortSignal, callback: () => void): () => void {
  if (signal.aborted) callback();
  else signal.addEventListener("abort", callback, { once: true });
  return () => signal.removeEventListener("abort", callback);
}
