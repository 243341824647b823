import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Diagnostic, Span, TextEdit } from "../model/diagnostic.ts";

/** Applies the rewrites that diagnostics carry, file by file, from the end so that positions stay right. `cwd` is where the names of files start. */
export function applyFixes(diagnostics: readonly Diagnostic[], cwd: string = process.cwd()): number {
  const fixes = diagnostics.flatMap((diagnostic) => (diagnostic.fix ? [diagnostic.fix] : []));
  const edits = Map.groupBy(fixes.flat(), (edit) => edit.at.file);
  for (const [name, list] of edits) {
    const file = resolve(cwd, name);
    const text = readFileSync(file, "utf8");
    writeFileSync(file, applyEdits(text, list));
  }
  return fixes.length;
}

function applyEdits(text: string, edits: readonly TextEdit[]): string {
  const lines = lineStarts(text);
  const offset = (line: number, column: number): number => (lines[line - 1] ?? 0) + column - 1;
  const sorted = merged(edits).sort((a, b) => b.at.line - a.at.line || b.at.column - a.at.column);
  let result = text;
  for (const { at, text: replacement } of sorted) {
    result = result.slice(0, offset(at.line, at.column)) + replacement + result.slice(offset(at.endLine, at.endColumn));
  }
  return result;
}

/** Insertions at one place become one: two expressions in a script share its `env`. */
function merged(edits: readonly TextEdit[]): TextEdit[] {
  const byPlace = Map.groupBy(edits, ({ at }) => key(at));
  return [...byPlace.values()].flatMap((group) => {
    const [first, ...rest] = group;
    if (!first || rest.length === 0) return group;
    const texts = new Set(group.map((edit) => edit.text));
    const header = /^env:\n\s*/.exec(first.text)?.[0] ?? "";
    const bodies = [...texts].map((text) => text.slice(header.length));
    const [lead, ...others] = bodies;
    if (others.length === 0) return [first];
    const indent = header === "" ? "" : "  ";
    return [
      {
        at: first.at,
        text: `${header}${[lead, ...others].map((body, index) => (index === 0 ? body : indent + (body ?? ""))).join("")}`,
      },
    ];
  });
}

function key(at: Span): string {
  return `${at.line}:${at.column}-${at.endLine}:${at.endColumn}`;
}

function lineStarts(text: string): number[] {
  const starts = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return starts;
}
