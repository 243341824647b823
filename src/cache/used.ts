import type { Plan, Scope } from "../model/plan.ts";

/** Whether a step of the plan asks for its outputs to be reused. */
export function usesCache({ workflows }: Plan): boolean {
  const inScope = ({ steps }: Scope): boolean =>
    steps.some(({ cache, scope }) => cache !== undefined || (scope && "inline" in scope && inScope(scope.inline)));
  return Object.values(workflows).some(({ scope }) => inScope(scope));
}
