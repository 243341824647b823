import { data, Evaluator, Lexer, Parser } from "@actions/expressions";
import fc from "fast-check";
import { expect, test } from "vitest";
import { evaluate } from "../../src/expr/public.ts";
import type { Json } from "../../src/model/json.ts";

const contexts: { readonly [name: string]: Json } = {
  a: {
    n: 2,
    text: "Abc",
    flag: false,
    none: null,
    list: [1, "b", null, [true, "x"], { n: 5, Text: "y" }],
    obj: { n: "2", "x y": { n: 1 }, "": "empty", "0": "zero", true: [3] },
  },
  b: [{ n: 1 }, { n: "one" }, { m: 2 }, [7, 8]],
};

const numbers = ["0", "1", "-1", "1.5", "0x10", "NaN", "-Infinity", "1e21", "0.1234567890123456"];
const texts = [
  "''",
  "'a'",
  "'ABC'",
  "'1'",
  "' 2 '",
  "'true'",
  "'ı'",
  "'I'",
  "'ß'",
  "'it''s'",
  "'{0}'",
  "'[1,{\"n\":2}]'",
];
const chains = [
  "a",
  "b",
  "a.n",
  "a.text",
  "a.flag",
  "a.none",
  "a.list",
  "a.obj",
  "A.OBJ['X Y']",
  "b[0]",
  "b.*.n",
  "a.*",
];
const leaf = fc.constantFrom("null", "true", "false", ...numbers, ...texts, ...chains);

const expression = fc.letrec<{ any: string }>((tie) => {
  const any = tie("any");
  const operator = fc.constantFrom("==", "!=", "<", "<=", ">", ">=", "&&", "||");
  const binary = fc.tuple(any, operator, any).map(([left, symbol, right]) => `${left} ${symbol} ${right}`);
  const access = fc.tuple(any, fc.constantFrom(".n", ".text", "[0]", "[1.5]", "[-1]", ".*", "[*]", "['']", "[true]"));
  const call = fc.constantFrom(
    "contains(#, #)",
    "startsWith(#, #)",
    "endsWith(#, #)",
    "join(#, #)",
    "join(#)",
    "toJSON(#)",
  );
  const more = fc.constantFrom(
    "format('{1}{{{0}}}', #, #)",
    "format('{0}{{}}{1}{0}', #, #)",
    "fromJSON(toJSON(#))",
    "fromJSON(#)",
  );
  return {
    any: fc.oneof(
      { depthSize: "small" },
      leaf,
      binary,
      any.map((inner) => `!(${inner})`),
      any.map((inner) => `(${inner})`),
      access.map(([inner, chain]) => `(${inner})${chain}`),
      fc.tuple(any, any).map(([inner, index]) => `(${inner})[${index}]`),
      fc
        .tuple(fc.oneof(call, more), any, any)
        .map(([form, one, two]) => form.replace("#", () => one).replace("#", () => two)),
    ),
  };
}).any;

/** What the package's own evaluator says; undefined when it fails. */
function reference(source: string): string | undefined {
  const lazy = new data.Dictionary();
  for (const [name, value] of Object.entries(contexts)) {
    lazy.add(name, JSON.parse(JSON.stringify(value), data.reviver) as never);
  }
  try {
    const tree = new Parser(new Lexer(source).lex().tokens, Object.keys(contexts), []).parse();
    return new Evaluator(tree, lazy).evaluate().coerceString();
  } catch {
    return undefined;
  }
}

test("5,000 random expressions have the value the package's own evaluator gives", () => {
  let failing = 0;
  fc.assert(
    fc.property(expression, (inner) => {
      const source = `toJSON(${inner})`;
      const ours = evaluate(source, contexts);
      const theirs = reference(source);
      if (theirs === undefined) failing++;
      expect(ours.ok ? ours.value : undefined, source).toBe(theirs);
    }),
    { numRuns: 5_000 },
  );
  expect(failing).toBeLessThan(2_500);
});
