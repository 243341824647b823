import { isJsonObject, type Json } from "../model/json.ts";
import { inlineBytes } from "./fields.ts";

/**
 * What `JSON.stringify` gives, a long text in it in pieces: a stream of NUL has six bytes of JSON for each of its own, and
 * nobody has to hold them all.
 */
export function* jsonPieces(value: Json): Generator<string> {
  if (typeof value === "string") return yield* textPieces(value);
  if (!isJsonObject(value) || !holdsLongText(value)) return yield JSON.stringify(value);
  let before = "{";
  for (const [key, entry] of Object.entries<Json | undefined>(value)) {
    if (entry === undefined) continue;
    yield `${before}${JSON.stringify(key)}:`;
    yield* jsonPieces(entry);
    before = ",";
  }
  yield "}";
}

/** Whether it is plainly more than a line of the log takes. */
export function holdsLongText(value: Json): boolean {
  if (!isJsonObject(value)) return isLong(value);
  for (const key in value) if (isLong(value[key])) return true;
  return false;
}

function isLong(value: Json | undefined): boolean {
  return typeof value === "string" && value.length > inlineBytes;
}

function* textPieces(text: string): Generator<string> {
  yield '"';
  for (let at = 0; at < text.length;) {
    // The two halves of a character beyond U+FFFF stay together: each alone would be written as an escape.
    const last = text.charCodeAt(at + inlineBytes - 1);
    const end = at + inlineBytes + (last >= 0xd800 && last <= 0xdbff ? 1 : 0);
    yield JSON.stringify(text.slice(at, end)).slice(1, -1);
    at = end;
  }
  yield '"';
}
