import type { Diagnostic, RelatedSpan, SourceTexts, Span } from "../model/diagnostic.ts";
import type { Json } from "../model/json.ts";
import { visible } from "./display.ts";
import { codeFrame } from "./frame.ts";
import type { Palette } from "./palette.ts";

export interface DiagnosticsOptions {
  readonly palette: Palette;
  /** Problems printed in full; the rest are counted. 50 by default. */
  readonly limit?: number;
}

/** The lines of a file; undefined stands for one that must not be shown. */
type Lines = (file: string) => readonly (string | undefined)[];

/**
 * Every problem for a person, in the order given: `file:line:column` first so that terminals and editors link it, the
 * line with a caret, related places, help; a count at the end. Empty when there is nothing to say.
 */
export function renderDiagnostics(
  diagnostics: readonly Diagnostic[],
  sources: SourceTexts,
  options: DiagnosticsOptions,
): string {
  if (diagnostics.length === 0) return "";
  const limit = options.limit ?? 50;
  const lines = linesOf(sources, diagnostics);
  const shown = diagnostics.slice(0, limit).map((diagnostic) => renderOne(diagnostic, lines, options.palette));
  const rest = diagnostics.length - shown.length;
  const more = rest > 0 ? [`… and ${rest} more (all with --format json)`] : [];
  return [...shown, [...more, options.palette.bold(countLine(diagnostics))].join("\n")].join("\n\n") + "\n";
}

/** The same for programs: all of them, with the counts. */
export function diagnosticsJson(diagnostics: readonly Diagnostic[]): Json {
  return {
    schemaVersion: 1,
    diagnostics: diagnostics.map((diagnostic) => ({
      code: diagnostic.code,
      severity: diagnostic.severity,
      message: diagnostic.message,
      at: { ...diagnostic.at },
      ...(diagnostic.related && { related: diagnostic.related.map(({ message, at }) => ({ message, at: { ...at } })) }),
      ...(diagnostic.suggestion !== undefined && { suggestion: diagnostic.suggestion }),
      ...(diagnostic.fix && { fix: diagnostic.fix.map(({ at, text }) => ({ at: { ...at }, text })) }),
    })),
    errors: count(diagnostics, "error"),
    warnings: count(diagnostics, "warning"),
  };
}

/** Sources split into lines on demand, each once, without the lines that hold a credential. */
function linesOf(sources: SourceTexts, diagnostics: readonly Diagnostic[]): Lines {
  const split = new Map<string, readonly (string | undefined)[]>();
  const confidential = Map.groupBy(
    diagnostics.filter((diagnostic) => diagnostic.confidential),
    ({ at }) => at.file,
  );
  return (file) => {
    const known = split.get(file);
    if (known !== undefined) return known;
    const text = sources.get(file);
    const lines: (string | undefined)[] =
      text === undefined ? [] : text.split("\n").map((line) => line.replace(/\r$/, ""));
    for (const { at } of confidential.get(file) ?? []) lines.fill(undefined, at.line - 1, at.endLine);
    split.set(file, lines);
    return lines;
  };
}

function renderOne(diagnostic: Diagnostic, lines: Lines, palette: Palette): string {
  const { at, code, severity } = diagnostic;
  const colour = severity === "error" ? palette.red : palette.yellow;
  const head = `${palette.bold(place(at))} ${colour(severity)} ${palette.bold(code)}: ${indented(diagnostic.message)}`;
  const parts = [head, ...frameAt(at, 1, lines, { mark: colour, dim: palette.dim })];
  for (const related of diagnostic.related ?? []) parts.push(...renderRelated(related, lines, palette));
  if (diagnostic.suggestion !== undefined) parts.push(`${palette.green("help:")} ${indented(diagnostic.suggestion)}`);
  return parts.join("\n");
}

function renderRelated(related: RelatedSpan, lines: Lines, palette: Palette): string[] {
  const head = `${palette.bold(place(related.at))}: ${indented(related.message)}`;
  return [head, ...frameAt(related.at, 0, lines, { mark: palette.cyan, dim: palette.dim })];
}

/** The frame of a span, clamped to its first line; none where the source is not known or must not be shown. */
function frameAt(at: Span, around: number, lines: Lines, colours: Pick<Palette, "dim"> & { mark: Palette["red"] }) {
  const all = lines(at.file);
  const text = all[at.line - 1];
  if (text === undefined) return [];
  const to = at.endLine > at.line ? text.trimEnd().length : at.endColumn - 1;
  return codeFrame({
    lines: all.map((line) => line ?? "(not shown: it holds a credential)"),
    line: at.line - 1,
    from: at.column - 1,
    to,
    around,
    ...colours,
  });
}

function place(at: Span): string {
  return `${visible(at.file)}:${at.line}:${at.column}`;
}

/** Text of several lines, its later lines set in, so that no line of it can pass for a diagnostic of its own. */
function indented(text: string): string {
  return text.trimEnd().split("\n").map(visible).join("\n    ");
}

function countLine(diagnostics: readonly Diagnostic[]): string {
  const errors = count(diagnostics, "error");
  const warnings = count(diagnostics, "warning");
  const parts = [
    ...(errors > 0 ? [`${errors} error${errors === 1 ? "" : "s"}`] : []),
    ...(warnings > 0 ? [`${warnings} warning${warnings === 1 ? "" : "s"}`] : []),
  ];
  return parts.join(", ");
}

function count(diagnostics: readonly Diagnostic[], severity: Diagnostic["severity"]): number {
  return diagnostics.filter((diagnostic) => diagnostic.severity === severity).length;
}
