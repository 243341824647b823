import type { Plan } from "../model/plan.ts";

/** Keys of the workflows a step path lies in, from the root inward: groups and sub-workflows are walked by their ids. */
export function workflowsOf(plan: Plan, path: string): readonly [string, ...string[]] {
  const keys: [string, ...string[]] = [plan.root];
  let scope = plan.workflows[plan.root]?.scope;
  for (const part of path.split("/")) {
    const id = part.replace(/[[#].*$/, "");
    const inner = scope?.steps.find((step) => step.id === id)?.scope;
    if (inner && "workflow" in inner) keys.push(inner.workflow);
    scope = inner === undefined ? undefined : "inline" in inner ? inner.inline : plan.workflows[inner.workflow]?.scope;
  }
  return keys;
}
