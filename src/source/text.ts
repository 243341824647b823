import type { Code } from "../model/codes.ts";
import type { Diagnostic, RelatedSpan, Span } from "../model/diagnostic.ts";
import { err, ok } from "../model/result.ts";
import type { Result } from "../model/result.ts";
import type { Positions } from "./positions.ts";

/** Bytes a file may have. */
export const maxBytes: number = 8 * 1024 * 1024;
/** Problems reported for one file. */
export const maxProblems = 1000;

/** One thing wrong with a text, by offsets. */
export interface Problem {
  readonly code: Code;
  readonly message: string;
  readonly from: number;
  readonly to: number;
  readonly suggestion?: string;
  /** The parser's own complaints up to the line of this offset are only echoes of this problem. */
  readonly hides?: number;
  /** Where the rest of the text belongs is not known after it: nothing behind it is worth reporting. */
  readonly loses?: true;
  /** The text from `from` to `to` misleads the parser; without it the rest can be read. */
  readonly mask?: true;
  readonly related?: RelatedSpan;
}

export function toDiagnostic(problem: Problem, positions: Positions): Diagnostic {
  const { code, message, from, to, suggestion, related } = problem;
  return {
    code,
    severity: "error",
    message,
    at: positions.span(from, to),
    ...(related === undefined ? {} : { related: [related] }),
    ...(suggestion === undefined ? {} : { suggestion }),
  };
}

/** The text of a file without its byte order mark. An error is FLOW1003 (size) or FLOW1004 (not UTF-8). */
export function decode(bytes: Uint8Array, file: string): Result<string, Diagnostic> {
  const start: Span = { file, line: 1, column: 1, endLine: 1, endColumn: 1 };
  if (bytes.length > maxBytes)
    return err({ code: "FLOW1003", severity: "error", message: tooLarge(bytes.length), at: start });
  const utf16 = (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff);
  if (utf16)
    return err({
      code: "FLOW1004",
      severity: "error",
      message: "the file is encoded as UTF-16",
      at: start,
      suggestion: "Save it as UTF-8.",
    });
  const text = strictly(bytes);
  if (text !== undefined) return ok(text);
  const valid = validPrefix(bytes);
  const lines = (strictly(bytes.subarray(0, valid)) ?? "").split("\n");
  const column = (lines.at(-1)?.length ?? 0) + 1;
  const hex = (bytes[valid] ?? 0).toString(16).padStart(2, "0");
  return err({
    code: "FLOW1004",
    severity: "error",
    message: `byte 0x${hex} is not UTF-8`,
    at: { file, line: lines.length, column, endLine: lines.length, endColumn: column },
    suggestion: "Save the file as UTF-8.",
  });
}

export function tooLarge(size: number): string {
  return `the file has ${size} bytes; at most ${maxBytes} are read`;
}

/** How many leading bytes of a broken text are whole UTF-8 characters. */
function validPrefix(bytes: Uint8Array): number {
  let low = 0;
  let high = bytes.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (strictly(bytes.subarray(0, middle), { stream: true }) === undefined) high = middle - 1;
    else low = middle;
  }
  // That prefix may end inside a character: step back to where the character begins.
  while (low > 0 && strictly(bytes.subarray(0, low)) === undefined) low--;
  return low;
}

function strictly(bytes: Uint8Array, options: { readonly stream?: boolean } = {}): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes, options);
  } catch {
    return undefined;
  }
}

/**
 * Characters YAML calls not printable, byte order marks, and carriage returns that end no line. U+2028 and U+2029 are
 * legal in text (a prompt may hold them) and refused only in keys.
 */
export function controlCharacters(text: string): Problem[] {
  const problems: Problem[] = [];
  for (const match of text.matchAll(control)) {
    if (problems.length >= maxProblems) break;
    const bareReturn = match[0] === "\r";
    problems.push({
      code: "FLOW1005",
      message: bareReturn ? "a carriage return without a line feed" : `${describe(match[0])} inside the file`,
      from: match.index,
      to: match.index + 1,
      suggestion: bareReturn
        ? "End lines with LF or CR LF."
        : "Remove it, or write it as an escape in double quotes if the text needs it.",
    });
  }
  return problems;
}

const control = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u0084\u0086-\u009f\ufeff\ufffe\uffff]|\r(?!\n)/g;

/** The characters no key may hold, even when written as an escape. */
export const controlInKey: RegExp = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/;

export function describe(char: string): string {
  if (char === "\ufeff") return "a byte order mark (U+FEFF)";
  const point = (char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
  return `the control character U+${point}`;
}
