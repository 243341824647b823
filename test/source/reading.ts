import type { Diagnostic, Span } from "../../src/model/diagnostic.ts";
import type { Json } from "../../src/model/json.ts";
import { toJson } from "../../src/source/document.ts";
import type { SourceDocument } from "../../src/source/document.ts";
import { parseSource } from "../../src/source/parse.ts";

export function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

export function read(text: string): SourceDocument {
  const parsed = parseSource(bytes(text), "flow.yaml");
  if (!parsed.ok) throw new Error(parsed.error.map(brief).join("\n"));
  return parsed.value;
}

export function json(text: string): Json {
  return toJson(read(text).root);
}

export function refusals(text: string | Uint8Array): readonly Diagnostic[] {
  const parsed = parseSource(typeof text === "string" ? bytes(text) : text, "flow.yaml");
  return parsed.ok ? [] : parsed.error;
}

/** `FLOW1011 2:1`: code and place. */
export function brief({ code, at }: Diagnostic): string {
  return `${code} ${at.line}:${at.column}`;
}

/** The text a span covers, found by counting lines, independently of the code under test. */
export function covered(text: string, at: Span): string {
  const lines = text.split("\n").slice(at.line - 1, at.endLine);
  const last = lines.length - 1;
  lines[last] = (lines[last] ?? "").slice(0, at.endColumn - 1);
  lines[0] = (lines[0] ?? "").slice(at.column - 1);
  return lines.join("\n");
}
