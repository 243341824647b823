import type { Json } from "../model/json.ts";
import { Refusal } from "./refusal.ts";

/** Deeper values would overflow the stack of whoever writes them as JSON next. */
const maxDepth = 1000;

/**
 * Undefined when the value is JSON of at most `max` bytes (UTF-8 of its compact text, escapes not counted), else the
 * reason. Reads no more of the value than that takes.
 */
export function fits(value: Json, max: number): Refusal | undefined {
  return spend(value, { left: max, max }, 0);
}

/** In bytes of UTF-8. Text that is short or long enough by its characters is not encoded. */
export function isLongerThan(text: string, max: number): boolean {
  if (text.length > max) return true;
  return text.length * 3 > max && Buffer.byteLength(text) > max;
}

interface Budget {
  left: number;
  readonly max: number;
}

function spend(value: Json, budget: Budget, depth: number): Refusal | undefined {
  if (typeof value === "number" && !Number.isFinite(value)) {
    return new Refusal(`The result is ${value}, which is not a JSON number`);
  }
  if (depth > maxDepth) return new Refusal(`The result is nested deeper than ${maxDepth} levels`, "limit");
  budget.left -= ownSize(value, budget.left);
  if (budget.left < 0) return new Refusal(`The result is larger than ${budget.max} bytes`, "limit");
  if (typeof value !== "object" || value === null) return undefined;
  return Array.isArray(value) ? spendItems(value, budget, depth) : spendEntries(value, budget, depth);
}

function spendItems(items: readonly Json[], budget: Budget, depth: number): Refusal | undefined {
  for (const item of items) {
    const refusal = spend(item, budget, depth + 1);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

function spendEntries(object: { readonly [key: string]: Json }, budget: Budget, depth: number): Refusal | undefined {
  for (const key of Object.keys(object)) {
    const refusal = spend(key, budget, depth + 1) ?? spend(object[key] ?? null, budget, depth + 1);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

/** Bytes of a value without what is inside it: brackets, and the commas or colons between. */
function ownSize(value: Json, left: number): number {
  if (typeof value === "string") return textSize(value, left);
  if (typeof value === "object" && value !== null) {
    return Array.isArray(value) ? 1 + Math.max(1, value.length) : 1 + Math.max(1, 2 * Object.keys(value).length);
  }
  return String(value).length;
}

/** A text that is too long anyway is not encoded to be measured. */
function textSize(text: string, left: number): number {
  return 2 + (text.length > left ? text.length : Buffer.byteLength(text));
}
