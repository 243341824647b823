import type { StepKind } from "../../model/plan.ts";
import { entry, type MapNode } from "../../source/document.ts";

export const stepKinds: readonly StepKind[] = ["agent", "run", "tool", "workflow", "steps", "approve", "set"];

/** The one kind of a step. Steps of none or several have been reported by the schema check. */
export function kindOf(node: MapNode): StepKind | undefined {
  const kinds = stepKinds.filter((kind) => entry(node, kind));
  return kinds.length === 1 ? kinds[0] : undefined;
}
