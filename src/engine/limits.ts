import type { Failure } from "../model/outcome.ts";
import { deadline } from "./deadline.ts";
import type { BodyResult, Engine, RunOne, StepRun } from "./engine.ts";
import { NarrowLane } from "./loop.ts";

/** Runs a whole step under its own `limits`: over all its items, iterations and attempts together. */
export function runLimited(run: StepRun, runOne: RunOne): BodyResult | Promise<BodyResult> {
  const { duration, parallel } = run.step.limits;
  if (duration === undefined && parallel === undefined) return runOne(run);
  const inside = { ...run, engine: narrowed(run.engine, parallel) };
  return duration === undefined ? runOne(inside) : runWithin(inside, duration, runOne);
}

/** An engine whose executions also line up for one of `parallel` slots of their own. */
export function narrowed(engine: Engine, parallel: number | undefined): Engine {
  return parallel === undefined ? engine : { ...engine, lane: new NarrowLane(engine.lane, parallel) };
}

/** Of what did not end within its `limits.duration`, in milliseconds. */
export function overDuration(duration: number): Failure {
  return { kind: "budget", message: `the limit of ${duration / 1000} s (\`limits.duration\`) was reached` };
}

async function runWithin(run: StepRun, duration: number, runOne: RunOne): Promise<BodyResult> {
  const limit = deadline(run.engine.clock, duration, run.signal);
  const result = await runOne({ ...run, signal: limit.signal });
  limit.close();
  if (!limit.passed()) return result;
  const error = overDuration(duration);
  if (result.outcome === "empty") return { outcome: "failure", error, done: result.done ?? [] };
  const { outputs, failures = [], done = [] } = result;
  const kept = outputs === undefined ? {} : { outputs };
  return { outcome: "failure", error, failures: [error, ...failures], done, ...kept };
}
