import { graceOfStep } from "../model/grace.ts";
import { isJsonObject } from "../model/json.ts";
import type { StepOutcome } from "../model/outcome.ts";
import { elapsed } from "../model/ports.ts";
import { runAttempt } from "./attempt.ts";
import type { BodyResult, Done, Engine } from "./engine.ts";
import { limitsAround } from "./limits.ts";
import { expressionFailure } from "./reasons.ts";
import { seeOwn } from "./sight.ts";

/** Takes back what succeeded in a scope that did not, newest first. A failing undo is reported and the rest go on. */
export async function undoAll(engine: Engine, done: readonly Done[], signal: AbortSignal): Promise<void> {
  for (const execution of done.toReversed()) {
    const started = engine.clock.monotonic();
    const result = await undoOne(engine, execution, signal);
    const outcome: Exclude<StepOutcome, "skipped"> = result.outcome === "empty" ? "success" : result.outcome;
    const error = result.outcome === "failure" && { error: result.error };
    const duration = elapsed(engine.clock, started);
    engine.emit({ type: "step.undone", step: execution.path, outcome, ...error, duration });
  }
}

async function undoOne(engine: Engine, { step, path, sight, outputs }: Done, signal: AbortSignal): Promise<BodyResult> {
  const { undo } = step;
  if (signal.aborted) return { outcome: "cancelled" };
  if (undo === undefined) throw new Error(`${path} has no undo`);
  const own = seeOwn(sight, step, outputs);
  const inputs = engine.evaluator.resolve(undo.inputs, own.visible);
  if (!inputs.ok) return { outcome: "failure", error: expressionFailure(inputs.error) };
  if (!isJsonObject(inputs.value)) throw new Error(`the inputs of the undo of ${path} are not a map`);
  const given = inputs.value;
  const { kind, body, scope } = undo;
  // What a worktree gave is in the workspace by now, and is taken back there.
  const { if: _if, outputs: _outputs, undo: _undo, scope: _scope, isolation: _isolation, ...rest } = step;
  const acting = { ...rest, kind, body, inputs: undo.inputs, ...(scope !== undefined && { scope }) };
  const run = (inner: AbortSignal): BodyResult | Promise<BodyResult> => {
    const attempt = {
      step: acting,
      path: `${path}/undo`,
      attempt: 1,
      inputs: given,
      signal: inner,
      ...limitsAround(engine),
    };
    return scope === undefined
      ? engine.execute(attempt)
      : engine.inner({ engine, sight: own, around: undefined }, attempt);
  };
  engine.emit({ type: "step.undo.started", step: path });
  return runAttempt(run, {
    clock: engine.clock,
    signal,
    kill: engine.kill,
    timeout: undefined,
    grace: graceOfStep,
    around: undefined,
  });
}
