import { iterationPath } from "../model/ids.ts";
import type { Json } from "../model/json.ts";
import type { Repeat } from "../model/plan.ts";
import type { BodyResult, Done, RunOne, StepRun } from "./engine.ts";
import { expressionFailure } from "./reasons.ts";
import { seeMore } from "./sight.ts";

/** Runs a body again until its condition holds over `result`, and over the inner steps where it has some. */
export async function runIterations(run: StepRun, repeat: Repeat, runOne: RunOne): Promise<BodyResult> {
  const done: Done[] = [];
  let previous: Json = null;
  for (let iteration = 1; ; iteration++) {
    const sight = seeMore(run.sight, { iteration, previous });
    const result = await runOne({ ...run, path: iterationPath(run.path, iteration), sight });
    if ("done" in result && result.done !== undefined) done.push(...result.done);
    if (result.outcome === "empty") return result;
    if (result.outcome !== "success") return { ...result, done };
    const { visible } = result.sight ?? sight;
    const seen = { ...visible, contexts: { ...sight.visible.contexts, ...visible.contexts, result: result.result } };
    const isEnough = run.engine.evaluator.condition(repeat.until, seen);
    if (!isEnough.ok) return { outcome: "failure", error: expressionFailure(isEnough.error), done };
    if (isEnough.value || (iteration === repeat.max && repeat.onMax === "accept")) return { ...result, done };
    if (iteration === repeat.max) {
      const times = iteration === 1 ? "after one iteration" : `after ${iteration} iterations`;
      const message = `\`until\` (${repeat.until.source}) did not hold ${times}`;
      return { outcome: "failure", error: { kind: "check", message, position: repeat.until.at }, done };
    }
    previous = result.outputs;
  }
}
