import { whenAborted } from "../model/abort.ts";
import type { Clock } from "../model/ports.ts";
import { timeoutOf } from "./deadline.ts";
import type { BodyResult } from "./engine.ts";
import { internalFailure } from "./reasons.ts";
import type { Around } from "./rest.ts";

/** A body answers at once or later. */
export type Body = (signal: AbortSignal, around: Around | undefined) => BodyResult | Promise<BodyResult>;

/** What one attempt runs under. */
export interface Bounds {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly kill: AbortSignal;
  /** Milliseconds. */
  readonly timeout: number | undefined;
  /** Milliseconds the body may take to end once its signal is aborted; then it is left behind. Absent: any time. */
  readonly grace: number | undefined;
  /** Undefined where nothing may wait. */
  readonly around: Around | undefined;
}

/**
 * Runs a body once. When its time is up its signal is aborted and its end awaited, because a step must not go on
 * beside the ones after it; a body that does not end within the grace is left behind. Never throws.
 */
export function runAttempt(body: Body, bounds: Bounds): BodyResult | Promise<BodyResult> {
  const { timeout } = bounds;
  if (timeout !== undefined) return runUntil(timeout, body, bounds);
  const answer = call(body, bounds);
  return answer instanceof Promise ? orLeftBehind(answer, bounds) : answer;
}

async function runUntil(timeout: number, body: Body, bounds: Bounds): Promise<BodyResult> {
  const limit = timeoutOf(bounds.clock, timeout, bounds.signal);
  const result = await runAttempt(body, {
    ...bounds,
    signal: limit.signal,
    timeout: undefined,
    around: limit.around(bounds.around),
  });
  limit.close();
  if (!limit.passed()) return result;
  const late = result === leftBehind ? ", nor when it was told to, and was left behind" : "";
  const message = `it did not end within its timeout of ${timeout / 1000} s${late}`;
  const outputs = "outputs" in result && result.outputs !== undefined ? { outputs: result.outputs } : {};
  return { outcome: "failure", error: { kind: "timeout", message }, done: result.done ?? [], ...outputs };
}

function call(body: Body, { signal, around }: Bounds): BodyResult | Promise<BodyResult> {
  const thrown = (error: unknown): BodyResult =>
    signal.aborted ? { outcome: "cancelled" } : { outcome: "failure", error: internalFailure(error) };
  try {
    const answer = body(signal, around);
    return answer instanceof Promise ? answer.catch(thrown) : answer;
  } catch (error) {
    return thrown(error);
  }
}

const leftBehind: BodyResult = { outcome: "cancelled" };

function orLeftBehind(answer: Promise<BodyResult>, { signal, kill, clock, grace }: Bounds): Promise<BodyResult> {
  const { promise, resolve } = Promise.withResolvers<BodyResult>();
  let stop = (): void => undefined;
  const unlink = whenAborted(signal, () => {
    if (grace !== undefined) stop = clock.after(grace, () => resolve(leftBehind));
  });
  const unlinkKill = whenAborted(kill, () => resolve(leftBehind));
  // It cannot reject: `call` has caught that.
  void answer.then(resolve);
  return promise.finally(() => {
    stop();
    unlink();
    unlinkKill();
  });
}
