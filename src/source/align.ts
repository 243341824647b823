import type { ScalarStyle } from "./node.ts";

/**
 * For each character of a scalar's value, where it begins and ends in the raw text. `starts` has one place more, for the
 * end of the value. Both are empty when value and text do not match.
 */
export interface Alignment {
  readonly starts: readonly number[];
  readonly ends: readonly number[];
}

/**
 * Folding, indentation and chomping only ever add, drop or change white space, so the other characters of value and
 * raw text correspond one to one, in order; only quoting (`''`, `\u0041`) spells some of them longer.
 */
export function align(scalar: {
  readonly raw: string;
  readonly value: string;
  readonly style: ScalarStyle;
}): Alignment {
  const { raw, value, style } = scalar;
  const starts: number[] = [];
  const ends: number[] = [];
  let before = 0;
  for (let at = 0; at < raw.length;) {
    const written = unit(raw, at, style);
    const end = at + written.length;
    if (!isWhite(written.text)) {
      before = placeWhite({ value, starts, ends, before, after: at });
      if (!value.startsWith(written.text, starts.length)) return { starts: [], ends: [] };
      for (let i = 0; i < written.text.length; i++) {
        starts.push(at);
        ends.push(end);
      }
      before = end;
    }
    at = end;
  }
  placeWhite({ value, starts, ends, before, after: raw.length });
  if (starts.length !== value.length) return { starts: [], ends: [] };
  starts.push(ends.at(-1) ?? 0);
  return { starts, ends };
}

/** Gives the white space of the value that comes next the places between `before` and `after`, its raw neighbours. */
function placeWhite(gap: { value: string; starts: number[]; ends: number[]; before: number; after: number }): number {
  const { value, starts, ends, before, after } = gap;
  const from = starts.length;
  let to = from;
  while (to < value.length && isWhite(value[to] ?? "")) to++;
  const lastBreak = to === from ? -1 : value.lastIndexOf("\n", to - 1);
  for (let i = from; i < to; i++) {
    const start = i <= lastBreak ? Math.min(after, before + i - from) : Math.max(before, after - (to - i));
    starts.push(start);
    ends.push(Math.min(after, start + 1));
  }
  return after;
}

interface Unit {
  /** Raw characters. */
  readonly length: number;
  /** What they stand for; empty or white space is not aligned. */
  readonly text: string;
}

function unit(raw: string, at: number, style: ScalarStyle): Unit {
  const char = raw[at] ?? "";
  if (style === "single" && char === "'") return { length: 2, text: "'" };
  if (style === "double" && char === "\\") return escape(raw, at);
  return { length: 1, text: char };
}

const named: ReadonlyMap<string, string> = new Map([
  ["0", "\0"],
  ["a", "\u0007"],
  ["b", "\b"],
  ["e", "\u001b"],
  ["f", "\f"],
  ["n", "\n"],
  ["r", "\r"],
  ["t", "\t"],
  ["v", "\v"],
  ["N", "\u0085"],
  ["_", "\u00a0"],
  ["L", "\u2028"],
  ["P", "\u2029"],
]);
const digits: ReadonlyMap<string, number> = new Map([
  ["x", 2],
  ["u", 4],
  ["U", 8],
]);

function escape(raw: string, at: number): Unit {
  const letter = raw[at + 1] ?? "";
  const count = digits.get(letter);
  if (count === undefined) return { length: 2, text: named.get(letter) ?? letter };
  const code = Number.parseInt(raw.slice(at + 2, at + 2 + count), 16);
  return { length: 2 + count, text: code <= 0x10ffff ? String.fromCodePoint(code) : "" };
}

function isWhite(text: string): boolean {
  return text === "" || text === " " || text === "\n" || text === "\t" || text === "\r";
}
