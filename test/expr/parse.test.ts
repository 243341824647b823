import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseExpression } from "../../src/expr/parse.ts";
import type { ExpressionError } from "../../src/expr/parse.ts";

function errorOf(source: string, contexts?: readonly string[]): ExpressionError {
  const parsed = parseExpression(source, contexts === undefined ? {} : { contexts });
  if (parsed.ok) throw new Error(`${source} parses`);
  return parsed.error;
}

describe("an unknown name is an error at the name, with what was meant", () => {
  test.each([
    ["input.x", "Unrecognized named-value: 'input'", [0, 5], "Did you mean `inputs`?"],
    ["1 == step.a", "Unrecognized named-value: 'step'", [5, 4], "Did you mean `steps`?"],
    ["lenght('a')", "Unrecognized function: 'lenght'", [0, 6], "Did you mean `length`?"],
    ["true && tojsn(1)", "Unrecognized function: 'tojsn'", [8, 5], "Did you mean `toJSON`?"],
    ["constructor('x')", "Unrecognized function: 'constructor'", [0, 11], undefined],
    ["constructor.constructor('return process')()", "Unrecognized named-value: 'constructor'", [0, 11], undefined],
    ["__proto__('x')", "Unrecognized function: '__proto__'", [0, 9], undefined],
    ["toString()", "Unrecognized function: 'toString'", [0, 8], undefined],
    ["__proto__.x", "Unrecognized named-value: '__proto__'", [0, 9], undefined],
    ["format('a\nb', nope)", "Unrecognized named-value: 'nope'", [14, 4], undefined],
  ])("%s", (source, message, [offset, length], suggestion) => {
    const error = errorOf(source);
    expect(error).toMatchObject({ kind: "unknown", message, offset, length });
    if (suggestion !== undefined) expect(error.suggestion).toBe(suggestion);
  });

  test("only the contexts of the place are known", () => {
    expect(errorOf("steps.a", ["inputs", "vars"])).toMatchObject({ kind: "unknown", offset: 0, length: 5 });
    expect(parseExpression("INPUTS.a", { contexts: ["inputs"] }).ok).toBe(true);
    expect(parseExpression("mine.a", { contexts: ["Mine"] }).ok).toBe(true);
  });
});

describe("what does not parse is an error at the symbol, with what to write instead", () => {
  test.each([
    ["inputs.a = 1", "Unexpected symbol: '='", [9, 1], "Write `==` to compare."],
    ["inputs.a & true", "Unexpected symbol: '&'", [9, 1], "Write `&&`."],
    ['inputs.a == "x"', `Unexpected symbol: '"x"'`, [12, 3], "Write text in single quotes."],
    ["inputs.a == 'x", "Unexpected symbol: ''x'", [12, 2], expect.stringContaining("single quote")],
    ["true and false", "Unexpected symbol: 'and'", [5, 3], "Write `&&`."],
    ["not true", "Unrecognized named-value: 'not'", [0, 3], "Write `!`."],
    ["${{ inputs.a }}", "Unexpected symbol: '${{'", [0, 3], "Write no `${{ }}` inside an expression."],
    ["contains(inputs.a", "Unexpected end of expression: 'a'", [16, 1], undefined],
    ["inputs.", "Unexpected end of expression: '.'", [6, 1], undefined],
    ["(1", "Unexpected end of expression: '1'", [1, 1], undefined],
    ["inputs.a\n  == 'x'\n  )", "Unexpected symbol: ')'", [20, 1], undefined],
    ["'a\nb' 1", "Unexpected symbol: '1'", [6, 1], undefined],
  ])("%s", (source, message, [offset, length], suggestion) => {
    expect(errorOf(source)).toMatchObject({ message, offset, length });
    if (suggestion !== undefined) expect(errorOf(source).suggestion).toEqual(suggestion);
  });

  test.each(["== 1", "1 'x'", "true && && true", "inputs.a length"])(
    "a symbol in the wrong place has no hint: %s",
    (source) => {
      expect(errorOf(source)).toMatchObject({ kind: "syntax", message: expect.stringContaining("Unexpected symbol") });
      expect(errorOf(source).suggestion).toBeUndefined();
    },
  );

  test.each([
    ["contains('a')", "Too few parameters supplied: 'contains'", "contains() takes 2 arguments."],
    ["join('a', 'b', 'c')", "Too many parameters supplied: 'join'", "join() takes 1 to 2 arguments."],
    ["default()", "Too few parameters supplied: 'default'", "default() takes 1 or more arguments."],
    ["success(1)", "Too many parameters supplied: 'success'", "success() takes 0 arguments."],
    ["case(true, 1, false, 2)", expect.stringContaining("requires an odd number"), expect.stringContaining("pairs")],
  ])("a wrong number of arguments: %s", (source, message, suggestion) => {
    expect(errorOf(source)).toMatchObject({ kind: "syntax", message, suggestion, offset: 0 });
  });

  test.each(["", "   ", "\n\t"])("an empty expression (%j)", (source) => {
    expect(errorOf(source)).toMatchObject({ kind: "syntax", message: "The expression is empty" });
  });

  test.each(["inputs.a\u0000", "'\u0007'", "'a\u2028b'", "\u2029", "'\u001b[31m'"])(
    "a control character: %j",
    (source) => {
      expect(errorOf(source)).toMatchObject({ kind: "syntax", length: 1 });
      expect(errorOf(source).message).toMatch(/control character U\+[0-9A-F]{4}/);
    },
  );
});

describe("limits hold before anything is evaluated", () => {
  test("8 KB, counted in bytes", () => {
    const text = (length: number, character = "a"): string => `'${character.repeat(length)}'`;
    expect(parseExpression(text(8190)).ok).toBe(true);
    expect(errorOf(text(8191)).kind).toBe("limit");
    expect(errorOf(text(4096, "é")).kind).toBe("limit");
    expect(errorOf("x".repeat(5_000_000)).kind).toBe("limit");
  });

  test.each([
    ["parentheses", "(".repeat(4000)],
    ["negations", `${"!".repeat(60)}true`],
    ["accesses", `inputs${".a".repeat(60)}`],
    ["calls", `${"length(".repeat(60)}1${")".repeat(60)}`],
    ["comparisons in a chain", `1${"<1".repeat(4000)}`],
    ["comparisons in parentheses", `${"(".repeat(40)}1${`${"==1".repeat(60)})`.repeat(40)}`],
  ])("too deep: %s", (_, source) => {
    expect(errorOf(source).kind).toBe("limit");
  });

  test("long but flat expressions are fine", () => {
    expect(parseExpression(Array.from({ length: 800 }, () => "true").join(" && ")).ok).toBe(true);
    expect(parseExpression(`${"!".repeat(45)}true`).ok).toBe(true);
  });
});

test("10,000 random texts parse or give an error inside the text, and never throw", () => {
  const pieces = [
    "inputs",
    "steps.a",
    ".b",
    "['c']",
    "[0]",
    "[*]",
    ".*",
    "(",
    ")",
    ",",
    "!",
    "==",
    "<=",
    "&&",
    "||",
    "'it''s'",
    "1.5",
  ];
  const words = [
    "default",
    "length",
    "constructor",
    "__proto__",
    "true",
    "null",
    "NaN",
    "-",
    "0x1F",
    "'",
    "\n",
    " ",
    "}}",
    "😊",
  ];
  const built = fc.array(fc.constantFrom(...pieces, ...words), { maxLength: 25 }).map((parts) => parts.join(""));
  const any = fc.string({ unit: "binary", maxLength: 60 });
  fc.assert(
    fc.property(fc.oneof(built, any), (source) => {
      const parsed = parseExpression(source);
      if (parsed.ok) return;
      const { offset, length, message } = parsed.error;
      expect(message).not.toBe("");
      expect(offset).toBeGreaterThanOrEqual(0);
      expect(offset + length).toBeLessThanOrEqual(source.length);
    }),
    { numRuns: 10_000 },
  );
});
