import type { Span } from "../model/diagnostic.ts";
import type { Json } from "../model/json.ts";
import type { SeenValue } from "../model/outcome.ts";
import type { Expression, Template } from "../model/plan.ts";
import { err, ok, unreachable } from "../model/result.ts";
import type { Result } from "../model/result.ts";
import { defaultMaxSize, evaluateCondition, evaluateExpression, readValues, seenValues } from "./evaluate.ts";
import type { Scope } from "./evaluate.ts";
import { parseExpression } from "./parse.ts";
import type { ExpressionError, ParsedExpression } from "./parse.ts";
import { toText } from "./value.ts";

/** A piece of a text: as it is, or the inside of a `${{ }}`, trimmed, `offset` being its first character's place. */
export type TemplatePart = { readonly text: string } | { readonly source: string; readonly offset: number };

/** An error and where it lies: the expression's span, or the part of it when the expression lies on one line. */
export type Located = ExpressionError & { readonly at: Span };

/** Evaluates what a Plan holds. Keeps the expressions it has parsed: one for each run. */
export interface Evaluator {
  /** The value of a template; strings in it are values, never templates again. */
  resolve(template: Template, scope: Scope): Result<Json, Located>;
  condition(condition: Expression, scope: Scope): Result<boolean, Located>;
  value(expression: Expression, scope: Scope): Result<Json, Located>;
  /** What `seenValues` gives; nothing for an expression that does not parse. */
  seen(expression: Expression, scope: Scope): readonly SeenValue[];
  /** The same with whole values. */
  read(expression: Expression, scope: Scope): readonly SeenValue[];
}

/** Cuts a text at its `${{ }}`. A `}}` inside single quotes closes nothing; empty and unclosed ones are errors. */
export function scanTemplate(text: string): Result<readonly TemplatePart[], ExpressionError> {
  const parts: TemplatePart[] = [];
  let end = 0;
  for (let open = text.indexOf("${{"); open >= 0; open = text.indexOf("${{", end)) {
    if (open > end) parts.push({ text: text.slice(end, open) });
    const inside = open + 3;
    const close = closingBraces(text, inside);
    if (close.at < 0) return err(unclosed(open, text.length - open, close.quoted));
    const source = text.slice(inside, close.at).trim();
    if (source === "") {
      const message = "The expression in `${{ }}` is empty";
      return err({ kind: "syntax", message, offset: open, length: close.at + 2 - open });
    }
    parts.push({ source, offset: text.indexOf(source, inside) });
    end = close.at + 2;
  }
  if (end < text.length) parts.push({ text: text.slice(end) });
  return ok(parts);
}

function closingBraces(text: string, from: number): { readonly at: number; readonly quoted: boolean } {
  let quoted = false;
  for (let at = from; at < text.length; at++) {
    if (text[at] === "'") quoted = !quoted;
    else if (!quoted && text[at] === "}" && text[at + 1] === "}") return { at, quoted };
  }
  return { at: -1, quoted };
}

function unclosed(offset: number, length: number, quoted: boolean): ExpressionError {
  const message = "`${{` is not closed with `}}`";
  const suggestion = quoted
    ? "A text in single quotes is not closed either."
    : "Write `${{ '${{' }}` for the characters.";
  return { kind: "syntax", message, offset, length, suggestion };
}

export function createEvaluator(): Evaluator {
  const parse = rememberParsed();

  const run = <T>(
    expression: Expression,
    evaluate: (parsed: ParsedExpression) => Result<T, ExpressionError>,
  ): Result<T, Located> => {
    const parsed = parse(expression.source);
    const result = parsed.ok ? evaluate(parsed.value) : parsed;
    return result.ok ? result : err(locate(result.error, expression));
  };
  const value = (expression: Expression, scope: Scope): Result<Json, Located> =>
    run(expression, (parsed) => evaluateExpression(parsed, scope));

  return {
    value,
    resolve: (template, scope) => resolve(template, (expression) => value(expression, scope), scope),
    condition: (condition, scope) => run(condition, (parsed) => evaluateCondition(parsed, scope)),
    seen: (expression, scope) => {
      const parsed = parse(expression.source);
      return parsed.ok ? seenValues(parsed.value, scope) : [];
    },
    read: (expression, scope) => {
      const parsed = parse(expression.source);
      return parsed.ok ? readValues(parsed.value, scope) : [];
    },
  };
}

/** More than a large workflow repeats; forgetting what was not used for as long keeps the map in the processor's cache. */
const maxRemembered = 1_000;

function rememberParsed(): (source: string) => Result<ParsedExpression, ExpressionError> {
  // Two generations: dropping a whole one costs nothing, deleting the oldest of a large Map costs more than parsing.
  let young = new Map<string, ParsedExpression>();
  let old = new Map<string, ParsedExpression>();
  return (source) => {
    const known = young.get(source);
    if (known !== undefined) return ok(known);
    const before = old.get(source);
    const parsed = before === undefined ? parseExpression(source) : ok(before);
    if (!parsed.ok) return parsed;
    if (young.size >= maxRemembered) {
      old = young;
      young = new Map();
    }
    young.set(source, parsed.value);
    return parsed;
  };
}

type Evaluate = (expression: Expression) => Result<Json, Located>;

function resolve(template: Template, evaluate: Evaluate, scope: Scope): Result<Json, Located> {
  switch (template.type) {
    case "data":
      return ok(template.json);
    case "expression":
      return evaluate(template);
    case "text":
      return resolveText(template.parts, evaluate, scope);
    case "list":
      return resolveList(template.items, evaluate, scope);
    case "map": {
      const values = resolveList(
        template.entries.map((entry) => entry.value),
        evaluate,
        scope,
      );
      if (!values.ok) return values;
      return ok(Object.fromEntries(template.entries.map(({ name }, index) => [name, values.value[index] ?? null])));
    }
    default:
      return unreachable(template);
  }
}

function resolveList(items: readonly Template[], evaluate: Evaluate, scope: Scope): Result<Json[], Located> {
  const values: Json[] = [];
  for (const item of items) {
    const value = resolve(item, evaluate, scope);
    if (!value.ok) return value;
    values.push(value.value);
  }
  return ok(values);
}

function resolveText(
  parts: readonly (string | Expression)[],
  evaluate: Evaluate,
  scope: Scope,
): Result<string, Located> {
  const maxSize = scope.maxSize ?? defaultMaxSize;
  let text = "";
  for (const part of parts) {
    if (typeof part === "string") {
      text += part;
      continue;
    }
    const value = evaluate(part);
    if (!value.ok) return value;
    text += textOf(value.value);
    if (text.length > maxSize) {
      const message = `The text is longer than ${maxSize} characters with this value in it`;
      return err(locate({ kind: "limit", message, offset: 0, length: part.source.length }, part));
    }
  }
  return ok(text);
}

/** As GitHub prints a value, but lists and objects as compact JSON. */
function textOf(value: Json): string {
  return typeof value === "object" && value !== null ? JSON.stringify(value) : toText(value);
}

/** A span as wide as the source holds exactly the source; in any other, quotes or line breaks shift the offsets. */
function locate(error: ExpressionError, { source, at }: Expression): Located {
  if (at.line !== at.endLine || at.endColumn - at.column !== source.length) return { ...error, at };
  const column = at.column + error.offset;
  return { ...error, at: { ...at, column, endColumn: Math.max(column + 1, column + error.length) } };
}
