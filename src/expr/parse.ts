import { ExpressionError as ParserError } from "@actions/expressions/errors";
import type { Expr } from "@actions/expressions/ast";
import type { FunctionInfo } from "@actions/expressions/funcs/info";
import { Lexer, TokenType } from "@actions/expressions/lexer";
import type { Token } from "@actions/expressions/lexer";
import { Parser } from "@actions/expressions/parser";
import { nearest } from "../model/names.ts";
import { ok } from "../model/result.ts";
import type { Result } from "../model/result.ts";
import { buildTree } from "./ast.ts";
import type { At, Node } from "./ast.ts";
import { catchFault, Fault } from "./error.ts";
import type { ExpressionError } from "./error.ts";
import { functionNamed, functionNames } from "./functions.ts";
import { manyArguments } from "./signature.ts";

export type { ExpressionError } from "./error.ts";

/** An expression that is known to parse, with every name in it known. Plain data: cheap to keep, safe to share. */
export interface ParsedExpression {
  readonly source: string;
  /** For the files of this folder only. */
  readonly root: Node;
}

export interface ParseOptions {
  /** The contexts that exist where the expression stands; the {@link defaultContexts} when absent. */
  readonly contexts?: readonly string[];
}

export const defaultContexts: readonly string[] = [
  "inputs",
  "vars",
  "env",
  "secrets",
  "steps",
  "run",
  "item",
  "index",
  "matrix",
  "iteration",
  "previous",
  "result",
];

/** Bytes of UTF-8. */
const maxSourceSize = 8 * 1024;

/** Parses one expression, without `${{ }}` around it. An empty one is an error. */
export function parseExpression(source: string, options: ParseOptions = {}): Result<ParsedExpression, ExpressionError> {
  const plain = plainChain(source, options.contexts ?? defaultContexts);
  if (plain !== undefined) return ok({ source, root: plain });
  return catchFault(() => {
    checkText(source);
    // The package counts columns wrongly after a line break in a string; in one line a column is an offset.
    const line = source.replaceAll("\n", " ");
    const tokens = lex(source, line);
    return { source, root: buildTree(source, tokens, parse(tokens, options.contexts ?? defaultContexts)) };
  });
}

/** Most expressions are nothing but `steps.a.outputs.x`: reading such a chain directly costs a tenth of the package's way. */
function plainChain(source: string, contexts: readonly string[]): Node | undefined {
  if (source.length > longestChain || !/^[a-z_][a-z0-9_-]*(?:\.[a-z_][a-z0-9_-]*)+$/i.test(source)) return undefined;
  const known = contexts === defaultContexts ? defaultContextSet : lowerCased(contexts);
  const [context = "", ...names] = source.split(".");
  const first = context.toLowerCase();
  if (!known.has(first) || literalWords.has(first) || names.length > deepestChain) return undefined;
  let root: Node = { type: "context", name: first, offset: 0, length: context.length };
  for (const name of names) {
    const nameOffset: number = root.length + 1;
    const length: number = nameOffset + name.length;
    root = { type: "property", object: root, name, nameOffset, nameLength: name.length, offset: 0, length };
  }
  return root;
}

const longestChain = 200;
/** Longer ones go the slow way, which knows the limit of depth. */
const deepestChain = 20;
const literalWords: ReadonlySet<string> = new Set(["true", "false", "null", "nan", "infinity"]);

function checkText(source: string): void {
  if (Buffer.byteLength(source) > maxSourceSize) {
    const message = `The expression is longer than ${maxSourceSize / 1024} KB`;
    throw new Fault({ kind: "limit", message, offset: 0, length: source.length });
  }
  const control = source.search(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u2028\u2029]/);
  if (control >= 0) {
    const code = source.charCodeAt(control).toString(16).toUpperCase().padStart(4, "0");
    throw syntaxError(`The expression contains the control character U+${code}`, { offset: control, length: 1 });
  }
  if (source.trim() === "") throw syntaxError("The expression is empty", { offset: 0, length: source.length });
}

function lex(source: string, line: string): Token[] {
  try {
    return new Lexer(line).lex().tokens;
  } catch (thrown) {
    // The lexer tells the place only in its message, before the whole expression.
    const place = "'. Located at position ";
    const message = thrown instanceof Error ? thrown.message.slice(0, -` within expression: ${line}`.length) : "";
    const end = message.lastIndexOf(place);
    if (end < 0) throw thrown;
    const offset = Number(message.slice(end + place.length)) - 1;
    const symbol = source.slice(offset, offset + end - "Unexpected symbol: '".length);
    throw syntaxError(
      `Unexpected symbol: '${symbol}'`,
      { offset, length: symbol.length },
      symbols.get(symbol.charAt(0)),
    );
  }
}

interface Names {
  /** Those that exist, as written. */
  readonly contexts: string[];
  readonly functions: FunctionInfo[];
  /** The first call of something that does not exist. */
  readonly unknown: Token | undefined;
}

/** The names an expression uses: telling the package every name there is would take longer than the rest of its work. */
function namesIn(tokens: readonly Token[], known: readonly string[]): Names {
  const isKnown = known === defaultContexts ? defaultContextSet : lowerCased(known);
  const contexts: string[] = [];
  const functions: FunctionInfo[] = [];
  let unknown: Token | undefined;
  tokens.forEach((token, index) => {
    if (token.type !== TokenType.IDENTIFIER) return;
    if (tokens[index + 1]?.type !== TokenType.LEFT_PAREN) {
      if (isKnown.has(token.lexeme.toLowerCase())) contexts.push(token.lexeme);
      return;
    }
    const signature = functionNamed(token.lexeme);
    if (signature === undefined) unknown ??= token;
    else functions.push({ name: signature.name, minArgs: signature.min, maxArgs: signature.max });
  });
  return { contexts, functions, unknown };
}

const defaultContextSet: ReadonlySet<string> = lowerCased(defaultContexts);

function lowerCased(names: readonly string[]): ReadonlySet<string> {
  return new Set(names.map((name) => name.toLowerCase()));
}

function parse(tokens: Token[], contexts: readonly string[]): Expr {
  const names = namesIn(tokens, contexts);
  try {
    const tree = new Parser(tokens, names.contexts, names.functions).parse();
    // The package looks functions up among the names every object inherits too: `constructor('x')` parses.
    if (names.unknown !== undefined) {
      throw unknownName(`Unrecognized function: '${names.unknown.lexeme}'`, names.unknown, functionNames);
    }
    return tree;
  } catch (thrown) {
    if (!(thrown instanceof ParserError)) throw thrown;
    throw parserFault(thrown, tokens, contexts);
  }
}

function parserFault(thrown: ParserError, tokens: readonly Token[], contexts: readonly string[]): Fault {
  const { message } = thrown;
  // The token is private in the package's types; its position alone does not tell the last token from the end.
  const culprit: unknown = Reflect.get(thrown, "tok");
  const token = tokens.find((candidate) => candidate === culprit) ?? tokens.at(-1);
  if (token === undefined || (token.type === TokenType.EOF && !message.startsWith("Exceeded"))) {
    return endFault(message, tokens.at(-2));
  }
  if (message.startsWith("Exceeded")) return new Fault({ kind: "limit", message, ...positionOf(token) });
  if (message.startsWith("Unrecognized function")) return unknownName(message, token, functionNames);
  if (message.startsWith("Unrecognized")) return unknownName(message, token, contexts);
  const hint = message.includes("parameters supplied") ? arityHint(token.lexeme) : words.get(token.lexeme);
  return syntaxError(message, positionOf(token), hint);
}

/** The package calls the end `EOF` or places it at the last token. */
function endFault(message: string, last: Token | undefined): Fault {
  if (last === undefined) return syntaxError(message, { offset: 0, length: 0 });
  return syntaxError(`Unexpected end of expression: '${last.lexeme}'`, positionOf(last));
}

function positionOf(token: Token): At {
  return { offset: token.range.start.column, length: token.lexeme.length };
}

function unknownName(message: string, token: Token, known: readonly string[]): Fault {
  const near = nearest(token.lexeme, known);
  const others = known.length === 0 ? "No context is given here." : `Known are ${known.join(", ")}.`;
  const suggestion = words.get(token.lexeme) ?? (near === undefined ? others : `Did you mean \`${near}\`?`);
  return new Fault({ kind: "unknown", message, ...positionOf(token), suggestion });
}

function arityHint(name: string): string | undefined {
  const signature = functionNamed(name);
  if (signature === undefined) return undefined;
  const { min, max } = signature;
  if (signature.name === "case") return "case() takes pairs of a condition and a value, and a last value.";
  const count = max === manyArguments ? `${min} or more` : min === max ? `${min}` : `${min} to ${max}`;
  return `${signature.name}() takes ${count} argument${count === "1" ? "" : "s"}.`;
}

function syntaxError(message: string, at: At, suggestion?: string): Fault {
  const { offset, length } = at;
  return new Fault({ kind: "syntax", message, offset, length, ...(suggestion === undefined ? {} : { suggestion }) });
}

/** What to write instead of what other languages have: words, and first characters of what is no symbol here. */
const words: ReadonlyMap<string, string> = new Map([
  ["and", "Write `&&`."],
  ["or", "Write `||`."],
  ["not", "Write `!`."],
]);
const symbols: ReadonlyMap<string, string> = new Map([
  ["'", "Close the text with a single quote; a quote inside it is written twice."],
  ['"', "Write text in single quotes."],
  ["`", "Write text in single quotes."],
  ["=", "Write `==` to compare."],
  ["&", "Write `&&`."],
  ["|", "Write `||`."],
  ["$", "Write no `${{ }}` inside an expression."],
]);
