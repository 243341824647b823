import type { Span } from "./diagnostic.ts";
import type { Json } from "./json.ts";

/** Why a step failed. Retries, routes (`steps.x.error.kind`) and exit codes read only this. */
export const failureKinds = [
  "exit",
  "signal",
  "timeout",
  "expression",
  "input",
  "output",
  "check",
  "provider_error",
  "rate_limit",
  "unavailable",
  "denied",
  "budget",
  "max_turns",
  "stuck",
  "invalid_output",
  "refused",
  "overflow",
  "tool_error",
  "conflict",
  "rejected",
  "expect",
  "lost",
  "log",
  "internal",
] as const;
export type FailureKind = (typeof failureKinds)[number];

export interface Failure {
  readonly kind: FailureKind;
  readonly message: string;
  readonly position?: Span;
  readonly cause?: string;
  /** In a group's error: the path of its first failed inner step. */
  readonly step?: string;
}

export type StepOutcome = "success" | "failure" | "skipped" | "cancelled";
export type RunOutcome = "success" | "failure" | "cancelled" | "waiting" | "empty";

export type SkipReason =
  /** The condition was false; `saw` holds each reference and status function in it with its value. */
  | { readonly kind: "condition"; readonly condition: string; readonly saw: readonly SeenValue[] }
  /** A step it needs did not succeed. */
  | { readonly kind: "needs"; readonly step: string; readonly outcome: StepOutcome; readonly message: string }
  /** The condition on the edge from `step` was false. */
  | { readonly kind: "edge"; readonly step: string; readonly condition: string; readonly saw: readonly SeenValue[] }
  /** Every step of the group or sub-workflow was skipped. */
  | { readonly kind: "empty" }
  | { readonly kind: "cancelled" };

export interface SeenValue {
  readonly expression: string;
  /** Absent when the reference had no value. */
  readonly value?: Json;
}

/** What one attempt of a step gave. A failed attempt keeps what its kind produced (a command: its streams). */
export type StepResult =
  | { readonly outcome: "success"; readonly result: Json; readonly outputs: Json }
  | { readonly outcome: "failure"; readonly error: Failure; readonly outputs?: Json }
  | { readonly outcome: "cancelled"; readonly outputs?: Json };

/** Exit codes of the `flow` command; the meaning of each is public. */
export const exitCodes = {
  success: 0,
  failure: 1,
  usage: 2,
  unavailable: 3,
  limit: 4,
  waiting: 5,
  denied: 6,
  internal: 70,
  interrupted: 130,
  terminated: 143,
} as const;
