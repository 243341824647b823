import type { Span } from "../model/diagnostic.ts";
import type { Plan } from "../model/plan.ts";

/** Where the step of a path is written: through groups and sub-workflows, whatever item or iteration it was. */
export function placeOf(plan: Plan, path: string): Span | undefined {
  let scope = plan.workflows[plan.root]?.scope;
  let place: Span | undefined;
  for (const part of path.split("/")) {
    const id = part.replace(/[[#].*$/, "");
    const step = scope?.steps.find((it) => it.id === id);
    place = step?.at;
    const inner = step?.scope;
    scope = inner === undefined ? undefined : "inline" in inner ? inner.inline : plan.workflows[inner.workflow]?.scope;
  }
  return place;
}
