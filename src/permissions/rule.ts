import type { Symbols } from "./pattern.ts";

export type Decision = "allow" | "ask" | "deny";

/** From the lowest to the highest. */
export const layers = [
  "default",
  "profile",
  "user",
  "project",
  "config",
  "workflow",
  "agent",
  "step",
  "command line",
  "approved",
  "managed",
] as const;
export type Layer = (typeof layers)[number];

/** One rule as it is matched. */
export interface Rule {
  readonly decision: Decision;
  /** As it was written. */
  readonly text: string;
  readonly layer: Layer;
  readonly file?: string;
  readonly line?: number;
  /** Whether it speaks of this tool. */
  readonly concerns: (tool: string) => boolean;
  /** Any of these holds; absent: every call of the tool. */
  readonly patterns?: readonly Symbols[];
  /** Nothing that stands elsewhere outweighs it. */
  readonly final: boolean;
  /** Set on rules of a block that widens nothing that blocks below it say; the same object for all rules of the block. */
  readonly within?: { readonly narrows?: boolean };
}

/** What a rule is held against: one tool, and what the call is about in one or more spellings. */
export interface Request {
  readonly tool: string;
  /** Absent for tools whose calls are not told apart. */
  readonly text?: Symbols;
  /** Other things it may come to, by which it can be forbidden and not allowed. */
  readonly readings: readonly Symbols[];
}

const weight: { readonly [decision in Decision]: number } = { allow: 0, ask: 1, deny: 2 };

/** Negative when `a` permits more than `b`. */
export function compareDecisions(a: Decision, b: Decision): number {
  return weight[a] - weight[b];
}

/** The one that permits less; the first of two equal ones. */
export function strictest<T extends { readonly decision: Decision }>(a: T, b: T): T {
  return compareDecisions(a.decision, b.decision) >= 0 ? a : b;
}
