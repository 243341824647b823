import { pause } from "../model/abort.ts";
import { longestDuration, parseDuration } from "../model/duration.ts";
import type { Fingerprint } from "../model/event.ts";
import { graceOfStep } from "../model/grace.ts";
import type { Json, JsonObject } from "../model/json.ts";
import { isJsonObject } from "../model/json.ts";
import type { Failure } from "../model/outcome.ts";
import type { Named, Retry, Step, Template } from "../model/plan.ts";
import { elapsed } from "../model/ports.ts";
import type { Result } from "../model/result.ts";
import { err, ok, unreachable } from "../model/result.ts";
import { runAttempt } from "./attempt.ts";
import { runCached } from "./cached.ts";
import type { BodyResult, Done, RunOne, StepRun } from "./engine.ts";
import { runItems } from "./items.ts";
import { runIterations } from "./iterations.ts";
import { limitsAround, runLimited } from "./limits.ts";
import { expressionFailure, skipped } from "./reasons.ts";
import type { Settled } from "./reasons.ts";
import { type Around, waitIn } from "./rest.ts";
import type { Asked, Past, Recall, RecordedEnd } from "./resume.ts";
import { mayRetry, retryDelay } from "./retry.ts";

/** How a step ended. */
export interface StepEnd {
  readonly settled: Settled;
  /** Those of the steps inside it. */
  readonly failures?: readonly Failure[] | undefined;
  /** What in it can be undone. */
  readonly done?: readonly Done[] | undefined;
}

/**
 * Runs a step from `step.started` to `step.finished`, both included. Gives no promise where its kind gives none.
 * The order of a step's parts, outermost first, is limits, foreach, cache, repeat, retry, timeout, body and output mapping.
 */
export function runStep(run: StepRun): StepEnd | Promise<StepEnd> {
  return then(runFramed(run, runBounded), ({ result, duration }) => finishStep(run, result, duration));
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
  return then(body(run), (ended) => {
    const result = engine.past === undefined ? ended : withReplaced(run, engine.past, ended);
    return { result, duration: elapsed(engine.clock, started) };
  });
}

/** A person may have replaced an output of what succeeded before the resume. */
function withReplaced({ path }: StepRun, past: Past, result: BodyResult): BodyResult {
  return result.outcome === "success" ? { ...result, outputs: past.replaced(path, result.outputs) } : result;
}

interface Timed {
  readonly result: BodyResult;
  /** Milliseconds. */
  readonly duration: number;
}

function runBounded(run: StepRun): BodyResult | Promise<BodyResult> {
  return runLimited(run, runWhole);
}

function runWhole(run: StepRun): BodyResult | Promise<BodyResult> {
  const { foreach } = run.step;
  return foreach === undefined ? runItem(run) : runItems(run, foreach, framed(runItem));
}

function runItem(run: StepRun): BodyResult | Promise<BodyResult> {
  const { cache } = run.engine;
  return run.step.cache === undefined || cache === undefined ? runRepeated(run) : runCached(run, cache, runRepeated);
}

function runRepeated(run: StepRun): BodyResult | Promise<BodyResult> {
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
  if (!inputs.ok) return failed(run, expressionFailure(inputs.error));
  if (!isJsonObject(inputs.value)) throw new Error(`the inputs of ${run.path} are not a map`);
  const timeout = timeoutOf(run);
  if (!timeout.ok) return failed(run, timeout.error);
  const last = recallOrTry(run, { inputs: inputs.value, timeout: timeout.value, attempt: 1 });
  return step.undo === undefined ? last : then(last, (value) => withUndo(run, value));
}

/** Where it is only entered, what it would be given may be gone: then it is not what it was, and has not failed. */
function failed({ engine }: StepRun, error: Failure): BodyResult {
  return engine.reenters ? { outcome: "cancelled" } : { outcome: "failure", error };
}

/** Where the run was resumed, an end that still holds is taken from its past. */
function recallOrTry(run: StepRun, first: Try): BodyResult | Promise<BodyResult> {
  const { engine, step, path, sight } = run;
  if (engine.fingerprint === undefined || step.scope !== undefined || !engine.retriable(step)) return tryIt(run, first);
  // An item is always plain JSON: no expression gives anything else.
  const item = (sight.visible.contexts["item"] ?? null) as Json;
  const fingerprint = engine.fingerprint(step, first.inputs, item);
  const recalled = recall(engine, { path, step, fingerprint });
  switch (recalled.kind) {
    case "new":
      return tryIt(run, { ...first, fingerprint });
    case "again":
      return tryIt(run, { ...first, fingerprint, again: recalled });
    case "lost":
      return { outcome: "failure", error: lost };
    case "none":
      return { outcome: "cancelled" };
    case "reuse":
      engine.emit({ type: "step.reused", step: path, end: recalled.seq });
      return reused(run, recalled.end);
    default:
      return unreachable(recalled);
  }
}

function recall({ past, reenters }: StepRun["engine"], asked: Asked): Recall | { readonly kind: "none" } {
  if (reenters) return past?.ended(asked) ?? { kind: "none" };
  return past?.recall(asked) ?? { kind: "new" };
}

const lost: Failure = {
  kind: "lost",
  message: "it was running when flow died, and `rerun: never` forbids to start it again (`flow resume --from` does)",
};

/** The output mapping is evaluated again: it may see what has changed since. */
function reused(run: StepRun, end: RecordedEnd): BodyResult {
  const { outputs } = end;
  if (end.kind === "failure") {
    const error = end.error ?? { kind: "internal", message: "the log does not say why it failed" };
    return { outcome: "failure", error, ...(outputs !== undefined && { outputs }) };
  }
  const result = end.result ?? outputs ?? null;
  const whole: BodyResult = { outcome: "success", result, outputs: outputs ?? result };
  return run.step.outputs === undefined ? whole : mapOutputs(run, run.step.outputs, whole);
}

function tryIt(run: StepRun, first: Try): BodyResult | Promise<BodyResult> {
  const { retry } = run.step;
  const result = runReported(run, first);
  return retry === undefined || run.engine.reenters
    ? result
    : then(result, (failed) => runRetries(run, { retry, first, failed }));
}

interface Retries {
  readonly retry: Retry;
  readonly first: Try;
  readonly failed: BodyResult;
}

async function runRetries(run: StepRun, { retry, first, failed }: Retries): Promise<BodyResult> {
  const { engine, path, signal } = run;
  let result = failed;
  const done = [...(failed.done ?? [])];
  for (let attempt = 2; !signal.aborted && mayRetry(retry, attempt - 1, result); attempt++) {
    const delay = retryDelay(retry, attempt - 1, engine.random());
    engine.emit({ type: "step.retrying", step: path, attempt, delay, error: result.error });
    if (!(await pause(engine.clock, delay, signal))) return { outcome: "cancelled", done };
    result = await runReported(run, { ...first, attempt });
    for (const execution of result.done ?? []) done.push(execution);
  }
  return { ...result, done };
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
  readonly fingerprint?: Fingerprint;
  /** Why the first try of it follows others before a resume. */
  readonly again?: Extract<Recall, { kind: "again" }>;
}

function runReported(run: StepRun, tried: Try): BodyResult | Promise<BodyResult> {
  const { engine, step, path } = run;
  if (!engine.retriable(step) && step.retry === undefined) return runBody(run, tried);
  const { attempt, fingerprint } = tried;
  const again = attempt === 1 && tried.again !== undefined && { again: tried.again.why };
  engine.emit({ type: "step.attempt.started", step: path, attempt, ...(fingerprint && { fingerprint }), ...again });
  const started = engine.clock.monotonic();
  return then(runBody(run, tried), (result) => {
    const duration = elapsed(engine.clock, started);
    const outcome = result.outcome === "empty" ? "success" : result.outcome;
    const error = result.outcome === "failure" && { error: result.error };
    const kept = fingerprint === undefined ? {} : keptOf(step, result);
    engine.emit({ type: "step.attempt.finished", step: path, attempt, outcome, ...kept, ...error, duration });
    return result;
  });
}

/** What a resume needs of a success: `result` where it is looked at again, `outputs` where they are not made of it. */
function keptOf(step: Step, result: BodyResult): { readonly outputs?: Json; readonly result?: Json } {
  if (result.outcome !== "success") return {};
  if (step.outputs !== undefined) return { result: result.result };
  return { outputs: result.outputs, ...(step.repeat !== undefined && { result: result.result }) };
}

function runBody(run: StepRun, { inputs, timeout, attempt, again }: Try): BodyResult | Promise<BodyResult> {
  const { engine, step, path, sight } = run;
  const resumes = attempt === 1 && again?.resumes === true;
  const body = (signal: AbortSignal, around: Around | undefined): BodyResult | Promise<BodyResult> => {
    const waits = around !== undefined && { wait: waitIn(engine, around) };
    const given = { step, path, attempt, inputs, signal, ...(resumes && { resumes }), ...limitsAround(engine) };
    if (step.scope !== undefined) return engine.inner({ engine, sight, around }, given);
    return engine.execute({ ...given, ...waits, ...(timeout !== undefined && { timeout }) });
  };
  // A step that contains steps ends by itself: each of them is given up in its turn.
  const grace = step.scope === undefined ? graceOfStep : undefined;
  const { signal, around } = run;
  const ended = runAttempt(body, { clock: engine.clock, signal, kill: engine.kill, timeout, grace, around });
  return step.outputs === undefined ? ended : then(ended, (result) => mapOutputs(run, step.outputs ?? [], result));
}

function mapOutputs(run: StepRun, mapping: readonly Named<Template>[], result: BodyResult): BodyResult {
  if (result.outcome !== "success") return result;
  const { visible } = run.sight;
  const contexts = { ...visible.contexts, result: result.result };
  const outputs = run.engine.evaluator.resolve({ type: "map", entries: mapping }, { ...visible, contexts });
  // What its own steps did stays done, and can be undone.
  if (!outputs.ok) return { outcome: "failure", error: expressionFailure(outputs.error), done: result.done ?? [] };
  return { ...result, outputs: outputs.value };
}

function timeoutOf({ engine, step, sight }: StepRun): Result<number | undefined, Failure> {
  if (step.timeout === undefined || typeof step.timeout === "number") return ok(step.timeout);
  const written = engine.evaluator.resolve(step.timeout, sight.visible);
  if (!written.ok) return err(expressionFailure(written.error));
  const timeout = typeof written.value === "string" ? parseDuration(written.value) : undefined;
  if (timeout !== undefined && timeout <= longestDuration) return ok(timeout);
  const shown = JSON.stringify(written.value).slice(0, 80);
  const message = `the timeout is no duration between 1ms and 596h, such as \`30s\` or \`1h30m\`: ${shown}`;
  return err({ kind: "input", message });
}

function finishStep(run: StepRun, result: BodyResult, duration: number): StepEnd {
  const settled = report(run, result, duration, run.step.continueOnError);
  return { settled, done: result.done, failures: result.outcome === "empty" ? undefined : result.failures };
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
