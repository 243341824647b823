import type { Code } from "../model/codes.ts";
import { bySpan, type Diagnostic, type Span } from "../model/diagnostic.ts";

/** Adds one problem; nothing stops at the first. Extras that take work to find are given as a function. */
export type Report = (code: Code, at: Span, message: string, extra?: ReportExtra | (() => ReportExtra)) => void;
export type ReportExtra = Partial<Pick<Diagnostic, "severity" | "related" | "suggestion" | "fix" | "confidential">>;

/** Problems that get their suggestion: comparing thousands of wrong names with thousands of right ones takes seconds. */
const mostSuggested = 100;

/** Collects problems; `sorted` gives them by position, the same problem at the same place once, without mere echoes. */
export function createReport(): {
  report: Report;
  add: (found: readonly Diagnostic[]) => void;
  sorted: () => Diagnostic[];
} {
  const all = new Map<string, Diagnostic>();
  const add = (diagnostic: Diagnostic): void => {
    const key = `${diagnostic.code} ${placeOf(diagnostic)} ${diagnostic.message}`;
    if (!all.has(key)) all.set(key, diagnostic);
  };
  return {
    report: (code, at, message, extra) => {
      const found = typeof extra === "function" ? (all.size < mostSuggested ? extra() : {}) : extra;
      add({ code, severity: "error", message, at, ...found });
    },
    add: (diagnostics) => diagnostics.forEach(add),
    sorted: () => {
      const found = [...all.values()];
      const errors = Map.groupBy(
        found.filter((it) => it.severity === "error"),
        placeOf,
      );
      return found.filter((it) => !isEcho(it, errors.get(placeOf(it)) ?? [])).sort((a, b) => bySpan(a.at, b.at));
    },
  };
}

/** A second way of saying what an error at the same place has said: one mistake, one message. */
function isEcho({ code }: Diagnostic, errors: readonly Diagnostic[]): boolean {
  return code === "FLOW2012" && errors.some((error) => error.code === "FLOW2004");
}

function placeOf({ at }: Diagnostic): string {
  return `${at.file}:${at.line}:${at.column}`;
}

export function didYouMean(name: string | undefined): { suggestion?: string } {
  return name === undefined ? {} : { suggestion: `did you mean \`${name}\`?` };
}

/** `a run` and `an agent`: the word with its article. */
export function anArticle(word: string): string {
  return `${/^[aeiou]/i.test(word) ? "an" : "a"} \`${word}\``;
}

/** `a`, `b` or `c`, for messages; long lists are cut. */
export function oneOf(names: readonly string[], most = 12): string {
  const shown = names.slice(0, most).map((name) => `\`${name}\``);
  if (names.length > most) return `${shown.join(", ")} and ${names.length - most} more`;
  return shown.length < 2 ? (shown[0] ?? "nothing") : `${shown.slice(0, -1).join(", ")} or ${shown.at(-1)}`;
}
