import { narrowBudget } from "../model/budget.ts";
import { defaultTurns } from "../model/defaults.ts";
import type { AgentOutcome } from "../model/message.ts";
import type { Agent, Limits } from "../model/plan.ts";
import type { Attempt, Budget, Clock, Spend } from "../model/ports.ts";

/** What surrounds one agent run, and what it spent before it was gone on with. */
export interface Around extends Pick<Attempt, "budget" | "turns"> {
  readonly spent?: Spend;
}

/**
 * The limits of one agent run. The step's `turns` replace the agent's; those of groups and workflows around only lower
 * them. Tokens and cost are bounded by the agent's own limits inside everything around.
 */
export function limitsOf(
  { name, limits }: Agent,
  step: Limits,
  { budget: outer, turns: most = 0, spent }: Around,
): { readonly maxTurns: number; readonly budget?: Budget } {
  const { tokens, cost } = limits;
  const own = { of: `agent \`${name}\``, tokens, cost, ...(spent && { spent }) };
  const budget = narrowBudget(outer, own);
  const turns = step.turns ?? limits.turns ?? defaultTurns;
  const maxTurns = most === 0 || (turns !== 0 && turns < most) ? turns : most;
  return { maxTurns, ...(budget !== undefined && { budget }) };
}

/** The time an agent run has. */
export interface Time {
  readonly signal: AbortSignal;
  /** A run that was cut off because the time was up ends `budget`. */
  judge<R extends { readonly outcome: AgentOutcome; readonly reason: string }>(result: R): R;
  close(): void;
}

/** A signal aborted with `parent` or after `duration` milliseconds; an agent's own limit, so not a cancel. */
export function lasting(clock: Clock, duration: number | undefined, parent: AbortSignal): Time {
  // Its own in any case: on one that all agents share, each listener is compared with those of all others.
  if (duration === undefined)
    return { signal: AbortSignal.any([parent]), judge: (result) => result, close: () => undefined };
  const over = new AbortController();
  const stop = clock.after(duration, () => {
    if (!parent.aborted) over.abort("duration");
  });
  const reason = `the limit of ${duration / 1000} s (\`limits.duration\`) of one agent run was reached`;
  return {
    signal: AbortSignal.any([parent, over.signal]),
    judge: (result) =>
      over.signal.aborted && result.outcome !== "done" ? { ...result, outcome: "budget", reason } : result,
    close: stop,
  };
}
