import type { Place } from "../shape.ts";

/** What the loops around a step make visible to it. */
export interface Loops {
  readonly item: boolean;
  readonly matrix: boolean;
  readonly iteration: boolean;
}
export const noLoops: Loops = { item: false, matrix: false, iteration: false };

const always = ["inputs", "vars", "env", "run"];

/** A place inside a step: `steps` is visible, and what the loops around it give. */
export function stepPlace(what: string, loops: Loops, more: readonly string[] = [], status = false): Place {
  const contexts = new Set([...always, "steps", ...more]);
  if (loops.item) contexts.add("item").add("index");
  if (loops.matrix) contexts.add("item").add("index").add("matrix");
  if (loops.iteration) contexts.add("iteration").add("previous");
  return { what, contexts, status };
}

/** A place outside of any step. */
export function filePlace(what: string, contexts: readonly string[]): Place {
  return { what, contexts: new Set(contexts), status: false };
}

/** Why a context has no value at a place. */
export function absenceOf(context: string): string {
  switch (context) {
    case "item":
    case "index":
      return "it exists only inside the body of a `foreach` or `matrix`";
    case "matrix":
      return "it exists only inside the body of a `matrix`";
    case "iteration":
    case "previous":
      return "it exists only inside the body of a `repeat`";
    case "result":
      return "it exists only in a step's `outputs` and in `repeat.until`";
    case "steps":
      return "no step has run when it is evaluated";
    case "inputs":
      return "no inputs are declared for it";
    default:
      return "it is not offered there";
  }
}
