import type { Json } from "../model/json.ts";

/** Why a function could not be applied to its arguments. A class, so that it cannot be confused with a result. */
export class Refusal {
  readonly kind: "evaluation" | "limit";
  readonly message: string;

  constructor(message: string, kind: "evaluation" | "limit" = "evaluation") {
    this.message = message;
    this.kind = kind;
  }
}

/** `wanted` completes the sentence "trim() takes …". */
export function wrongType(name: string, wanted: string, got: Json | undefined): Refusal {
  return new Refusal(`${name}() takes ${wanted}, not ${describe(got ?? null)}`);
}

export function tooLong(name: string, limit: number): Refusal {
  return new Refusal(`The result of ${name}() is longer than ${limit} bytes`, "limit");
}

/** A value in a few words for a message: its type, and a short text or number as it is. */
export function describe(value: Json): string {
  if (typeof value === "string") return `the text '${shorten(value, 40)}'`;
  if (typeof value !== "object" || value === null) return String(value);
  return Array.isArray(value) ? "a list" : "an object";
}

/** Cuts between characters, never inside one. */
export function shorten(text: string, length: number): string {
  if (text.length <= length) return text;
  const last = text.charCodeAt(length - 1);
  const high = last >= 0xd800 && last <= 0xdbff;
  return `${text.slice(0, high ? length - 1 : length)}…`;
}
