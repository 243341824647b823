import { isJsonObject, type Json } from "../model/json.ts";

/** True for a scalar that plainly fits a schema of only `type` and `enum`: spares loading the validator. */
export function fitsPlainly(schema: Json, value: Json): boolean {
  if (!isJsonObject(schema) || typeof value === "object") return false;
  const { type, enum: choices, ...rest } = schema;
  const plain = Object.keys(rest).every((key) => ["default", "description", "title", "examples"].includes(key));
  const typed = type === undefined || type === typeof value || (type === "integer" && Number.isInteger(value));
  return plain && typed && (choices === undefined || (Array.isArray(choices) && choices.includes(value)));
}
