import { isJsonObject, type Json, type JsonObject } from "../model/json.ts";

/**
 * Whether every provider that holds answers to a schema takes this one: closed objects whose properties are all required,
 * lists, enums and plain types. Others are refused by some server before a word is written; the tool takes them all.
 */
export function isNativeSchema(schema: JsonObject): boolean {
  if (Object.keys(schema).some((keyword) => !keywords.has(keyword))) return false;
  const { type, properties, items, anyOf } = schema;
  if (type === "object" && !isClosed(schema)) return false;
  const inner: readonly (Json | undefined)[] = [
    ...(isJsonObject(properties) ? Object.values(properties) : []),
    ...(items === undefined ? [] : [items]),
    ...(Array.isArray(anyOf) ? anyOf : []),
  ];
  return inner.every((part) => isJsonObject(part) && isNativeSchema(part));
}

const keywords: ReadonlySet<string> = new Set([
  "type",
  "properties",
  "required",
  "additionalProperties",
  "items",
  "enum",
  "const",
  "anyOf",
  "title",
  "description",
]);

function isClosed({ properties, required, additionalProperties }: JsonObject): boolean {
  const names = isJsonObject(properties) ? Object.keys(properties) : [];
  const asked: readonly Json[] = Array.isArray(required) ? required : [];
  return additionalProperties === false && names.every((name) => asked.includes(name));
}
