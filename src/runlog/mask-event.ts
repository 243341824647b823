import { isJsonObject, type Json } from "../model/json.ts";
import { unreachable } from "../model/result.ts";

/** Text of ours that a reader decides by; a secret of the value `success` must not turn it into `***`. */
const ours = new Set(
  "again agent code conclusion deadline decision definition digest given kind outcome parent request role run severity status step stop type".split(
    " ",
  ),
);
/** In a plan also every name and expression: they come from the workflow's file and tie its parts together. */
const oursInPlan = new Set("file id join name on onMax origin path root secrets sha256 shell source".split(" "));
/** Below these fields of an event, and these keys deeper in it, lies a user's data: its keys and numbers may hold a secret too. */
const dataFields = new Set(["args", "form", "inputs", "output", "outputs", "result"]);
const dataKeys = new Set(["args", "form", "value"]);

type Place = "event" | "inside" | "plan" | "data";

/**
 * The event with every secret in its texts masked. Working on the values and not on the JSON text keeps the line valid
 * JSON when a secret reads like part of it (`true`, `1234`, `nabc` behind a `\`).
 */
export function maskEvent(event: object, mask: (text: string) => string): object {
  return maskEntries(event, "event", mask);
}

/** A user's value with every secret in its texts, keys and numbers masked. */
export function maskData(value: Json, mask: (text: string) => string): Json {
  return maskValue(value, "data", mask) as Json;
}

function maskEntries(object: object, place: Place, mask: (text: string) => string): object {
  return Object.fromEntries(
    Object.entries(object).map(([key, value]: [string, unknown]) => {
      if (place === "data") return [mask(key), maskValue(value, place, mask)];
      if (ours.has(key) && typeof value === "string") return [key, value];
      if (place === "plan" && oursInPlan.has(key) && !isJsonObject(value)) return [key, value];
      return [key, maskValue(value, placeBelow(place, key), mask)];
    }),
  );
}

function placeBelow(place: Place, key: string): Place {
  switch (place) {
    case "event":
      return key === "plan" ? "plan" : dataFields.has(key) ? "data" : "inside";
    case "inside":
      return dataKeys.has(key) ? "data" : "inside";
    case "plan":
      return key === "json" ? "data" : "plan";
    case "data":
      return "data";
    default:
      return unreachable(place);
  }
}

function maskValue(value: unknown, place: Place, mask: (text: string) => string): unknown {
  if (typeof value === "string") return mask(value);
  if (typeof value === "number" && place === "data") {
    const text = JSON.stringify(value);
    const masked = mask(text);
    return masked === text ? value : masked;
  }
  if (Array.isArray(value)) return value.map((item: unknown) => maskValue(item, place, mask));
  return typeof value === "object" && value !== null ? maskEntries(value, place, mask) : value;
}
