/**
 * Texts and patterns as numbers: UTF-16 units, and above them what is no character. A command is its words with `gap`
 * between them, so that one word with a space in it is never taken for two.
 */
export type Symbols = readonly number[];

/** The border between two words. */
export const gap: number = 0x10000;
/** A piece of text that is known only when the command runs: any characters, also none, also gaps. */
export const unknown: number = 0x10001;
/** Before a word that names a file with credentials. No wildcard passes it: a rule has to spell the word. */
export const secretMark: number = 0x10002;
/** Before a word that changes what a command does, such as `PATH=.`. No wildcard passes it either. */
export const spelledMark: number = 0x10003;
/** In a pattern: any symbols, also none. */
export const star: number = -1;
/** In a pattern: one character. */
export const one: number = -2;

export function symbolsOf(text: string): number[] {
  const symbols: number[] = [];
  for (let at = 0; at < text.length; at++) symbols.push(text.charCodeAt(at));
  return symbols;
}

export function inLowerCase(symbols: Symbols): number[] {
  return symbols.map((symbol) =>
    symbol >= 0 && symbol < gap ? String.fromCharCode(symbol).toLowerCase().charCodeAt(0) : symbol,
  );
}

/** The symbols of a text in which `*` and `?` are wildcards. */
export function wildcardsOf(text: string): number[] {
  return symbolsOf(text).map((unit) => (unit === 0x2a ? star : unit === 0x3f ? one : unit));
}

/**
 * Whether the pattern holds for the text, whatever its unknown pieces turn out to be. Two pointers and one place to
 * return to: the time is at most the product of the lengths, for any pattern.
 */
export function covers(pattern: Symbols, text: Symbols): boolean {
  let at = 0;
  let next = 0;
  let lastStar = -1;
  let from = 0;
  while (at < text.length) {
    const wanted = pattern[next];
    const given = text[at] ?? gap;
    if (wanted === star) {
      lastStar = next++;
      from = at;
    } else if (wanted === given ? given !== unknown : wanted === one && given < gap) {
      next++;
      at++;
    } else {
      if (lastStar === -1 || isMark(text[from])) return false;
      at = ++from;
      next = lastStar + 1;
    }
  }
  while (pattern[next] === star) next++;
  return next === pattern.length;
}

/** Whether the pattern may hold for the text, marks aside, for some value of its unknown pieces. Never a false no. */
export function mayCover(pattern: Symbols, text: Symbols): boolean {
  const bare = text.filter((symbol) => !isMark(symbol));
  const plain = pattern.filter((symbol) => !isMark(symbol));
  const border = bare.indexOf(unknown);
  if (border === -1) return covers(plain, bare);
  const wild = plain.indexOf(star);
  const length = wild === -1 ? border : Math.min(border, wild);
  for (let at = 0; at < length; at++) {
    const wanted = plain[at];
    // Where an unknown piece follows, it may hold what the pattern still wants.
    if (wanted === undefined) return false;
    if (wanted !== bare[at] && !(wanted === one && (bare[at] ?? gap) < gap)) return false;
  }
  return true;
}

function isMark(symbol: number | undefined): boolean {
  return symbol === secretMark || symbol === spelledMark;
}
