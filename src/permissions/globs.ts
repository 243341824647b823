import type { DoubleQuotedChild, Word, WordPart } from "unbash";
import { covers, inLowerCase, one, star, type Symbols, symbolsOf } from "./pattern.ts";

/** More spellings than this are not looked at one by one. */
const mostForms = 200;
const deepest = 8;

/** What an expansion puts there: as `star`, but it may begin with a `.`, which no wildcard of a shell does. */
const anything = -3;

/** What is known of variables, by name: the forms of their values. */
export type Variables = ReadonlyMap<string, Forms>;
/** Undefined for more than can be looked at. */
export type Forms = readonly Symbols[] | undefined;

/** What a word with wildcards, braces or expansions may be spelled like, as patterns. */
export function formsOf({ value, parts }: Word, variables: Variables): Forms {
  if ((parts ?? []).length === 0) return [symbolsOf(value)];
  return joined((parts ?? []).map((part) => formsOfPart(part, variables)));
}

/** All forms of several, as what a loop takes one after the other. */
export function union(several: readonly Forms[]): Forms {
  if (several.includes(undefined)) return undefined;
  const forms = several.flatMap((it) => it ?? []);
  return forms.length > mostForms ? undefined : forms;
}

function formsOfPart(part: WordPart | DoubleQuotedChild, variables: Variables): Forms {
  switch (part.type) {
    case "Literal":
    case "SingleQuoted":
    case "AnsiCQuoted":
      return [symbolsOf(part.value)];
    case "DoubleQuoted":
      return joined(part.parts.map((inner) => formsOfPart(inner, variables)));
    case "Glob":
      return [[part.kind === "star" ? star : one]];
    case "BraceExpansion":
      return formsOfText(part.text, 0);
    case "ExtendedGlob":
      return part.operator === "!" ? [[star]] : formsOfText(`{${part.pattern.replaceAll("|", ",")},}`, 0);
    case "SimpleExpansion":
      return formsOfVariable(part.text.slice(1), variables);
    case "ParameterExpansion":
      return formsOfExpansion(part, variables);
    default:
      return [[anything]];
  }
}

function formsOfVariable(name: string, variables: Variables): Forms {
  return variables.has(name) ? variables.get(name) : [[anything]];
}

/** `${name}` and what bash can do with it on the way. */
function formsOfExpansion(part: Extract<WordPart, { type: "ParameterExpansion" }>, variables: Variables): Forms {
  const { parameter, operation, prefix } = part;
  if (prefix !== undefined) return [[anything]];
  const known = formsOfVariable(parameter, variables);
  switch (operation?.type) {
    case undefined:
    case "CaseModification":
      return known;
    case "Default":
      return union([known, formsOf(operation.operand, variables)]);
    case "Replace": {
      const put = formsOf(operation.replacement, variables);
      return variables.has(parameter) ? union([known, joined([put, [[anything]]])]) : [[anything]];
    }
    default:
      return variables.has(parameter) ? formsOfPieces(known) : [[anything]];
  }
}

/** What is left of a text of which something was cut away: pieces of one name of its path. */
function formsOfPieces(forms: Forms): Forms {
  const names = forms?.flatMap((form) => split(form, "/"));
  if (names === undefined || names.some(({ length }) => length > mostForms)) return undefined;
  const pieces = names.flatMap((name) => name.flatMap((_, at) => name.map((__, end) => name.slice(at, end + 1))));
  const different = new Map(pieces.map((piece) => [piece.join(), piece]));
  return different.size > mostForms ? undefined : [...different.values()];
}

/** Every way to put one form of each in a row. */
function joined(parts: readonly Forms[]): Forms {
  let forms: Symbols[] = [[]];
  for (const part of parts) {
    if (part === undefined || forms.length * part.length > mostForms) return undefined;
    forms = forms.flatMap((form) => part.map((more) => [...form, ...more]));
  }
  return forms;
}

/** The text of braces, and of what stands in them: quotes are taken away, wildcards kept. */
function formsOfText(text: string, depth: number): Forms {
  if (depth > deepest) return undefined;
  const open = text.indexOf("{");
  const close = open === -1 ? -1 : closing(text, open);
  if (close === -1) return [plain(text)];
  const inside = splitAtCommas(text.slice(open + 1, close));
  const choices = inside.length === 1 ? [[[anything]]] : inside.map((choice) => formsOfText(choice, depth + 1));
  if (choices.includes(undefined)) return undefined;
  return joined([
    [plain(text.slice(0, open))],
    choices.flatMap((it) => it ?? []),
    formsOfText(text.slice(close + 1), depth + 1),
  ]);
}

function plain(text: string): Symbols {
  const symbols = symbolsOf(text.replaceAll(/['"\\]/g, "").replaceAll(/\[[^\]]*\]/g, "?"));
  return symbols.map((unit) => (unit === 0x2a ? star : unit === 0x3f ? one : unit));
}

function closing(text: string, open: number): number {
  let depth = 0;
  for (let at = open; at < text.length; at++) {
    if (text[at] === "{") depth += 1;
    if (text[at] === "}" && --depth === 0) return at;
  }
  return -1;
}

function splitAtCommas(text: string): string[] {
  const pieces = [""];
  let depth = 0;
  for (const char of text) {
    if (char === "{") depth += 1;
    if (char === "}") depth -= 1;
    if (char === "," && depth === 0) pieces.push("");
    else pieces[pieces.length - 1] += char;
  }
  return pieces;
}

/**
 * Whether a form may name one of these files, or a folder of these (with a `/` at the end). As in a shell no wildcard
 * stands for a `.` at the beginning of a name, and wildcards alone are not held against names without one.
 */
export function mayName(form: Symbols, paths: readonly string[]): boolean {
  return split(form, "=:,@").some((piece) => {
    const names = split(inLowerCase(piece), "/").filter((name) => name.length > 0 && !isText(name, "."));
    return paths.some((path) => {
      const wanted = path.split("/").filter((name) => name !== "");
      const starts = path.endsWith("/") ? names.map((_, at) => at) : [names.length - wanted.length];
      return starts.some((at) => at >= 0 && wanted.every((name, index) => mayBe(names[at + index] ?? [], name)));
    });
  });
}

function mayBe(pattern: Symbols, name: string): boolean {
  const [first = star] = pattern;
  const begins = !name.startsWith(".") || first >= 0 || first === anything;
  if (!begins || !pattern.some((symbol) => symbol >= 0)) return false;
  return covers(
    pattern.map((symbol) => (symbol === anything ? star : symbol)),
    symbolsOf(name),
  );
}

function isText(symbols: Symbols, text: string): boolean {
  return symbols.length === text.length && symbolsOf(text).every((unit, at) => unit === symbols[at]);
}

function split(symbols: Symbols, at: string): number[][] {
  const borders = new Set(symbolsOf(at));
  const pieces: number[][] = [[]];
  for (const symbol of symbols) {
    if (borders.has(symbol)) pieces.push([]);
    else pieces.at(-1)?.push(symbol);
  }
  return pieces;
}
