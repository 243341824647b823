import { CST, Lexer, Parser } from "yaml";
import { maxProblems } from "./text.ts";
import type { Problem } from "./text.ts";
import { FlowBraces } from "./swallowed.ts";
import { cutExpression, directiveRefused, tagRefused, tooDeep, unclosedQuote } from "./refusals.ts";

/** Anchors and aliases a file may have together. */
const maxAnchors = 100;
/** Nested maps and lists. */
export const maxDepth = 64;

export interface Scanned {
  /** The library's syntax tree; empty when the scan stopped early, because then nothing may look at the rest. */
  readonly tokens: readonly CST.Token[];
  readonly problems: readonly Problem[];
}

/**
 * The one pass of lexer and parser, with our own eyes on every lexeme. What composing cannot survive (depth, anchors) stops
 * it at once; what the library reads as something else than people mean is named here, where the text is still visible.
 */
export function scan(text: string): Scanned {
  const watch = new Watch(text);
  const parser = new Parser();
  const tokens: CST.Token[] = [];
  let document = false;
  for (const lexeme of new Lexer().lex(text)) {
    const at = parser.offset;
    watch.see(lexeme, at);
    for (const token of parser.next(lexeme)) {
      tokens.push(token);
      document ||= token.type === "document";
    }
    if (depth(parser.stack) > maxDepth) watch.stop(tooDeep(text, at, maxDepth));
    if (document && parser.stack[0]?.type === "document") watch.stop(secondDocument(parser.stack[0].offset));
    if (watch.stopped) return { tokens: [], problems: watch.problems };
  }
  for (const token of parser.end()) tokens.push(token);
  watch.end();
  return { tokens, problems: watch.problems };
}

/** Maps and lists open now; the stack also holds the document below them and perhaps a scalar above. */
function depth(stack: readonly CST.Token[]): number {
  if (stack.length <= maxDepth) return 0;
  return stack.length - (CST.isCollection(stack.at(-1)) ? 1 : 2);
}

function secondDocument(offset: number): Problem {
  return {
    code: "FLOW1008",
    message: "a second YAML document begins here; a file holds one",
    from: offset,
    to: offset + 3,
    suggestion: "Move it to a file of its own.",
  };
}

class Watch {
  readonly problems: Problem[] = [];
  readonly #text: string;
  readonly #braces: FlowBraces;
  #stopped = false;
  #anchors = 0;
  /** The next lexeme is the text of a plain or block scalar; every other lexeme is known by its first character. */
  #scalar = false;
  #block = false;
  /** The plain scalar last seen on this line. */
  #plain: { readonly source: string; readonly at: number } | undefined;

  constructor(text: string) {
    this.#text = text;
    this.#braces = new FlowBraces(text);
  }

  get stopped(): boolean {
    return this.#stopped || this.problems.length >= maxProblems;
  }

  stop(problem: Problem): void {
    this.problems.push(problem);
    this.#stopped = true;
  }

  end(): void {
    this.#add(...this.#braces.giveUp(this.#text.length));
  }

  see(lexeme: string, at: number): void {
    if (this.#scalar) {
      this.#scalar = false;
      this.#plain = this.#block ? undefined : { source: lexeme, at };
      this.#block = false;
      return;
    }
    switch (lexeme.charAt(0)) {
      case CST.SCALAR:
        this.#scalar = true;
        return;
      case " ":
      case "\t":
        return;
      case "#":
        if (this.#plain !== undefined) this.#add(...cutExpression(this.#text, this.#plain, at));
        break;
      case "|":
      case ">":
        this.#block = true;
        break;
      case "&":
      case "*":
        if (++this.#anchors > maxAnchors) this.stop(tooManyAnchors(at, lexeme.length));
        break;
      case "!":
        this.#add(tagRefused(this.#text, at, lexeme));
        break;
      case "%":
        this.#add(directiveRefused(lexeme, at));
        break;
      case "'":
      case '"':
        this.#add(...unclosedQuote(lexeme, at));
        break;
      case "{":
      case "[":
        this.#add(...this.#braces.open(lexeme, at));
        break;
      case "}":
      case "]":
        this.#add(...this.#braces.close(lexeme, at));
        break;
      case CST.FLOW_END:
        this.#add(...this.#braces.giveUp(at));
        break;
      default:
    }
    this.#plain = undefined;
  }

  #add(...problems: readonly Problem[]): void {
    this.problems.push(...problems);
  }
}

function tooManyAnchors(at: number, length: number): Problem {
  return {
    code: "FLOW1009",
    message: `the file has more than ${maxAnchors} anchors and aliases`,
    from: at,
    to: at + length,
    suggestion: "Write the values out, or move what is shared into a workflow of its own.",
  };
}
