import { iterationPath } from "../model/ids.ts";
import type { Failure } from "../model/outcome.ts";
import type { Repeat } from "../model/plan.ts";
import { type BodyResult, type Done, isEntered, type RunOne, type Sight, type StepRun } from "./engine.ts";
import { expressionFailure } from "./reasons.ts";
import { seeMore } from "./sight.ts";

/** Runs a body again until its condition holds over `result`, and over the inner steps where it has some. */
export async function runIterations(run: StepRun, repeat: Repeat, runOne: RunOne): Promise<BodyResult> {
  const done: Done[] = [];
  let last: Succeeded | undefined;
  let iteration = 1;
  for (; iteration <= repeat.max; iteration++) {
    const path = iterationPath(run.path, iteration);
    const isOver = run.signal.aborted || (run.engine.reenters && !isEntered({ ...run, path }));
    if (isOver) return { outcome: "cancelled", done };
    const sight = seeMore(run.sight, { iteration, previous: last?.outputs ?? null });
    const result = await runOne({ ...run, path, sight });
    for (const execution of result.done ?? []) done.push(execution);
    // Nothing ran, so the next one would find everything as it was.
    if (result.outcome === "empty") break;
    if (result.outcome !== "success") return { ...result, done };
    last = result;
    const isEnough = run.engine.evaluator.condition(repeat.until, seenBy(sight, result));
    if (!isEnough.ok) return { outcome: "failure", error: expressionFailure(isEnough.error), done };
    if (isEnough.value) return { ...result, done };
  }
  if (last === undefined) return { outcome: "empty", done };
  if (repeat.onMax === "accept") return { ...last, done };
  return { outcome: "failure", error: notEnough(repeat, iteration - 1), done };
}

type Succeeded = BodyResult & { readonly outcome: "success" };

/** What `until` sees: the loop's own contexts, `result`, and the `steps` of a group. */
function seenBy(own: Sight, { result, sight }: Succeeded): Sight["visible"] {
  const inner = sight?.visible.contexts ?? {};
  return { ...own.visible, contexts: { ...own.visible.contexts, ...inner, result } };
}

function notEnough({ until, max }: Repeat, iterations: number): Failure {
  const times = iterations === 1 ? "after one iteration" : `after ${iterations} iterations`;
  const why = iterations === max ? "" : ", and no step ran in the next one";
  return { kind: "check", message: `\`until\` (${until.source}) did not hold ${times}${why}`, position: until.at };
}
