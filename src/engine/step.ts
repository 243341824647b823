import type { Json, JsonObject } from "../model/json.ts";
import { isJsonObject } from "../model/json.ts";
import { parseDuration } from "../model/duration.ts";
import type { Failure } from "../model/outcome.ts";
import type { Named, Step, Template } from "../model/plan.ts";
import type { Result } from "../model/result.ts";
import { err, ok } from "../model/result.ts";
import { runAttempt } from "./attempt.ts";
import type { BodyResult, Engine, Sight } from "./engine.ts";
import { expressionFailure, skipped } from "./reasons.ts";
import type { Settled } from "./reasons.ts";

/** One step that was decided to run. */
export interface StepRun {
  readonly engine: Engine;
  readonly step: Step;
  readonly path: string;
  readonly sight: Sight;
  readonly signal: AbortSignal;
}

/** How a step ended; `failures` are those of the steps inside it. */
export interface StepEnd {
  readonly settled: Settled;
  readonly failures: readonly Failure[] | undefined;
}

/**
 * Runs a step from `step.started` to `step.finished`, both included. Gives no promise where its kind gives none.
 * The order of a step's parts, outermost first, is foreach, cache, repeat, retry, timeout, body and output mapping.
 */
export function runStep(run: StepRun): StepEnd | Promise<StepEnd> {
  const { engine, step, path } = run;
  engine.emit({ type: "step.started", step: path, kind: step.kind });
  const started = engine.clock.monotonic();
  return then(runOnce(run), (result) => finishStep(run, result, engine.clock.monotonic() - started));
}

/** The end of a step that failed before it could start: its condition could not be evaluated. */
export function failStep(run: StepRun, error: Failure): StepEnd {
  run.engine.emit({ type: "step.started", step: run.path, kind: run.step.kind });
  return finishStep(run, { outcome: "failure", error }, 0);
}

/** One item, one iteration: the inputs are resolved once, every attempt gets the same. */
function runOnce(run: StepRun): BodyResult | Promise<BodyResult> {
  const { engine, step, sight } = run;
  const inputs = engine.evaluator.resolve(step.inputs, sight.visible);
  if (!inputs.ok) return { outcome: "failure", error: expressionFailure(inputs.error) };
  if (!isJsonObject(inputs.value)) throw new Error(`the inputs of ${run.path} are not a map`);
  const timeout = timeoutOf(run);
  if (!timeout.ok) return { outcome: "failure", error: timeout.error };
  return runReported(run, { inputs: inputs.value, timeout: timeout.value, attempt: 1 });
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
  if (!engine.retriable(step)) return runBody(run, tried);
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
  const { engine, step, path } = run;
  if (result.outcome === "empty") {
    const skipReason = { kind: "empty" } as const;
    engine.emit({ type: "step.skipped", step: path, reason: skipReason });
    return { settled: skipped(skipReason), failures: undefined };
  }
  const { outcome, outputs, failures } = result;
  const error = outcome === "failure" ? result.error : undefined;
  const conclusion = outcome === "failure" && step.continueOnError ? "success" : outcome;
  const fields: { outputs?: Json; error?: Failure } = {};
  if (outputs !== undefined) fields.outputs = outputs;
  if (error !== undefined) fields.error = error;
  engine.emit({ type: "step.finished", step: path, outcome, conclusion, ...fields, duration });
  return { settled: { outcome, conclusion, outputs, error, skipReason: undefined }, failures };
}

/** Goes on at once with a value, later with a promise. */
function then<T, R>(value: T | Promise<T>, go: (value: T) => R): R | Promise<R> {
  return value instanceof Promise ? value.then(go) : go(value);
}
