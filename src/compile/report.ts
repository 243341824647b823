import type { Code } from "../model/codes.ts";
import { bySpan, type Diagnostic, type Span } from "../model/diagnostic.ts";

/** Adds one problem; nothing stops at the first. */
export type Report = (code: Code, at: Span, message: string, extra?: ReportExtra) => void;
export type ReportExtra = Partial<Pick<Diagnostic, "severity" | "related" | "suggestion" | "fix" | "confidential">>;

/** Collects problems; `sorted` gives them by position, the same problem at the same place once. */
export function createReport(): {
  report: Report;
  add: (found: readonly Diagnostic[]) => void;
  sorted: () => Diagnostic[];
} {
  const found = new Map<string, Diagnostic>();
  const add = (diagnostic: Diagnostic): void => {
    const { code, at, message } = diagnostic;
    const key = `${code} ${at.file}:${at.line}:${at.column} ${message}`;
    if (!found.has(key)) found.set(key, diagnostic);
  };
  return {
    report: (code, at, message, extra) => add({ code, severity: "error", message, at, ...extra }),
    add: (diagnostics) => diagnostics.forEach(add),
    sorted: () => [...found.values()].sort((a, b) => bySpan(a.at, b.at)),
  };
}

export function didYouMean(name: string | undefined): { suggestion?: string } {
  return name === undefined ? {} : { suggestion: `did you mean \`${name}\`?` };
}

/** `a`, `b` or `c`, for messages; long lists are cut. */
export function oneOf(names: readonly string[], most = 12): string {
  const shown = names.slice(0, most).map((name) => `\`${name}\``);
  if (names.length > most) return `${shown.join(", ")} and ${names.length - most} more`;
  return shown.length < 2 ? (shown[0] ?? "nothing") : `${shown.slice(0, -1).join(", ")} or ${shown.at(-1)}`;
}
