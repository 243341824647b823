import type { Scope as Visible } from "../expr/evaluate.ts";
import type { Failure, SkipReason } from "../model/outcome.ts";
import type { Edge, Scope, Step } from "../model/plan.ts";
import type { Engine, Sight } from "./engine.ts";
import { expressionFailure, whyNoSuccess } from "./reasons.ts";
import type { Schedule } from "./schedule.ts";

export type Verdict =
  | { readonly kind: "run" }
  | { readonly kind: "skip"; readonly reason: SkipReason }
  | { readonly kind: "fail"; readonly error: Failure };

export interface Question {
  readonly engine: Engine;
  readonly scope: Scope;
  readonly schedule: Schedule;
  readonly sight: Sight;
  /** The scope is being cancelled. */
  readonly cancelled: boolean;
}

/**
 * Whether a step runs once all its sources have settled. Its condition alone decides; none means `success()`, and one
 * without a status function means `success() && (…)`. The hard edges count only through `success()`.
 */
export function decide(question: Question, index: number, step: Step): Verdict {
  const { engine, sight, cancelled } = question;
  const condition = step.if;
  if (condition === undefined || !condition.status) {
    if (cancelled) return skipCancelled;
    const gate = gateOf(question, index);
    if (gate.kind !== "run" || condition === undefined) return gate;
  }
  // Known only if the condition asks for it; an error in an edge's condition then is the step's own.
  let gate: Verdict | undefined;
  const visible: Visible = {
    ...sight.visible,
    status: {
      always: () => true,
      cancelled: () => cancelled,
      failure: (id) =>
        id === undefined ? question.schedule.failureAbove(index) : sight.settled(id)?.conclusion === "failure",
      success: () => !cancelled && (gate ??= gateOf(question, index)).kind === "run",
    },
  };
  const verdict = engine.evaluator.condition(condition, visible);
  if (gate?.kind === "fail") return gate;
  if (!verdict.ok) return { kind: "fail", error: expressionFailure(verdict.error) };
  if (verdict.value) return run;
  if (cancelled) return skipCancelled;
  const saw = engine.evaluator.seen(condition, visible);
  return { kind: "skip", reason: { kind: "condition", condition: condition.source, saw } };
}

const run: Verdict = { kind: "run" };
export const skipCancelled: Verdict = { kind: "skip", reason: { kind: "cancelled" } };

/** `success()` apart from cancellation. */
function gateOf(question: Question, index: number): Verdict {
  const { engine, scope, schedule, sight } = question;
  let broken: Failure | undefined;
  const closed = schedule.closedEdge(index, (position) => {
    const condition = scope.edges[position]?.if;
    if (condition === undefined) return true;
    const verdict = engine.evaluator.condition(condition, sight.visible);
    if (verdict.ok) return verdict.value;
    broken ??= expressionFailure(verdict.error);
    return false;
  });
  if (broken !== undefined) return { kind: "fail", error: broken };
  const edge = closed === undefined ? undefined : scope.edges[closed];
  return edge === undefined ? run : { kind: "skip", reason: closedBy(question, edge) };
}

function closedBy({ engine, scope, schedule, sight }: Question, edge: Edge): SkipReason {
  const step = scope.steps[edge.from]?.id ?? "";
  const outcome = schedule.conclusion(edge.from) ?? "skipped";
  if (outcome === "success" && edge.if !== undefined) {
    const saw = engine.evaluator.seen(edge.if, sight.visible);
    return { kind: "edge", step, condition: edge.if.source, saw };
  }
  return { kind: "needs", step, outcome, message: whyNoSuccess(step, sight.settled(step)) };
}
