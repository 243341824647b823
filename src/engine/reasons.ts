import type { Located } from "../expr/template.ts";
import type { Json } from "../model/json.ts";
import { isJsonObject } from "../model/json.ts";
import type { Failure, SkipReason, StepOutcome } from "../model/outcome.ts";
import { unreachable } from "../model/result.ts";

/** What is kept of a settled step. */
export interface Settled {
  readonly outcome: StepOutcome;
  readonly conclusion: StepOutcome;
  readonly outputs: Json | undefined;
  readonly error: Failure | undefined;
  readonly skipReason: SkipReason | undefined;
}

export function skipped(skipReason: SkipReason): Settled {
  return { outcome: "skipped", conclusion: "skipped", outputs: undefined, error: undefined, skipReason };
}

export function expressionFailure({ message, at }: Located): Failure {
  return { kind: "expression", message, position: at };
}

/** An exception where none may be: a bug of ours, or of whoever wrote the step kind. */
export function internalFailure(thrown: unknown): Failure {
  if (!(thrown instanceof Error)) return { kind: "internal", message: `a value was thrown: ${String(thrown)}` };
  return { kind: "internal", message: thrown.message, ...(thrown.stack !== undefined && { cause: thrown.stack }) };
}

/** Why the step `id` gives no value, or not the one called `output`: a sentence that names the step. */
export function whyNoValue(id: string, settled: Settled | undefined, output?: string): string {
  if (settled === undefined) return `\`${id}\` has not run`;
  const wanted = output === undefined ? "its outputs" : `\`${output}\``;
  switch (settled.outcome) {
    case "success":
      return `\`${id}\` never wrote ${wanted}; ${whatItWrote(settled.outputs)}`;
    case "failure":
      return `\`${id}\` failed before producing ${wanted}${inBrackets(settled.error)}`;
    case "cancelled":
      return `\`${id}\` was cancelled before producing ${wanted}`;
    case "skipped":
      return whyNoSuccess(id, settled);
    default:
      return unreachable(settled.outcome);
  }
}

/** Why the step `id` did not succeed. */
export function whyNoSuccess(id: string, settled: Settled | undefined): string {
  if (settled === undefined) return `\`${id}\` has not run`;
  const { skipReason } = settled;
  if (settled.outcome !== "skipped" || skipReason === undefined)
    return settled.outcome === "failure" ? `\`${id}\` failed${inBrackets(settled.error)}` : `\`${id}\` was cancelled`;
  switch (skipReason.kind) {
    case "condition":
      return `\`${id}\` was skipped: its condition \`${skipReason.condition}\` was false`;
    case "needs":
      // Already two steps away: the sentence stays, else it would grow along a chain.
      return skipReason.outcome === "skipped" ? skipReason.message : `\`${id}\` was skipped: ${skipReason.message}`;
    case "edge":
      return `\`${id}\` was skipped: the condition \`${skipReason.condition}\` on its edge from \`${skipReason.step}\` was false`;
    case "empty":
      return `\`${id}\` was skipped: none of its steps ran`;
    case "cancelled":
      return `\`${id}\` was skipped: the run was cancelled`;
    default:
      return unreachable(skipReason);
  }
}

function inBrackets(error: Failure | undefined): string {
  if (error === undefined) return "";
  const [line = ""] = error.message.split("\n", 1);
  return ` (${error.kind}: ${line.length > maxQuoted ? `${line.slice(0, maxQuoted)}…` : line})`;
}

function whatItWrote(outputs: Json | undefined): string {
  const names = isJsonObject(outputs) ? Object.keys(outputs) : [];
  if (names.length === 0) return "it wrote nothing";
  const more = names.length > maxNames ? ` and ${names.length - maxNames} more` : "";
  return `it wrote ${names
    .slice(0, maxNames)
    .map((name) => `\`${name}\``)
    .join(", ")}${more}`;
}

const maxQuoted = 160;
const maxNames = 12;
