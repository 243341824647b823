import type { Json } from "../model/json.ts";
import { ok } from "../model/result.ts";
import type { Result } from "../model/result.ts";
import { evaluateExpression } from "./evaluate.ts";
import type { Scope } from "./evaluate.ts";
import { defaultContexts, parseExpression } from "./parse.ts";
import type { ExpressionError } from "./parse.ts";

export type EvaluateOptions = Omit<Scope, "contexts">;

/**
 * Evaluates one expression (without `${{ }}`) over contexts of any name, ignoring case; those of a workflow are known
 * without being given and have no value then. An empty expression is null, as in GitHub's language.
 */
export function evaluate(
  expression: string,
  contexts: { readonly [name: string]: Json } = {},
  options: EvaluateOptions = {},
): Result<Json, ExpressionError> {
  if (expression.trim() === "") return ok(null);
  const parsed = parseExpression(expression, { contexts: [...defaultContexts, ...Object.keys(contexts)] });
  return parsed.ok ? evaluateExpression(parsed.value, { ...options, contexts }) : parsed;
}
