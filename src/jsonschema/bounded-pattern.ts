import { createContext, Script } from "node:vm";
import type { Context } from "node:vm";

/** Milliseconds that one pattern may take on one text. */
const mostTime = 100;

/** A pattern took too long on a text; what it would have found is unknown. */
export class SlowPattern extends Error {}

interface Tester {
  test(text: string): boolean;
}
interface PatternEngine {
  (pattern: string, flags: string): Tester;
  code: string;
}

/**
 * Patterns of users' schemas meet texts that models wrote, and some patterns take years on some texts. Each test runs
 * where it can be interrupted: JavaScript offers that only in `vm`. The code there is ours; pattern and text are data.
 */
export function boundedPatterns(): PatternEngine {
  const script = new Script("regexp.test(text)");
  let context: Context | undefined;
  const engine = (pattern: string, flags: string): Tester => {
    const regexp = new RegExp(pattern, flags);
    const simple = isSimple(pattern);
    return {
      test(text) {
        if (simple && text.length <= 10_000) return regexp.test(text);
        context ??= createContext({});
        context["regexp"] = regexp;
        context["text"] = text;
        try {
          return script.runInContext(context, { timeout: mostTime }) === true;
        } catch (error) {
          if (!isTimeout(error)) throw error;
          throw new SlowPattern(`cannot be checked: the pattern ${pattern.slice(0, 60)} takes too long on this text`);
        }
      },
    };
  };
  return Object.assign(engine, { code: "boundedPattern" });
}

/** With one repetition at most, and no alternatives or back references, the work is quadratic at worst. */
function isSimple(pattern: string): boolean {
  return (pattern.match(/[*+?{|]/g) ?? []).length <= 1 && !/\\[1-9k]/.test(pattern);
}

/** The error belongs to the other context, so that `instanceof` does not know it. */
function isTimeout(error: unknown): boolean {
  return (
    typeof error === "object" && error !== null && "code" in error && error.code === "ERR_SCRIPT_EXECUTION_TIMEOUT"
  );
}
