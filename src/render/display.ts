import { createRequire } from "node:module";
import type stringWidthOf from "string-width";

const require = createRequire(import.meta.url);

/**
 * Characters a terminal obeys instead of showing: controls, line and paragraph separators, bidirectional overrides,
 * zero-width spaces, lone surrogates. The zero-width joiner stays: emoji need it and it moves nothing.
 */
const unprintable = /[\p{Cc}\p{Cs}\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/gu;
const named: ReadonlyMap<string, string> = new Map([
  ["\n", "\\n"],
  ["\r", "\\r"],
  ["\t", "\\t"],
]);

/** The same text, safe on one line of a terminal or a file: what cannot be seen becomes `\n`, `\x1b`, `\u202e`. */
export function visible(text: string): string {
  return text.replace(unprintable, (character) => {
    const code = character.charCodeAt(0);
    return (
      named.get(character) ??
      (code < 256 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`)
    );
  });
}

/** ASCII and the signs our own drawings use; measuring these needs no tables. */
const narrow = /^[\x20-\x7e←→⇐⇠×↻≤·…│┌├└⊘■○●◷✓✗]*$/;

/** Columns a terminal needs for `text`: 修 takes two. */
export function displayWidth(text: string): number {
  return narrow.test(text) ? text.length : stringWidth(text);
}

/** Required here and not imported above: its segmenter and patterns take longer to build than a small run takes. */
function stringWidth(text: string): number {
  return (require("string-width") as { default: typeof stringWidthOf }).default(text);
}

/** `text` in at most `width` columns, its end replaced by `…` when it is longer. */
export function cut(text: string, width: number): string {
  // No character takes less than a thirty-second of a column in honest text; the rest is not worth measuring.
  const head = text.length > width * 32 ? text.slice(0, width * 32) : text;
  if (head === text && displayWidth(text) <= width) return text;
  if (width < 1) return "";
  if (narrow.test(head)) return `${head.slice(0, width - 1)}…`;
  let kept = "";
  let used = 0;
  for (const { segment } of new Intl.Segmenter().segment(head)) {
    used += displayWidth(segment);
    if (used > width - 1) break;
    kept += segment;
  }
  return `${kept}…`;
}

export function pad(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - displayWidth(text)));
}

/** `text` in lines of at most `width` columns, broken at spaces; at most `most` lines, the last one cut. */
export function wrap(text: string, width: number, most: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.slice(0, width * most * 2).split(" ")) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (line === "" || displayWidth(longer) <= width) line = longer;
    else {
      lines.push(line);
      line = word;
    }
  }
  lines.push(line);
  if (lines.length > most) lines.splice(most - 1, lines.length, lines.slice(most - 1).join(" "));
  return lines.map((it) => cut(it, width));
}
