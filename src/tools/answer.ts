import type { ToolOutput } from "../model/ports.ts";
import { type Result, ok } from "../model/result.ts";

/** One text block. */
export function answer(text: string): Result<ToolOutput, string> {
  return ok({ blocks: [{ type: "text", text }] });
}

/** A name of a file on one line: as it is, or quoted when it holds control characters. */
export function fileName(name: string): string {
  return /\p{Cc}/u.test(name) ? JSON.stringify(name) : name;
}

export function plural(amount: number, thing: string): string {
  return `${amount} ${thing}${amount === 1 ? "" : "s"}`;
}
