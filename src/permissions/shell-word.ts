import type { Assignment, Word, WordPart } from "unbash";
import { type Forms, formsOf, type Variables } from "./globs.ts";
import { gap, symbolsOf, unknown } from "./pattern.ts";

/** One word of a command as the program would get it. */
export interface ShellWord {
  /** What is known before it runs; undefined when anything in it is not. */
  readonly text: string | undefined;
  /** With `unknown` for what an expansion puts there. */
  readonly symbols: readonly number[];
  /** It may become several words, or none. */
  readonly splits: boolean;
  /** Where it is not known: what it may be spelled like, see {@link formsOf}; undefined: anything. */
  readonly forms?: Forms;
}

export function readWord(word: Word | Assignment, variables: Variables): ShellWord {
  if (word.type === "Assignment") return readAssignment(word, variables);
  const read = assemble(piecesOf(word));
  return read.text === undefined ? { ...read, forms: formsOf(word, variables) } : read;
}

/** `NAME=value`, before a command or among its arguments; the value never becomes several words. */
function readAssignment({ name, append, index, value }: Assignment, variables: Variables): ShellWord {
  const head = symbolsOf(`${name}${append === true ? "+" : ""}=`);
  if (index !== undefined || value.type !== "Word")
    return { text: undefined, symbols: [...head, unknown], splits: false, forms: [] };
  const { text, symbols } = assemble(piecesOf(value));
  const whole = text === undefined ? undefined : `${name}${append === true ? "+" : ""}=${text}`;
  const forms = whole === undefined && { forms: formsOf(value, variables) };
  return { text: whole, symbols: [...head, ...symbols], splits: false, ...forms };
}

type Piece = string | { readonly splits: boolean };

function assemble(pieces: readonly Piece[]): ShellWord {
  const isKnown = pieces.every((piece) => typeof piece === "string");
  return {
    text: isKnown ? pieces.join("") : undefined,
    symbols: pieces.flatMap((piece) => (typeof piece === "string" ? symbolsOf(piece) : [unknown])),
    splits: pieces.some((piece) => typeof piece !== "string" && piece.splits),
  };
}

function piecesOf({ text, value, parts }: Word): Piece[] {
  const pieces = parts === undefined ? [value] : parts.flatMap((part) => pieceOf(part));
  if (!text.includes("~")) return pieces;
  // The shell puts home folders in place of a tilde at the beginning and, in what looks like an assignment, behind `=` and `:`.
  if (/^~(?:\/|$)/.test(text) && !/[=:]~/.test(text)) return pieces;
  return /^~|[=:]~/.test(text) ? [{ splits: false }] : pieces;
}

function pieceOf(part: WordPart): Piece[] {
  switch (part.type) {
    case "Literal":
    case "SingleQuoted":
      return [part.value];
    case "AnsiCQuoted":
      // Beyond ASCII an escape may stand for a byte or a character, and a NUL ends the text.
      return /^[\u0001-\u007f]*$/.test(part.value) ? [part.value] : [{ splits: false }];
    case "DoubleQuoted":
      return part.parts.map((inner): Piece =>
        inner.type === "Literal" ? inner.value : { splits: /[@*]/.test(inner.text) },
      );
    default:
      return [{ splits: true }];
  }
}

/** Words in a row with `gap` between them. Behind one that may vanish there is none: nothing can count on it. */
export function joinWords(
  words: readonly { readonly symbols: readonly number[]; readonly splits: boolean }[],
): number[] {
  return words.flatMap(({ symbols, splits }, index) => {
    const isLast = index === words.length - 1;
    return isLast || splits ? [...symbols] : [...symbols, gap];
  });
}
