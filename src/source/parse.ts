import { Composer } from "yaml";
import type { Document, YAMLError } from "yaml";
import type { Diagnostic } from "../model/diagnostic.ts";
import { err, ok } from "../model/result.ts";
import type { Result } from "../model/result.ts";
import type { SourceDocument } from "./document.ts";
import type { SourceNode } from "./node.ts";
import { Positions } from "./positions.ts";
import { scan } from "./scan.ts";
import type { Scanned } from "./scan.ts";
import { controlCharacters, decode, maxProblems, toDiagnostic } from "./text.ts";
import type { Problem } from "./text.ts";
import { buildTree } from "./tree.ts";
import { reword } from "./wording.ts";

/**
 * Reads one YAML 1.2 document (core schema). `file` is the name its spans carry. Errors are every problem of the text in
 * the order of the text, at most 1,000; an empty file is a document whose root is null.
 */
export function parseSource(bytes: Uint8Array, file: string): Result<SourceDocument, readonly Diagnostic[]> {
  const decoded = decode(bytes, file);
  if (!decoded.ok) return err([decoded.error]);
  const text = decoded.value;
  const positions = new Positions(file, text);
  const parsed = parseText(text, positions);
  if (!parsed.ok) return err(parsed.error.map((problem) => toDiagnostic(problem, positions)));
  return ok({ file, text, root: parsed.value, positions });
}

/** As parseSource for a text whose offsets are those of `positions`, with problems by offset. */
export function parseText(text: string, positions: Positions): Result<SourceNode, readonly Problem[]> {
  const control = controlCharacters(text);
  if (control.length > 0) return err(control);
  const scanned = readable(text);
  if (scanned.tokens.length === 0 && scanned.problems.length > 0) return err(inOrder(scanned.problems));
  const document = compose(scanned, text);
  const complaints = [...document.errors, ...document.warnings];
  const problems = [...scanned.problems, ...unexplained(complaints, scanned.problems, positions)];
  // Keys of a text that did not parse stand in the wrong mappings: what they repeat would be noise.
  if (complaints.length > 0) return err(untilLost(inOrder(problems)));
  const root = buildTree(document.contents, positions, problems);
  return problems.length > 0 ? err(inOrder(problems)) : ok(root);
}

/** Scans again without the expressions YAML took for mappings, because the parser is lost after one. */
function readable(text: string): Scanned {
  const first = scan(text);
  const masked = first.problems.filter(({ mask }) => mask);
  if (masked.length === 0 || first.problems.length >= maxProblems) return first;
  let rest = "";
  let at = 0;
  for (const { from, to } of masked) {
    rest += text.slice(at, from) + "x".repeat(Math.max(0, to - Math.max(at, from)));
    at = Math.max(at, to);
  }
  const second = scan(rest + text.slice(at));
  return { tokens: second.tokens, problems: [...masked, ...second.problems] };
}

function compose(scanned: Scanned, text: string): Document.Parsed {
  const composer = new Composer({
    version: "1.2",
    schema: "core",
    strict: true,
    merge: false,
    stringKeys: true,
    uniqueKeys: false,
    prettyErrors: false,
  });
  // A hostile file draws one error object per character; their stack traces would cost 4 kB and 10 µs each.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    const [document] = composer.compose(scanned.tokens, true, text.length);
    if (document === undefined) throw new Error("the composer gave no document");
    return document;
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/**
 * The library's complaints, one a line (a second one is an echo of the first), without the lines that a problem of our
 * own explains.
 */
function unexplained(complaints: readonly YAMLError[], known: readonly Problem[], positions: Positions): Problem[] {
  const problems: Problem[] = [];
  const explanations = inOrder(known);
  let explained = -1;
  for (const complaint of complaints.toSorted((a, b) => a.pos[0] - b.pos[0])) {
    if (problems.length >= maxProblems) break;
    const [at] = complaint.pos;
    for (; explanations[0] !== undefined && positions.lineStart(explanations[0].from) <= at; explanations.shift())
      explained = Math.max(explained, positions.lineEnd(explanations[0].hides ?? explanations[0].to));
    if (at <= explained) continue;
    explained = positions.lineEnd(at);
    problems.push(reword(complaint, positions));
  }
  return problems;
}

function untilLost(problems: Problem[]): Problem[] {
  const lost = problems.findIndex((problem) => problem.loses);
  return lost < 0 ? problems : problems.slice(0, lost + 1);
}

function inOrder(problems: readonly Problem[]): Problem[] {
  return problems.toSorted((a, b) => a.from - b.from).slice(0, maxProblems);
}
