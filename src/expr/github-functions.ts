import { type Json, parseJson } from "../model/json.ts";
import { Refusal, tooLong } from "./refusal.ts";
import { manyArguments } from "./signature.ts";
import type { Signature } from "./signature.ts";
import { isEqual, toText, upper } from "./value.ts";

/** The functions GitHub's language has, with its coercions: whatever is not text is turned into text. */
export const githubFunctions: readonly Signature[] = [
  { name: "contains", min: 2, max: 2, type: "boolean", call: ([search, item]) => contains(search, item) },
  {
    name: "startsWith",
    min: 2,
    max: 2,
    type: "boolean",
    call: ([text, start]) => isPlain(text) && isPlain(start) && upper(toText(text)).startsWith(upper(toText(start))),
  },
  {
    name: "endsWith",
    min: 2,
    max: 2,
    type: "boolean",
    call: ([text, end]) => isPlain(text) && isPlain(end) && upper(toText(text)).endsWith(upper(toText(end))),
  },
  {
    name: "format",
    min: 1,
    max: manyArguments,
    type: "string",
    call: ([pattern, ...values], limit) => format(toText(pattern ?? null), values, limit),
  },
  { name: "join", min: 1, max: 2, type: "string", call: ([list, separator], limit) => join(list, separator, limit) },
  { name: "toJSON", min: 1, max: 1, type: "string", call: ([value]) => toJson(value ?? null) },
  { name: "fromJSON", min: 1, max: 1, type: "unknown", call: ([text]) => fromJson(toText(text ?? null)) },
];

function isPlain(value: Json | undefined): value is null | boolean | number | string {
  return value === null || typeof value !== "object";
}

/** In a list: an item equal by `==`. In text: a part, ignoring case. */
function contains(search: Json = null, item: Json = null): boolean {
  if (Array.isArray(search)) return search.some((candidate) => isEqual(item, candidate));
  return isPlain(search) && isPlain(item) && toText(search).toLowerCase().includes(toText(item).toLowerCase());
}

/** `{0}` is the first value; `{{` and `}}` are braces. */
function format(pattern: string, values: readonly Json[], limit: number): string | Refusal {
  const parts: string[] = [];
  let length = 0;
  let end = 0;
  for (const match of pattern.matchAll(/\{\{|\}\}|\{(\d+)\}|[{}]/g)) {
    const [written, number] = match;
    if (written.length === 1) return new Refusal(`The following format string is invalid: ${pattern}`);
    const value = number === undefined ? written.slice(1) : values[Number(number)];
    if (value === undefined) {
      return new Refusal(`The following format string references more arguments than were supplied: ${pattern}`);
    }
    const text = toText(value);
    length += match.index - end + text.length;
    if (length > limit) return tooLong("format", limit);
    parts.push(pattern.slice(end, match.index), text);
    end = match.index + written.length;
  }
  return parts.join("") + pattern.slice(end);
}

function join(list: Json = null, separator: Json = ",", limit: number): string | Refusal {
  if (isPlain(list)) return toText(list);
  if (!Array.isArray(list)) return "";
  const texts = list.map(toText);
  const between = isPlain(separator) ? toText(separator) : ",";
  const length = texts.reduce((sum, text) => sum + text.length + between.length, 0);
  return length > limit + between.length ? tooLong("join", limit) : texts.join(between);
}

/** Indented by two blanks. */
function toJson(value: Json): string | Refusal {
  try {
    return JSON.stringify(value, null, 2);
  } catch {
    return new Refusal("The value given to toJSON() is too large or nested too deep", "limit");
  }
}

function fromJson(text: string): Json | Refusal {
  if (text.trim() === "") return new Refusal("fromJSON() was given an empty text");
  const read = parseJson(text);
  return read.ok ? read.value : new Refusal(`Error parsing JSON when evaluating fromJSON: ${read.error.message}`);
}
