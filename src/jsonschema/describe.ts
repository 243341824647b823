import type { ErrorObject } from "ajv";
import { isJsonObject, own } from "../model/json.ts";
import type { Json, JsonObject } from "../model/json.ts";
import type { Problem } from "./issue.ts";

export interface Described {
  readonly problem: Problem;
  readonly message: string;
}

interface Question {
  readonly error: ErrorObject;
  /** Why a name is refused, when the error is about one. */
  readonly reason: ErrorObject | undefined;
  readonly path: readonly (string | number)[];
  /** The root of the schema, to look up `$ref`. */
  readonly schema: JsonObject;
}

/** The words for one error of ajv; undefined for one that only repeats others. */
export function describe(question: Question): Described | undefined {
  const { error, path } = question;
  const { keyword, params } = error;
  switch (keyword) {
    case "if":
      return undefined;
    case "false schema":
      return { problem: { kind: "value" }, message: "must not be there" };
    case "type":
      return wrongType([params["type"]].flat().map(String), error, path);
    case "additionalProperties":
    case "unevaluatedProperties":
      return unknownKey(String(params["additionalProperty"] ?? params["unevaluatedProperty"]), question);
    case "required":
      return missing(String(params["missingProperty"]));
    case "dependentRequired":
      return dependent(String(params["property"]), String(params["missingProperty"]));
    case "propertyNames":
      return wrongName(String(params["propertyName"]), question.reason);
    case "enum":
    case "const":
      return notOneOf(keyword === "enum" ? [params["allowedValues"]].flat() : [params["allowedValue"]], error, path);
    case "anyOf":
    case "oneOf":
      return alternatives(error);
    default:
      return wrong(valueMessage(error), error, path);
  }
}

function wrongType(expected: readonly string[], error: ErrorObject, path: Question["path"]): Described {
  const found = jsonType(error.data);
  const values = fixedTexts(error);
  // Only one of these words will do, in quotes or without.
  if (values.length > 0) return { ...notOneOf(values, error, path), problem: { kind: "type", expected, found } };
  const words = ownWords(error) ?? `must be ${either(expected.map(typeWord))}`;
  const quote = expected.includes("string") && ["integer", "number", "boolean", "null"].includes(found);
  // A duration is not repaired by quotes: `timeout: 30` has to become `30s`.
  const isOwn = ownWords(error) !== undefined;
  const isLone = expected.length === 1 && expected[0] === "array" && isName(error.data);
  const list = isLone ? `; write \`[${String(error.data)}]\` for a list of one` : "";
  const hint = isOwn ? "" : quote ? "; put it in quotes if it is meant as text" : list;
  return {
    problem: { kind: "type", expected, found },
    message: `${words}, not ${shown(error.data, path)}${hint}`,
  };
}

/** A text that needs no quotes wherever it stands. */
function isName(data: unknown): boolean {
  return typeof data === "string" && /^[\w./-]{1,40}$/.test(data);
}

/** The words that a schema allows and nothing else; none where it says more than words. */
function fixedTexts({ parentSchema }: ErrorObject): readonly Json[] {
  if (!isJsonObject(parentSchema)) return [];
  const [one, several] = [own(parentSchema, "const"), own(parentSchema, "enum")];
  const values = Array.isArray(several) ? several : one === undefined ? [] : [one];
  return values.every((value) => typeof value === "string") ? values : [];
}

function unknownKey(key: string, { error, schema }: Question): Described {
  const allowed = keysOf(error.parentSchema, schema);
  return { problem: { kind: "unknown_key", key, allowed }, message: `unknown key \`${cut(key)}\`` };
}

/** The keys a schema declares itself, then those of the schemas it is put together from. */
function keysOf(part: Json | object | undefined, schema: JsonObject): readonly string[] {
  if (!isJsonObject(part)) return [];
  const properties = own(part, "properties");
  const parts = own(part, "allOf");
  const reference = own(part, "$ref");
  const name = typeof reference === "string" ? /^#\/\$defs\/([^/]+)$/.exec(reference)?.[1] : undefined;
  const definitions = own(schema, "$defs");
  return [
    ...(isJsonObject(properties) ? Object.keys(properties) : []),
    ...(name !== undefined && isJsonObject(definitions) ? keysOf(own(definitions, name), schema) : []),
    ...(Array.isArray(parts) ? parts.flatMap((one) => keysOf(one, schema)) : []),
  ];
}

function missing(key: string): Described {
  return { problem: { kind: "missing_key", key }, message: `\`${key}\` is missing` };
}

function dependent(key: string, needed: string): Described {
  return {
    problem: { kind: "unknown_key", key, allowed: [] },
    message: `\`${key}\` has a meaning only together with \`${needed}\``,
  };
}

function wrongName(key: string, reason: ErrorObject | undefined): Described {
  const words = reason === undefined ? "is not allowed" : (ownWords(reason) ?? valueMessage(reason));
  return { problem: { kind: "name", key }, message: `the name \`${cut(key)}\` ${words}` };
}

function notOneOf(values: readonly Json[], error: ErrorObject, path: Question["path"]): Described {
  const texts = values.map((value) => (typeof value === "string" ? value : JSON.stringify(value)));
  const wanted =
    texts.length === 0
      ? "cannot have any value"
      : `must be ${texts.length > 1 ? `one of ${listed(texts)}` : `\`${texts[0]}\``}`;
  const message = `${wanted}, not ${shown(error.data, path)}`;
  if (typeof error.data !== "string") return { problem: { kind: "value" }, message };
  return { problem: { kind: "enum", allowed: texts, given: error.data }, message };
}

function alternatives(error: ErrorObject): Described {
  const keys = requiredKeys(error);
  if (keys !== undefined && isJsonObject(error.data)) return choice(keys, error.data);
  const several = Array.isArray(error.params["passingSchemas"]);
  const words = several
    ? "matches several of the allowed forms, which exclude each other"
    : "matches none of the allowed forms";
  return { problem: { kind: "value" }, message: words };
}

/** The keys of an alternative that only asks which key is there: `oneOf: [{ required: [a] }, { required: [b] }]`. */
export function requiredKeys(error: ErrorObject): readonly string[] | undefined {
  const branches = branchesOf(error);
  if (error.keyword !== "oneOf" || branches.length === 0) return undefined;
  const keys = branches.map((branch) => {
    if (!isJsonObject(branch) || Object.keys(branch).length !== 1) return undefined;
    const required = own(branch, "required");
    return Array.isArray(required) && required.length === 1 ? required[0] : undefined;
  });
  return keys.every((key) => typeof key === "string") ? keys : undefined;
}

function choice(keys: readonly string[], value: JsonObject): Described {
  const found = keys.filter((key) => Object.hasOwn(value, key));
  const wanted = `exactly one of ${listed(keys.map((key) => `\`${key}\``))}`;
  const has = found.length === 0 ? "none" : found.map((key) => `\`${key}\``).join(" and ");
  return { problem: { kind: "choice", keys, found }, message: `must have ${wanted}, and has ${has}` };
}

function wrong(message: string, error: ErrorObject, path: Question["path"]): Described {
  const value = typeof error.data === "object" || error.data === "" ? "" : `, not ${shown(error.data, path)}`;
  return { problem: { kind: "value" }, message: `${ownWords(error) ?? message}${value}` };
}

const limitWords: { readonly [keyword: string]: readonly [before: string, after: string] } = {
  minimum: ["at least", ""],
  maximum: ["at most", ""],
  exclusiveMinimum: ["more than", ""],
  exclusiveMaximum: ["less than", ""],
  minLength: ["at least", " characters long"],
  maxLength: ["at most", " characters long"],
  minItems: ["at least", " entries long"],
  maxItems: ["at most", " entries long"],
  minProperties: ["at least", " entries long"],
  maxProperties: ["at most", " entries long"],
};

function valueMessage({ keyword, params, schema, message }: ErrorObject): string {
  const words = Object.hasOwn(limitWords, keyword) ? limitWords[keyword] : undefined;
  if (words !== undefined) {
    const limit: unknown = params["limit"];
    const empty = limit === 1 && /^min(Length|Items|Properties)$/.test(keyword);
    return empty ? "must not be empty" : `must be ${words[0]} ${String(limit)}${words[1]}`;
  }
  const places = [Number(params["i"]) + 1, Number(params["j"]) + 1].sort((a, b) => a - b);
  switch (keyword) {
    case "pattern":
      return `must match the pattern ${cut(String(schema))}`;
    case "format":
      return `must have the format ${String(params["format"])}`;
    case "multipleOf":
      return `must be a multiple of ${String(params["multipleOf"])}`;
    case "uniqueItems":
      return `must not hold the same value twice (entries ${places.join(" and ")})`;
    default:
      return message ?? `does not satisfy \`${keyword}\``;
  }
}

/** What the schema itself says about a value that does not fit; editors show the same words. */
function ownWords(error: ErrorObject): string | undefined {
  const words = error.parentSchema?.["patternErrorMessage"];
  return typeof words === "string" && ["pattern", "type"].includes(error.keyword) ? words : undefined;
}

const typeWords: { readonly [type: string]: string } = {
  string: "text",
  integer: "a whole number",
  number: "a number",
  boolean: "true or false",
  array: "a list",
  object: "a mapping",
  null: "null",
};

function typeWord(type: string): string {
  return typeWords[type] ?? type;
}

/** The value as far as it may be shown: environments and headers may hold secrets. */
function shown(value: unknown, path: Question["path"]): string {
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object" && value !== null) return "a mapping";
  if (path.some((part) => part === "env" || part === "headers" || part === "key")) return "this value";
  if (value === "") return "empty text";
  return typeof value === "string" ? `\`${cut(value)}\`` : String(value);
}

function cut(text: string): string {
  const line = text.replaceAll(/\s+/g, " ");
  return line.length > 60 ? `${line.slice(0, 59)}…` : line;
}

function listed(words: readonly string[]): string {
  return words.length > 20 ? `${words.slice(0, 20).join(", ")} and ${words.length - 20} more` : words.join(", ");
}

function either(words: readonly string[]): string {
  if (words.length < 2) return words.join("");
  return `${words.slice(0, -1).join(", ")} or ${words[words.length - 1] ?? ""}`;
}

/** The schemas that the keyword of the error lists. */
export function branchesOf(error: ErrorObject): readonly Json[] {
  return Array.isArray(error.schema) ? error.schema : [];
}

/** The JSON Schema name of the value's type; whole numbers are `integer`. */
export function jsonType(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value;
}
