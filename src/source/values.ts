import type { ScalarStyle } from "./node.ts";
import { shown } from "./refusals.ts";
import { controlInKey, describe } from "./text.ts";
import type { Problem } from "./text.ts";

interface Key {
  readonly key: string;
  /** Written without quotes. */
  readonly plain: boolean;
  readonly from: number;
  readonly to: number;
}

export function keyProblem({ key, plain, from, to }: Key): Problem | undefined {
  const control = controlInKey.exec(key);
  if (control !== null)
    return { code: "FLOW1005", message: `a key holds ${describe(control[0])}`, from, to, suggestion: "Remove it." };
  if (key === "__proto__")
    return {
      code: "FLOW1016",
      message: "`__proto__` cannot be a key: JavaScript gives it a meaning of its own",
      from,
      to,
      suggestion: "Choose another name.",
    };
  if (!plain) return key.isWellFormed() ? undefined : halfCharacter(from, to);
  if (key === "<<")
    return {
      code: "FLOW1012",
      message: "the merge key `<<` is not part of YAML 1.2 and is not read",
      from,
      to,
      suggestion: "Write the entries out, or use `defaults`.",
    };
  const other = notText(key);
  if (other === undefined) return undefined;
  const message = key === "" ? "a key is missing before the colon" : `the key ${shown(key)} is ${other}, not text`;
  const suggestion = key === "" ? "Write `key: value`." : `Put it in quotes: "${key}".`;
  return { code: "FLOW1012", message, from, to, suggestion };
}

/** What YAML 1.2 (core schema) would read a plain key as, when that is no text. */
function notText(key: string): string | undefined {
  if (!/^[-+.0-9~nNtTfF]|^$/.test(key)) return undefined;
  if (/^(?:~|null|Null|NULL|)$/.test(key)) return "null";
  if (/^(?:true|True|TRUE|false|False|FALSE)$/.test(key)) return "a boolean";
  if (/^(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$/.test(key)) return "a number";
  if (/^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/.test(key)) return "a number";
  return /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/.test(key) ? "a number" : undefined;
}

interface Value {
  readonly value: unknown;
  readonly style: ScalarStyle;
  readonly raw: () => string;
  readonly from: number;
  readonly to: number;
}

/** Values JSON cannot hold: numbers too large or not finite, and halves of a character. */
export function scalarProblem({ value, style, raw, from, to }: Value): Problem | undefined {
  if (typeof value === "number") return numberProblem(value, { raw, from, to });
  if (style !== "double" || typeof value !== "string" || value.isWellFormed()) return undefined;
  return halfCharacter(from, to);
}

function halfCharacter(from: number, to: number): Problem {
  return {
    code: "FLOW1006",
    message: "an escape in this text is half of a character (a surrogate without its pair)",
    from,
    to,
    suggestion: "Write the character itself, or its code as `\\U0001F600`.",
  };
}

function numberProblem(value: number, written: { raw: () => string; from: number; to: number }): Problem | undefined {
  if (Number.isSafeInteger(value)) return undefined;
  const raw = written.raw();
  const { from, to } = written;
  if (/(?:inf|nan)$/i.test(raw))
    return {
      code: "FLOW1006",
      message: `the number ${shown(raw)} has no place in JSON`,
      from,
      to,
      suggestion: "Put it in quotes if it is text.",
    };
  const integer = /^(?:[-+]?[0-9]+|0[ox].*)$/.test(raw);
  if (Number.isFinite(value) && !integer) return undefined;
  return {
    code: "FLOW1006",
    message: `the number ${shown(raw)} is too large to be kept exactly`,
    from,
    to,
    suggestion: "Put it in quotes if it is text.",
  };
}

/** The library's value as JSON; a value that is refused anyway becomes null. */
export function scalarValue(value: unknown): string | number | boolean | null {
  if (typeof value === "string" || typeof value === "boolean") return value;
  // JSON has no negative zero.
  if (typeof value === "number") return Number.isFinite(value) ? value + 0 : null;
  return null;
}
