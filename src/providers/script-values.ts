import { evaluateCondition, evaluateExpression } from "../expr/evaluate.ts";
import type { Scope } from "../expr/evaluate.ts";
import type { ParsedExpression } from "../expr/parse.ts";
import type { Json } from "../model/json.ts";
import type { Block, Message } from "../model/message.ts";
import type { Result } from "../model/result.ts";
import { err, ok, unreachable } from "../model/result.ts";
import type { ScriptValue } from "./script.ts";

/** What the expressions of a turn see of the conversation so far; the names are those of `scriptContexts`. */
export function scriptScope(messages: readonly Message[], earlier = 0): Scope {
  const last = messages.at(-1)?.blocks ?? [];
  const prompt = messages.find(({ role }) => role === "user")?.blocks ?? [];
  const names = new Map(
    messages.at(-2)?.blocks.flatMap((block) => (block.type === "call" ? [[block.id, block.name]] : [])),
  );
  const results = last.flatMap((block): Json[] => {
    if (block.type !== "result") return [];
    return [{ name: names.get(block.id) ?? "", text: textOf(block.blocks), error: block.error === true }];
  });
  const turn = earlier + messages.filter(({ role }) => role === "assistant").length + 1;
  return { contexts: { message: textOf(last), prompt: textOf(prompt), results, turn } };
}

/** A turn without a condition always fits. Anything but true or false is an error. */
export function holds(when: ParsedExpression | undefined, scope: Scope): Result<boolean, string> {
  if (when === undefined) return ok(true);
  const value = evaluateCondition(when, scope);
  return value.ok ? value : err(value.error.message);
}

export function valueOf(value: ScriptValue, scope: Scope): Result<Json, string> {
  switch (value.type) {
    case "data":
      return ok(value.json);
    case "expression":
      return evaluated(value.parsed, scope);
    case "text":
      return textValue(value.parts, scope);
    case "list":
      return all(value.items, scope);
    case "map": {
      const values = all(
        value.entries.map(([, inner]) => inner),
        scope,
      );
      if (!values.ok) return values;
      return ok(Object.fromEntries(value.entries.map(([key], index) => [key, values.value[index] ?? null])));
    }
    default:
      return unreachable(value);
  }
}

function all(values: readonly ScriptValue[], scope: Scope): Result<Json[], string> {
  const found: Json[] = [];
  for (const value of values) {
    const one = valueOf(value, scope);
    if (!one.ok) return one;
    found.push(one.value);
  }
  return ok(found);
}

function textValue(parts: readonly (string | ParsedExpression)[], scope: Scope): Result<string, string> {
  let text = "";
  for (const part of parts) {
    const value = typeof part === "string" ? ok(part) : evaluated(part, scope);
    if (!value.ok) return value;
    text += inText(value.value);
  }
  return ok(text);
}

function evaluated(parsed: ParsedExpression, scope: Scope): Result<Json, string> {
  const value = evaluateExpression(parsed, scope);
  return value.ok ? value : err(value.error.message);
}

function inText(value: Json): string {
  if (value === null) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** The text of a message: its own, else that of the results in it. */
function textOf(blocks: readonly Block[]): string {
  const own = blocks.flatMap((block) => (block.type === "text" ? [block.text] : []));
  if (own.length > 0) return own.join("\n");
  return blocks.flatMap((block) => (block.type === "result" ? [textOf(block.blocks)] : [])).join("\n");
}
