import type { Code } from "./codes.ts";

/** A stretch of a file. Lines and columns count from 1, columns in UTF-16 units; the end is exclusive. */
export interface Span {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly endLine: number;
  readonly endColumn: number;
}

export interface RelatedSpan {
  readonly message: string;
  readonly at: Span;
}

/** One problem of one file, in the words a person needs: what is wrong, why, and what to write instead. */
export interface Diagnostic {
  readonly code: Code;
  readonly severity: "error" | "warning";
  readonly message: string;
  readonly at: Span;
  readonly related?: readonly RelatedSpan[];
  /** What to write instead, as a whole sentence ("did you mean `approve`?"). */
  readonly suggestion?: string;
  /** A rewrite that `flow validate --fix` applies. */
  readonly fix?: readonly TextEdit[];
  /** The source line holds a credential: it must not be shown. */
  readonly confidential?: true;
}

export interface TextEdit {
  readonly at: Span;
  readonly text: string;
}

/** Source text of every file a diagnostic may point into, by the `file` of its spans. */
export type SourceTexts = ReadonlyMap<string, string>;

export function bySpan(a: Span, b: Span): number {
  return compareText(a.file, b.file) || a.line - b.line || a.column - b.column;
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
