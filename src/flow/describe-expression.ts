import { references } from "../expr/inspect.ts";
import { type ExpressionError, parseExpression } from "../expr/parse.ts";
import type { JsonObject } from "../model/json.ts";
import { ok, type Result } from "../model/result.ts";

/** What an expression refers to: each reference with its place, and whether `default(…)` guards it. */
export function describeExpression(
  source: string,
  contexts: readonly string[],
): Result<readonly JsonObject[], ExpressionError> {
  const parsed = parseExpression(source, { contexts });
  if (!parsed.ok) return parsed;
  return ok(
    references(parsed.value).map((reference) => ({
      reference: source.slice(reference.offset, reference.offset + reference.length),
      context: reference.context,
      offset: reference.offset,
      guarded: reference.guarded,
    })),
  );
}
