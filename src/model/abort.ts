import type { Clock } from "./ports.ts";

/** Calls back when the signal is aborted, at once if it is already; the returned function takes that back. */
export function whenAborted(signal: AbortSignal, callback: () => void): () => void {
  if (signal.aborted) callback();
  else signal.addEventListener("abort", callback, { once: true });
  return () => signal.removeEventListener("abort", callback);
}

/** Resolves with true after `ms`, or with false as soon as the signal is aborted. */
export function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const stop = clock.after(ms, () => resolve(true));
  const unlink = whenAborted(signal, () => resolve(false));
  return promise.finally(() => {
    stop();
    unlink();
  });
}

/** What the work comes to, or undefined as soon as the signal is aborted: the work is left to itself then. */
export function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<T | undefined>();
  const unlink = whenAborted(signal, () => resolve(undefined));
  work.then(resolve, reject);
  return promise.finally(unlink);
}
