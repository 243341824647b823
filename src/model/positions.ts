import { isJsonObject, type Json } from "./json.ts";

/** A part of a plan without its positions. What a user wrote as data lies below `json` and keeps its keys. */
export function withoutPositions(value: Json): Json {
  if (Array.isArray(value)) return value.map(withoutPositions);
  if (!isJsonObject(value)) return value ?? null;
  const entries = Object.entries(value).filter(([key, inner]) => key !== "at" && inner !== undefined);
  return Object.fromEntries(entries.map(([key, inner]) => [key, key === "json" ? inner : withoutPositions(inner)]));
}
