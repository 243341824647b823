import type { Span } from "../model/diagnostic.ts";
import type { Plan, Scope, Step } from "../model/plan.ts";

/** Where the step of a path is written: through groups and sub-workflows, whatever item or iteration it was. */
export function placeOf(plan: Plan, path: string): Span | undefined {
  return stepOf(plan, path)?.step.at;
}

/** The step of a path with the scope it lies in, by its index there. */
export function stepOf(
  plan: Plan,
  path: string,
): { readonly step: Step; readonly scope: Scope; readonly index: number } | undefined {
  let scope = plan.workflows[plan.root]?.scope;
  let found: ReturnType<typeof stepOf>;
  for (const part of path.split("/")) {
    const id = part.replace(/[[#].*$/, "");
    const index = scope?.steps.findIndex((it) => it.id === id) ?? -1;
    const step = scope?.steps[index];
    if (scope === undefined || step === undefined) return undefined;
    found = { step, scope, index };
    const inner = step.scope;
    scope = inner === undefined ? undefined : "inline" in inner ? inner.inline : plan.workflows[inner.workflow]?.scope;
  }
  return found;
}
