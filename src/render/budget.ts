import { amount } from "../model/budget.ts";
import { type LimitSpent, limitsSpent } from "../model/spending.ts";
import { stepOf } from "./place.ts";
import type { RunTree, StepNode } from "./run-tree.ts";

/** `$0.0387 of $0.05, 1,200 of 4,000 tokens`; empty where there is no such limit. */
export function budgetText(limits: readonly LimitSpent[]): string {
  const texts = limits.map(({ limit, most, spent }) => {
    if (spent === null) return `an unknown amount of ${amount(limit, most)}`;
    return limit === "cost"
      ? `${amount(limit, spent)} of ${amount(limit, most)}`
      : `${amount(limit, spent).replace(" tokens", "")} of ${amount(limit, most)}`;
  });
  return texts.join(", ");
}

/** What was spent of the run's own limits. */
export function runLimits({ plan, spending }: RunTree): LimitSpent[] {
  const workflow = plan?.workflows[plan.root];
  return workflow === undefined ? [] : limitsSpent(workflow.limits, spending.within(""));
}

/** What was spent of the limits of a whole step; an item or iteration has none of its own. */
export function stepLimits({ plan, spending }: RunTree, { path, label }: StepNode): LimitSpent[] {
  if (plan === undefined || /^[[#]/.test(label)) return [];
  const limits = stepOf(plan, path)?.step.limits;
  return limits === undefined ? [] : limitsSpent(limits, spending.within(path));
}
