import { maxProblems } from "./text.ts";
import type { Problem } from "./text.ts";

/** Follows the brackets of flow collections (`[…]`, `{…}`): the unclosed ones, and expressions read as mappings. */
export class FlowBraces {
  readonly #text: string;
  readonly #open: { readonly bracket: string; readonly at: number }[] = [];
  #found: Problem[] = [];

  constructor(text: string) {
    this.#text = text;
  }

  /** The problems found so far when they are as many as anybody will read; else they come when the collection ends. */
  open(bracket: string, at: number): readonly Problem[] {
    this.#open.push({ bracket, at });
    const before = this.#text[at - 1];
    if (bracket !== "{" || this.#text[at + 1] !== "{" || before === "{") return [];
    this.#found.push(before === "$" ? swallowed(this.#text, at - 1) : withoutDollar(this.#text, at));
    return this.#found.length < maxProblems ? [] : this.#complete(at);
  }

  /** The problems of a collection that is complete with this bracket. */
  close(bracket: string, at: number): readonly Problem[] {
    const last = this.#open.pop();
    if (last === undefined) return [unopened(bracket, at)];
    if ((last.bracket === "[") !== (bracket === "]") && this.#found.length === 0)
      this.#found.push(unclosed(last.bracket, last.at, `this \`${last.bracket}\` is closed by \`${bracket}\``));
    return this.#open.length === 0 ? this.#complete(at) : [];
  }

  /** The problems of a collection that the lexer gave up at this offset, or that the text ends in. */
  giveUp(at: number): readonly Problem[] {
    const last = this.#open.at(-1);
    if (last !== undefined && this.#found.length === 0)
      this.#found.push({ ...unclosed(last.bracket, last.at, `this \`${last.bracket}\` is never closed`), loses: true });
    this.#open.length = 0;
    return this.#complete(at);
  }

  #complete(at: number): readonly Problem[] {
    const complete = this.#found.map((problem) => ({ ...problem, hides: at }));
    this.#found = [];
    return complete;
  }
}

function unopened(bracket: string, at: number): Problem {
  return {
    code: "FLOW1006",
    message: `a \`${bracket}\` without its \`${bracket === "]" ? "[" : "{"}\``,
    from: at,
    to: at + 1,
    suggestion: "Remove it, or put the value in quotes.",
  };
}

function unclosed(bracket: string, at: number, message: string): Problem {
  return {
    code: "FLOW1006",
    message,
    from: at,
    to: at + 1,
    suggestion: `Close it with \`${bracket === "[" ? "]" : "}"}\`; its lines must be indented deeper than its key.`,
  };
}

function swallowed(text: string, at: number): Problem {
  const end = expressionEnd(text, at);
  return {
    code: "FLOW1014",
    message: "inside [ ] and { } YAML reads the braces of an unquoted expression as a mapping",
    from: at,
    to: end ?? at + 3,
    ...(end === undefined ? {} : { mask: true as const }),
    suggestion: end === undefined ? "Put the expression in quotes." : `Write ${quoted(text.slice(at, end))}.`,
  };
}

function withoutDollar(text: string, at: number): Problem {
  const end = expressionEnd(text, at);
  return {
    code: "FLOW1014",
    message: "YAML reads `{{` as the start of a mapping; an expression is written `${{ … }}`",
    from: at,
    to: end ?? at + 2,
    ...(end === undefined ? {} : { mask: true as const }),
    suggestion:
      end === undefined
        ? "Write `$` before it, or put the text in quotes."
        : `Write ${quoted(`$${text.slice(at, end)}`)}.`,
  };
}

/** Expressions longer than this are not quoted back in a message. */
const maxShown = 200;

function expressionEnd(text: string, at: number): number | undefined {
  const line = text.slice(at, at + maxShown).split("\n", 1)[0] ?? "";
  const close = line.indexOf("}}");
  return close === -1 ? undefined : at + close + 2;
}

/** The text as a YAML scalar in the kind of quotes that needs the fewest escapes. */
export function quoted(text: string): string {
  return /["\\]/.test(text) ? `'${text.replaceAll("'", "''")}'` : `"${text}"`;
}
