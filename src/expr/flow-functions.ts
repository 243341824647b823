import { isJsonObject } from "../model/json.ts";
import type { Json, JsonObject } from "../model/json.ts";
import { describe, Refusal, tooLong, wrongType } from "./refusal.ts";
import type { Signature } from "./signature.ts";
import { isEqual, isMissing, kindOf, propertyOf, toJson } from "./value.ts";

/**
 * The functions this language adds. They never coerce: an argument of another type is an error that names the function
 * and the type. Positions and lengths of text count characters (code points), so that no character is ever cut in two.
 */
export const flowFunctions: readonly Signature[] = [
  { name: "length", min: 1, max: 1, type: "number", call: ([value]) => length(value) },
  { name: "keys", min: 1, max: 1, type: "array", call: ([object]) => keys(object) },
  { name: "values", min: 1, max: 1, type: "array", call: ([object]) => values(object) },
  { name: "split", min: 2, max: 2, type: "array", call: ([text, separator]) => split(text, separator) },
  { name: "lines", min: 1, max: 1, type: "array", call: ([text]) => lines(text) },
  { name: "trim", min: 1, max: 1, type: "string", call: ([text]) => changed("trim", text, (it) => it.trim()) },
  { name: "lower", min: 1, max: 1, type: "string", call: ([text]) => changed("lower", text, (it) => it.toLowerCase()) },
  { name: "upper", min: 1, max: 1, type: "string", call: ([text]) => changed("upper", text, (it) => it.toUpperCase()) },
  { name: "replace", min: 3, max: 3, type: "string", call: replace },
  { name: "slice", min: 2, max: 3, type: "unknown", call: ([value, start, end]) => slice(value, start, end) },
  { name: "where", min: 3, max: 3, type: "array", call: ([list, field, value]) => where(list, field, value) },
  { name: "flatten", min: 1, max: 1, type: "array", call: ([list]) => flatten(list) },
];

/** Characters of a text, items of a list, properties of an object. */
function length(value: Json = null): number | Refusal {
  if (typeof value === "string") return hasSurrogates(value) ? Array.from(value).length : value.length;
  if (Array.isArray(value)) return value.length;
  return isJsonObject(value) ? Object.keys(value).length : wrongType("length", "a text, a list or an object", value);
}

function hasSurrogates(text: string): boolean {
  return /[\ud800-\udfff]/.test(text);
}

/** The names of an object, in the order they were written. */
function keys(object: Json = null): Json | Refusal {
  return isJsonObject(object) ? Object.keys(object) : wrongType("keys", "an object", object);
}

/** The values of an object, in the order of `keys`. */
function values(object: Json = null): Json | Refusal {
  return isJsonObject(object) ? Object.values(object) : wrongType("values", "an object", object);
}

/** The parts between each separator, empty ones included; the separator itself may not be empty. */
function split(text: Json = null, separator: Json = null): Json | Refusal {
  if (typeof text !== "string") return wrongType("split", "a text", text);
  if (typeof separator !== "string") return wrongType("split", "a text as separator", separator);
  return separator === "" ? new Refusal("split() needs a separator that is not empty") : text.split(separator);
}

/** The lines of a text without their ends; the last line end does not begin a line, and no text has no lines. */
function lines(text: Json = null): Json | Refusal {
  if (typeof text !== "string") return wrongType("lines", "a text", text);
  const found = text.split("\n").map((line) => (line.endsWith("\r") ? line.slice(0, -1) : line));
  if (found.at(-1) === "") found.pop();
  return found;
}

function changed(name: string, text: Json = null, change: (text: string) => string): string | Refusal {
  return typeof text === "string" ? change(text) : wrongType(name, "a text", text);
}

/** Every occurrence, taken literally; the text to look for may not be empty. */
function replace([text, search, replacement]: readonly Json[], limit: number): string | Refusal {
  if (typeof text !== "string") return wrongType("replace", "a text", text);
  if (typeof search !== "string") return wrongType("replace", "a text to look for", search);
  if (typeof replacement !== "string") return wrongType("replace", "a text as replacement", replacement);
  if (search === "") return new Refusal("replace() needs a text to look for that is not empty");
  const parts = text.split(search);
  const size = text.length + (parts.length - 1) * (replacement.length - search.length);
  return size > limit ? tooLong("replace", limit) : parts.join(replacement);
}

/** From `start` up to, not including, `end`; negative positions count from the end; beyond the ends is empty. */
function slice(value: Json = null, start: Json = null, end: Json | undefined): Json | Refusal {
  if (!isPosition(start)) return wrongType("slice", "a whole number as start", start);
  if (end !== undefined && !isPosition(end)) return wrongType("slice", "a whole number as end", end);
  if (Array.isArray(value)) return value.slice(start, end);
  if (typeof value !== "string") return wrongType("slice", "a text or a list", value);
  return hasSurrogates(value) ? Array.from(value).slice(start, end).join("") : value.slice(start, end);
}

function isPosition(value: Json): value is number {
  return Number.isInteger(value);
}

/**
 * The objects of a list whose field equals the value: same type, text ignoring case as with `==`. A field that is
 * absent is null. Null items (failed items of a `foreach`) are left out; any other item is an error.
 */
function where(list: Json = null, field: Json = null, value: Json = null): Json | Refusal {
  if (!Array.isArray(list)) return wrongType("where", "a list", list);
  if (typeof field !== "string") return wrongType("where", "a text as field", field);
  if (typeof value === "object" && value !== null) return wrongType("where", "a plain value to compare with", value);
  const odd = list.findIndex((item) => item !== null && !isJsonObject(item));
  if (odd >= 0)
    return new Refusal(`where() takes a list of objects, but item ${odd} is ${describe(list[odd] ?? null)}`);
  return list.filter((item) => {
    if (!isJsonObject(item)) return false;
    const actual = fieldOf(item, field);
    return kindOf(actual) === kindOf(value) && isEqual(actual, value);
  });
}

function fieldOf(object: JsonObject, field: string): Json {
  const value = propertyOf(object, field);
  return value === undefined || isMissing(value) ? null : toJson(value);
}

/** One level: the items of inner lists take their list's place, other items stay. */
function flatten(list: Json = null): Json | Refusal {
  return Array.isArray(list) ? list.flat() : wrongType("flatten", "a list", list);
}
