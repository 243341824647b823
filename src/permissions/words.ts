import { mayName } from "./globs.ts";
import { gap, one, secretMark, spelledMark, star, type Symbols } from "./pattern.ts";

/** Whether a word of a command names a file with credentials. Handed in: the list belongs to the tools. */
export interface IsSecret {
  (path: string): boolean;
  /** What wildcards are held against, in lower case: files, and folders with a `/` at the end. */
  readonly examples?: readonly string[];
}

/** What is not known of a word. */
interface Unknowns {
  readonly forms: readonly Symbols[] | undefined;
  readonly splits: boolean;
}

const assignment = /^[A-Za-z_][A-Za-z0-9_]*\+?=/;
/** What speaks to a person or a report alone, and is written before commands every day. */
const harmless =
  /^(?:CI|NODE_ENV|FORCE_COLOR|NO_COLOR|TZ|LANG|LC_ALL|RUST_BACKTRACE|PYTHONUNBUFFERED|PYTHONDONTWRITEBYTECODE)=[\w+.:-]*$/;

/** Whether a word, before a command, is `NAME=value`. */
export function isAssignment(word: string): boolean {
  return assignment.test(word);
}

/** Whether an assignment changes nothing of what a command does. */
export function isHarmless(word: string): boolean {
  return harmless.test(word);
}

/** Marks the words of one command in their order: one that wildcards must not pass gets a mark. */
export class Marker {
  readonly #isSecret: IsSecret;
  /** The program, once it is known that it stands before. */
  #program: string | undefined;
  /** Of a `printf`, once it has come. */
  #format: "known" | "unknown" | undefined;

  constructor(isSecret: IsSecret) {
    this.#isSecret = isSecret;
  }

  /** `unknowns` where the word is only what is known of it. */
  mark(word: string, unknowns?: Unknowns): number[] {
    const program = this.#program;
    if (program === undefined && !assignment.test(word)) this.#program = word;
    if (namesSecret(word, this.#isSecret) || this.#mayNameSecret(unknowns)) return [secretMark];
    const assigns = program === undefined ? assignment.test(word) : this.#assigns(program, word, unknowns);
    return assigns || word.includes("\r") ? [spelledMark] : [];
  }

  #mayNameSecret(unknowns: Unknowns | undefined): boolean {
    const { examples } = this.#isSecret;
    if (unknowns === undefined || examples === undefined) return false;
    return unknowns.forms === undefined || unknowns.forms.some((form) => mayName(form, examples));
  }

  /** `%n` in a format writes to the variable that an argument names; a format that is not known may contain it. */
  #assigns(program: string, word: string, unknowns: Unknowns | undefined): boolean {
    if (writers.has(program) && word.startsWith("-v")) return true;
    if (program !== "printf") return false;
    const isBehindUnknown = this.#format === "unknown";
    if (this.#format === undefined && word !== "--") this.#format = unknowns === undefined ? "known" : "unknown";
    const splits = this.#format === "unknown" && unknowns?.splits === true;
    return isBehindUnknown || splits || /%[^%A-Za-z]*[hlLqjzt]*n/.test(word.replaceAll("%%", ""));
  }
}

/** Builtins whose `-v` evaluates the name of a variable that follows. */
const writers = new Set(["printf", "test", "["]);

/** `.env`, `--file=.env`, `HEAD:.env`, `@.env`, `-i.env`: a word is taken apart where a path may begin in it. */
function namesSecret(word: string, isSecret: IsSecret): boolean {
  const pieces = [word, ...word.split(/[=:,@]/), ...(/^-[A-Za-z]./.test(word) ? [word.slice(2)] : [])];
  return pieces.some(
    (piece) => piece !== "" && isSecret(piece.replace(/^(?:\.?\/)+/, "").replaceAll(/\/\.?(?=\/)/g, "")),
  );
}

interface PatternWord {
  readonly symbols: number[];
  /** The word itself where it has no wildcard. */
  readonly literal: string | undefined;
}

/**
 * A command pattern, word by word: `git commit -m 'two words'`, `npm run *`. Quotes only hold words together, a
 * backslash takes the meaning from the character after it. `*` at the end means any more words, also none.
 */
export function commandPatterns(text: string, isSecret: IsSecret): Symbols[] {
  const words = patternWords(text);
  const marker = new Marker(isSecret);
  const symbols = words.flatMap((word, index) => [
    ...(index > 0 ? [gap] : []),
    ...marker.mark(spellingOf(word)),
    ...word.symbols,
  ]);
  const last = words.at(-1);
  if (words.length < 2 || last?.symbols.length !== 1 || last.symbols[0] !== star) return [symbols];
  return [symbols, symbols.slice(0, -2)];
}

/** What a word spells for certain: all of it, or an assignment's name. */
function spellingOf({ symbols, literal }: PatternWord): string {
  if (literal !== undefined) return literal;
  const wild = symbols.findIndex((symbol) => symbol < 0);
  const head = String.fromCharCode(...symbols.slice(0, wild));
  return assignment.test(head) ? head : "*";
}

function patternWords(text: string): PatternWord[] {
  const words: PatternWord[] = [];
  let symbols: number[] | undefined;
  let isLiteral = true;
  const close = (): void => {
    if (symbols !== undefined)
      words.push({ symbols, literal: isLiteral ? String.fromCharCode(...symbols) : undefined });
    symbols = undefined;
    isLiteral = true;
  };
  let quote = "";
  for (let at = 0; at < text.length; at++) {
    const char = text[at] ?? "";
    if (quote === "" && /\s/.test(char)) close();
    else if (char === quote) quote = "";
    else if (quote === "" && (char === "'" || char === '"') && text.includes(char, at + 1)) {
      quote = char;
      symbols ??= [];
    } else if (char === "\\" && at + 1 < text.length) (symbols ??= []).push(text.charCodeAt(++at));
    else if (char === "*" || char === "?") {
      isLiteral = false;
      (symbols ??= []).push(char === "*" ? star : one);
    } else (symbols ??= []).push(text.charCodeAt(at));
  }
  close();
  return words;
}

/** The words as a command pattern that holds for exactly them. */
export function commandText(words: readonly string[]): string {
  return words
    .map((word) => {
      const escaped = word.replaceAll(/[\\*?'"]/g, "\\$&");
      return word === "" || /\s/.test(word) ? `'${escaped}'` : escaped;
    })
    .join(" ");
}
