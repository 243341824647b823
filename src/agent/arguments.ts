import type { Json, JsonObject } from "../model/json.ts";
import { isDeeperThan, isJsonObject, parseJson } from "../model/json.ts";
import type { Result } from "../model/result.ts";
import { err, ok } from "../model/result.ts";

/** Bytes of argument text one tool call may have. */
export const maxArgumentBytes: number = 1024 * 1024;
const maxDepth = 64;

/**
 * The JSON object a model wrote, as arguments of a call or as an answer. The error is a sentence for the model; where
 * the text is not JSON it gives the position (UTF-16 units from 0), because that is how a cut-off reply shows itself.
 */
export function parseArguments(raw: string): Result<JsonObject, string> {
  if (Buffer.byteLength(raw) > maxArgumentBytes) return err(`they are larger than ${maxArgumentBytes} bytes`);
  if (isDeeperThan(raw, maxDepth)) return err(`they are nested deeper than ${maxDepth} levels`);
  let value: Json;
  try {
    value = JSON.parse(raw);
  } catch (error) {
    const position = errorPosition(raw, String(error));
    const where = position === raw.length ? `${position} (the end: the text seems to be cut off)` : `${position}`;
    return err(`they are not valid JSON: unexpected text at position ${where}`);
  }
  if (!isJsonObject(value)) return err("they must be one JSON object");
  const problem = problemIn(value);
  if (problem !== undefined) return err(problem);
  const kept = parseJson(raw);
  return kept.ok ? ok(value) : err(kept.error.message);
}

/**
 * The engine names the position in most of its messages, but not for an unexpected token. That error appears in every
 * prefix that holds the token and in none that does not, so its place can be found by halving.
 */
function errorPosition(raw: string, message: string): number {
  const named = /at position (\d+)/.exec(message)?.[1];
  if (named !== undefined) return Number(named);
  if (!message.includes("Unexpected token")) return raw.length;
  let good = 0;
  let bad = raw.length;
  while (good + 1 < bad) {
    const middle = (good + bad) >> 1;
    if (hasUnexpectedToken(raw.slice(0, middle))) bad = middle;
    else good = middle;
  }
  return good;
}

function hasUnexpectedToken(text: string): boolean {
  try {
    JSON.parse(text);
    return false;
  } catch (error) {
    return String(error).includes("Unexpected token");
  }
}

/** What JSON may hold and no value of ours can: a number such as 1e999 is read as infinite, which is no JSON any more. */
function problemIn(value: Json): string | undefined {
  if (typeof value === "number") return Number.isFinite(value) ? undefined : "a number in them is out of range";
  if (typeof value !== "object" || value === null) return undefined;
  if (!Array.isArray(value) && Object.hasOwn(value, "__proto__")) return "the key `__proto__` is not allowed";
  for (const inner of Object.values(value)) {
    const problem = problemIn(inner);
    if (problem !== undefined) return problem;
  }
  return undefined;
}
