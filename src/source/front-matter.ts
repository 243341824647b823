import type { Diagnostic } from "../model/diagnostic.ts";
import { err, ok } from "../model/result.ts";
import type { Result } from "../model/result.ts";
import type { SourceDocument } from "./document.ts";
import type { MapEntry, ScalarNode, SourceNode } from "./node.ts";
import { parseText } from "./parse.ts";
import { Positions } from "./positions.ts";
import { decode, toDiagnostic } from "./text.ts";
import type { Problem } from "./text.ts";

export interface FrontMatter {
  /** The keys between the `---` lines; its text is the whole file. */
  readonly document: SourceDocument;
  /** Everything below the second `---` line with LF line ends; usable with `locate(document, body, …)`. */
  readonly body: ScalarNode & { readonly value: string };
  readonly warnings: readonly Diagnostic[];
}

/**
 * Reads a Markdown file that begins with `---`, YAML, `---`. Lines count from the top of the file. A `description`
 * with an unquoted `: `, which YAML refuses and other programs write, is read as the text it is, with a warning.
 */
export function parseFrontMatter(bytes: Uint8Array, file: string): Result<FrontMatter, readonly Diagnostic[]> {
  const decoded = decode(bytes, file);
  if (!decoded.ok) return err([decoded.error]);
  const text = decoded.value;
  const positions = new Positions(file, text);
  const refuse = (problems: readonly Problem[]): Result<FrontMatter, readonly Diagnostic[]> =>
    err(problems.map((problem) => toDiagnostic(problem, positions)));
  const fence = fences(text);
  if ("code" in fence) return refuse([fence]);
  const yaml = text.slice(0, fence.end);
  const parsed = parseText(yaml, positions);
  const read = parsed.ok ? { root: parsed.value, loose: undefined } : looseDescription(yaml, positions);
  if (read === undefined) return refuse(parsed.ok ? [] : parsed.error);
  const nul = text.indexOf("\0", fence.body);
  if (nul !== -1) return refuse([{ code: "FLOW1005", message: "a NUL character in the text", from: nul, to: nul + 1 }]);
  return ok({
    document: { file, text, root: read.root, positions },
    body: bodyNode(fence.body, positions),
    warnings: read.loose === undefined ? [] : [looseWarning(read.loose)],
  });
}

interface Fences {
  /** Offset of the closing `---`. */
  readonly end: number;
  /** Offset of the line below it. */
  readonly body: number;
}

function fences(text: string): Fences | Problem {
  const open = /^---[ \t]*\r?(?:\n|$)/.exec(text);
  if (open === null)
    return {
      code: "FLOW1017",
      message: "the file does not begin with front matter",
      from: 0,
      to: Math.min(3, text.length),
      suggestion: "Begin it with a line `---`, the keys, and another line `---`.",
    };
  const close = /^---[ \t]*\r?(?:\n|$)/gm;
  close.lastIndex = open[0].length;
  const end = close.exec(text);
  if (end === null)
    return {
      code: "FLOW1017",
      message: "the front matter that begins here is not closed",
      from: 0,
      to: 3,
      suggestion: "Write a line `---` below its last key.",
    };
  return { end: end.index, body: end.index + end[0].length };
}

interface Loose {
  readonly root: SourceNode;
  readonly loose: MapEntry;
}

/** Stand for the `:` and `#` of a description while YAML reads the rest; no honest text holds them. */
const colon = "\ue000";
const hash = "\ue001";

/** The front matter read with its top-level `description` taken as plain text, if that is all it needs to be valid. */
function looseDescription(yaml: string, positions: Positions): Loose | undefined {
  const match = /^description:[ \t]+(?![|>"'[{&*!%@`#])([^\n]*(?:\n(?:[ \t]+[^\n]*|(?=\r?\n)))*)/m.exec(yaml);
  const plain = match?.[1];
  if (match === null || plain === undefined || yaml.includes(colon) || yaml.includes(hash)) return undefined;
  const from = match.index + match[0].length - plain.length;
  const masked = plain.replaceAll(/:(?=\s|$)/g, colon).replaceAll(/(?<=\s)#/g, hash);
  if (masked === plain) return undefined;
  const parsed = parseText(yaml.slice(0, from) + masked + yaml.slice(from + plain.length), positions);
  if (!parsed.ok || parsed.value.kind !== "map") return undefined;
  const root = parsed.value;
  const entries = root.entries.map((entry) => (entry.key === "description" ? unmask(entry) : entry));
  const loose = entries.find(({ key }) => key === "description");
  if (loose === undefined) return undefined;
  // Without the index, which holds the entry as it was.
  return { root: { kind: "map", entries, at: root.at }, loose };
}

function unmask(entry: MapEntry): MapEntry {
  const { value: node } = entry;
  if (node.kind !== "scalar" || typeof node.value !== "string") return entry;
  return { ...entry, value: { ...node, value: node.value.replaceAll(colon, ":").replaceAll(hash, "#") } };
}

function looseWarning({ value }: MapEntry): Diagnostic {
  return {
    code: "FLOW1018",
    severity: "warning",
    message: "this description is not valid YAML, because it holds `: ` without quotes; it is read as plain text",
    at: value.at,
    suggestion: "Put the description in quotes, or write it below `description: |`.",
  };
}

function bodyNode(from: number, positions: Positions): ScalarNode & { readonly value: string } {
  const { text } = positions;
  return {
    kind: "scalar",
    value: text.slice(from).replaceAll("\r\n", "\n"),
    style: "literal",
    at: positions.span(from, text.length),
    from,
    to: text.length,
  };
}
