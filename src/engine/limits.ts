import { narrowBudget } from "../model/budget.ts";
import type { Failure } from "../model/outcome.ts";
import type { Limits } from "../model/plan.ts";
import type { Attempt } from "../model/ports.ts";
import { deadline } from "./deadline.ts";
import type { BodyResult, Engine, RunOne, StepRun } from "./engine.ts";
import { NarrowLane } from "./loop.ts";

/** Runs a whole step under its own `limits`: over all its items, iterations and attempts together. */
export function runLimited(run: StepRun, runOne: RunOne): BodyResult | Promise<BodyResult> {
  const { limits } = run.step;
  const engine = narrowed(run.engine, limits, { of: `step \`${run.path}\``, path: run.path });
  const inside = engine === run.engine ? run : { ...run, engine };
  return limits.duration === undefined ? runOne(inside) : runWithin(inside, limits.duration, runOne);
}

/** Whose limits: as a message names it, and the path of its step; the path is empty for the run's own. */
interface Owner {
  readonly of: string;
  readonly path: string;
}

/** The engine inside of limits: fewer slots, less to spend, fewer turns for each agent run. Time is the caller's. */
export function narrowed(engine: Engine, limits: Limits, owner: Owner): Engine {
  const { parallel } = limits;
  const inside = parallel === undefined ? engine : { ...engine, lane: new NarrowLane(engine.lane, parallel) };
  return withSpending(inside, limits, owner);
}

/** {@link narrowed} without the slots, for the run itself, which has them. */
export function withSpending(engine: Engine, { tokens, cost, turns = 0 }: Limits, { of, path }: Owner): Engine {
  if (tokens === undefined && cost === undefined && turns === 0) return engine;
  const budget = narrowBudget(engine.budget, { of, tokens, cost, spent: engine.spent(path) });
  // No turns means any number of them.
  return { ...engine, budget, turns: turns === 0 ? engine.turns : Math.min(turns, engine.turns ?? turns) };
}

/** What an attempt is told of the limits around it. */
export function limitsAround({ budget, turns }: Engine): Pick<Attempt, "budget" | "turns"> {
  return { ...(budget !== undefined && { budget }), ...(turns !== undefined && { turns }) };
}

/** Of what did not end within its `limits.duration`, in milliseconds. */
export function overDuration(duration: number): Failure {
  return { kind: "budget", message: `the limit of ${duration / 1000} s (\`limits.duration\`) was reached` };
}

async function runWithin(run: StepRun, duration: number, runOne: RunOne): Promise<BodyResult> {
  const limit = deadline(run.engine.clock, duration, run.signal);
  const result = await runOne({ ...run, signal: limit.signal, around: limit.around(run.around) });
  limit.close();
  if (!limit.passed()) return result;
  const error = overDuration(duration);
  if (result.outcome === "empty") return { outcome: "failure", error, done: result.done ?? [] };
  const { outputs, failures = [], done = [] } = result;
  const kept = outputs === undefined ? {} : { outputs };
  return { outcome: "failure", error, failures: [error, ...failures], done, ...kept };
}
