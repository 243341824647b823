import { err, messageOf, ok, type Result } from "./result.ts";

/** Any JSON value. Everything that crosses a step's border or enters the log is one. */
export type Json = null | boolean | number | string | Json[] | JsonObject;
export interface JsonObject {
  [key: string]: Json;
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Own-property look-up: `constructor` and `__proto__` are ordinary keys here, never inherited ones. */
export function own(object: JsonObject, key: string): Json | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** JSON text with object keys in code-unit order, so that equal values give equal text (used for digests). */
export function canonicalJson(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (!isJsonObject(value)) return JSON.stringify(value);
  const keys = Object.keys(value).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key] ?? null)}`).join(",")}}`;
}

/** Deeper values overflow the stack of whoever walks them. */
const maxDepth = 1000;

/** Why a text has no value. */
export interface JsonProblem {
  /** It is JSON, and we cannot hold what it says. */
  readonly isJson: boolean;
  readonly message: string;
}

/** The value of JSON text as it is written: a number that would become another one is an error, as in a workflow. */
export function parseJson(text: string): Result<Json, JsonProblem> {
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch (error) {
    return err({ isJson: false, message: messageOf(error) });
  }
  if (isDeeperThan(text, maxDepth))
    return err({ isJson: true, message: `it is nested deeper than ${maxDepth} levels` });
  const changed = changedNumber(text);
  return changed === undefined ? ok(value) : err({ isJson: true, message: tooLargeNumber(changed) });
}

/** Measured on JSON text, because a value nested too deep cannot be walked. */
export function isDeeperThan(text: string, limit: number): boolean {
  if (text.length <= limit) return false;
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (char === '"') at = endOfString(text, at) - 1;
    else if (char === "{" || char === "[") {
      if (++depth > limit) return true;
    } else if (char === "}" || char === "]") depth--;
  }
  return false;
}

/** Whether a number keeps its value when it is read; `written` is one as JSON has it. */
export function isKept(written: string): boolean {
  const value = Number(written);
  return Number.isFinite(value) && (Number.isSafeInteger(value) || !/^-?\d+$/.test(written));
}

function tooLargeNumber(written: string): string {
  const shown = written.length > 40 ? `${written.slice(0, 40)}…` : written;
  return `the number ${shown} is too large to be kept exactly; write it as text, in quotes`;
}

/** The first number of a JSON text that is not kept. Looks at the texts between the strings, which hold nothing else. */
function changedNumber(text: string): string | undefined {
  // Most texts hold none that could be one, and are not walked.
  if (!/\d{16}|\d[eE]\+?\d{2}/.test(text)) return undefined;
  for (let from = 0; from < text.length;) {
    const quote = text.indexOf('"', from);
    const end = quote < 0 ? text.length : quote;
    for (const [written] of text.slice(from, end).matchAll(/-?\d[\d.eE+-]*/g)) if (!isKept(written)) return written;
    from = quote < 0 ? end : endOfString(text, quote);
  }
  return undefined;
}

/** The place behind the string that begins at `quote`. */
function endOfString(text: string, quote: number): number {
  for (let at = quote + 1; at < text.length; at++) {
    if (text[at] === "\\") at++;
    else if (text[at] === '"') return at + 1;
  }
  return text.length;
}
