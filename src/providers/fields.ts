import type { Json, JsonObject } from "../model/json.ts";
import { isJsonObject, own } from "../model/json.ts";

/** Readers of JSON nobody has checked: what is missing or of another type is empty. */
export function textAt(object: JsonObject, key: string): string {
  const value = own(object, key);
  return typeof value === "string" ? value : "";
}

export function objectAt(object: JsonObject, key: string): JsonObject {
  const value: Json | undefined = own(object, key);
  return isJsonObject(value) ? value : {};
}

export function objectsAt(object: JsonObject, key: string): JsonObject[] {
  const value = own(object, key);
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

/** A whole number from 0 to a billion; undefined for anything else, so that no nonsense enters a sum. */
export function countAt(object: JsonObject, key: string): number | undefined {
  const value = own(object, key);
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 && value <= 1e9 ? value : undefined;
}
