import type { Json, JsonObject } from "../model/json.ts";
import { isJsonObject } from "../model/json.ts";
import { parseDuration } from "../model/duration.ts";
import type { Failure } from "../model/outcome.ts";
import type { Named, Retry, Template } from "../model/plan.ts";
import type { Result } from "../model/result.ts";
import { err, ok } from "../model/result.ts";
import { runAttempt } from "./attempt.ts";
import type { BodyResult, Done, RunOne, StepRun } from "./engine.ts";
import { runItems } from "./items.ts";
import { runIterations } from "./iterations.ts";
import { expressionFailure, skipped } from "./reasons.ts";
import type { Settled } from "./reasons.ts";
import { mayRetry, pause, retryDelay } from "./retry.ts";

/** How a step ended. */
export interface StepEnd {
  readonly settled: Settled;
  /** Those of the steps inside it. */
  readonly failures?: readonly Failure[];
  /** What in it can be undone. */
  readonly done?: readonly Done[];
}

/**
 * Runs a step from `step.started` to `step.finished`, both included. Gives no promise where its kind gives none.
 * The order of a step's parts, outermost first, is foreach, cache, repeat, retry, timeout, body and output mapping.
 */
export function runStep(run: StepRun): StepEnd | Promise<StepEnd> {
  return then(runFramed(run, runWhole), ({ result, duration }) => finishStep(run, result, duration));
}

/** The end of a step that failed before it could start: its condition could not be evaluated. */
export function failStep(run: StepRun, error: Failure): StepEnd {
  run.engine.emit({ type: "step.started", step: run.path, kind: run.step.kind });
  return finishStep(run, { outcome: "failure", error }, 0);
}

function runFramed(run: StepRun, body: RunOne): Timed | Promise<Timed> {
  const { engine, step, path } = run;
  engine.emit({ type: "step.started", step: path, kind: step.kind });
  const started = engine.clock.monotonic();
  return then(body(run), (result) => ({ result, duration: engine.clock.monotonic() - started }));
}

interface Timed {
  readonly result: BodyResult;
  /** Milliseconds. */
  readonly duration: number;
}

function runWhole(run: StepRun): BodyResult | Promise<BodyResult> {
  const { foreach } = run.step;
  return foreach === undefined ? runItem(run) : runItems(run, foreach, framed(runItem));
}

function runItem(run: StepRun): BodyResult | Promise<BodyResult> {
  const { repeat } = run.step;
  return repeat === undefined ? runTries(run) : runIterations(run, repeat, framed(runTries));
}

/** An item or iteration reports itself as the step does. */
function framed(body: RunOne): RunOne {
  return (run) =>
    then(runFramed(run, body), ({ result, duration }) => {
      report(run, result, duration);
      return result;
    });
}

/** One item, one iteration: the inputs are resolved once, every attempt gets the same. */
function runTries(run: StepRun): BodyResult | Promise<BodyResult> {
  const { engine, step, sight } = run;
  const inputs = engine.evaluator.resolve(step.inputs, sight.visible);
  if (!inputs.ok) return { outcome: "failure", error: expressionFailure(inputs.error) };
  if (!isJsonObject(inputs.value)) throw new Error(`the inputs of ${run.path} are not a map`);
  const timeout = timeoutOf(run);
  if (!timeout.ok) return { outcome: "failure", error: timeout.error };
  const first: Try = { inputs: inputs.value, timeout: timeout.value, attempt: 1 };
  const { retry } = step;
  const result = runReported(run, first);
  const last = retry === undefined ? result : then(result, (failed) => runRetries(run, { retry, first, failed }));
  return step.undo === undefined ? last : then(last, (value) => withUndo(run, value));
}

interface Retries {
  readonly retry: Retry;
  readonly first: Try;
  readonly failed: BodyResult;
}

async function runRetries(run: StepRun, { retry, first, failed }: Retries): Promise<BodyResult> {
  const { engine, path, signal } = run;
  let result = failed;
  for (let attempt = 2; mayRetry(retry, attempt - 1, result); attempt++) {
    const delay = retryDelay(retry, attempt - 1, engine.random());
    engine.emit({ type: "step.retrying", step: path, attempt, delay, error: result.error });
    if (!(await pause(engine.clock, delay, signal))) return { outcome: "cancelled" };
    result = await runReported(run, { ...first, attempt });
  }
  return result;
}

/** An execution that succeeded and can be taken back is remembered with what it saw. */
function withUndo({ step, path, sight }: StepRun, result: BodyResult): BodyResult {
  if (result.outcome !== "success") return result;
  return { ...result, done: [...(result.done ?? []), { step, path, sight, outputs: result.outputs }] };
}

interface Try {
  readonly inputs: JsonObject;
  /** Milliseconds. */
  readonly timeout: number | undefined;
  /** From 1. */
  readonly attempt: number;
}

function runReported(run: StepRun, tried: Try): BodyResult | Promise<BodyResult> {
  const { engine, step, path } = run;
  if (!engine.retriable(step) && step.retry === undefined) return runBody(run, tried);
  const { attempt } = tried;
  engine.emit({ type: "step.attempt.started", step: path, attempt });
  const started = engine.clock.monotonic();
  return then(runBody(run, tried), (result) => {
    const duration = engine.clock.monotonic() - started;
    const outcome = result.outcome === "empty" ? "success" : result.outcome;
    const error = result.outcome === "failure" && { error: result.error };
    engine.emit({ type: "step.attempt.finished", step: path, attempt, outcome, ...error, duration });
    return result;
  });
}

function runBody(run: StepRun, { inputs, timeout, attempt }: Try): BodyResult | Promise<BodyResult> {
  const { engine, step, path, sight } = run;
  const body = (signal: AbortSignal): BodyResult | Promise<BodyResult> => {
    const given = { step, path, attempt, inputs, signal };
    return step.scope === undefined ? engine.execute(given) : engine.inner(given, sight);
  };
  // A step that contains steps ends by itself: each of them is given up in its turn.
  const grace = step.scope === undefined ? graceAfterAbort : undefined;
  const ended = runAttempt(body, { clock: engine.clock, signal: run.signal, kill: engine.kill, timeout, grace });
  return step.outputs === undefined ? ended : then(ended, (result) => mapOutputs(run, step.outputs ?? [], result));
}

const graceAfterAbort = 5000;

function mapOutputs(run: StepRun, mapping: readonly Named<Template>[], result: BodyResult): BodyResult {
  if (result.outcome !== "success") return result;
  const { visible } = run.sight;
  const contexts = { ...visible.contexts, result: result.result };
  const outputs = run.engine.evaluator.resolve({ type: "map", entries: mapping }, { ...visible, contexts });
  if (!outputs.ok) return { outcome: "failure", error: expressionFailure(outputs.error) };
  return { ...result, outputs: outputs.value };
}

function timeoutOf({ engine, step, sight }: StepRun): Result<number | undefined, Failure> {
  if (step.timeout === undefined || typeof step.timeout === "number") return ok(step.timeout);
  const written = engine.evaluator.resolve(step.timeout, sight.visible);
  if (!written.ok) return err(expressionFailure(written.error));
  const timeout = typeof written.value === "string" ? parseDuration(written.value) : undefined;
  if (timeout !== undefined) return ok(timeout);
  const message = `the timeout is no duration such as \`30s\` or \`1h30m\`: ${JSON.stringify(written.value)}`;
  return err({ kind: "input", message });
}

function finishStep(run: StepRun, result: BodyResult, duration: number): StepEnd {
  const settled = report(run, result, duration, run.step.continueOnError);
  if (result.outcome === "empty") return { settled };
  const { failures, done } = result;
  return { settled, ...(failures !== undefined && { failures }), ...(done !== undefined && { done }) };
}

/** Says how a step, item or iteration ended. */
function report({ engine, path }: StepRun, result: BodyResult, duration: number, forgiving = false): Settled {
  if (result.outcome === "empty") {
    const skipReason = { kind: "empty" } as const;
    engine.emit({ type: "step.skipped", step: path, reason: skipReason });
    return skipped(skipReason);
  }
  const { outcome, outputs } = result;
  const error = outcome === "failure" ? result.error : undefined;
  const conclusion = outcome === "failure" && forgiving ? "success" : outcome;
  const fields: { outputs?: Json; error?: Failure } = {};
  if (outputs !== undefined) fields.outputs = outputs;
  if (error !== undefined) fields.error = error;
  engine.emit({ type: "step.finished", step: path, outcome, conclusion, ...fields, duration });
  return { outcome, conclusion, outputs, error, skipReason: undefined };
}

/** Goes on at once with a value, later with a promise. */
function then<T, R>(value: T | Promise<T>, go: (value: T) => R | Promise<R>): R | Promise<R> {
  return value instanceof Promise ? value.then(go) : go(value);
}
