import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { lookup, missing } from "../../src/expr/evaluate.ts";
import { createEvaluator, scanTemplate } from "../../src/expr/template.ts";
import type { TemplatePart } from "../../src/expr/template.ts";
import type { Span } from "../../src/model/diagnostic.ts";
import type { Json } from "../../src/model/json.ts";
import type { Expression, Template } from "../../src/model/plan.ts";

function at(source: string, column = 10): Span {
  return { file: "a.yaml", line: 3, column, endLine: 3, endColumn: column + source.length };
}

function expression(source: string): Expression {
  return { source, at: at(source) };
}

function sole(source: string): Template {
  return { type: "expression", ...expression(source) };
}

describe("scanTemplate", () => {
  test.each<[string, readonly TemplatePart[]]>([
    ["", []],
    ["plain }} text $ {{ x", [{ text: "plain }} text $ {{ x" }]],
    ["${{ inputs.a }}", [{ source: "inputs.a", offset: 4 }]],
    ["${{inputs.a}}", [{ source: "inputs.a", offset: 3 }]],
    ["a ${{ b }}${{ c }} d", [{ text: "a " }, { source: "b", offset: 6 }, { source: "c", offset: 14 }, { text: " d" }]],
    ["${{ '}}' }}", [{ source: "'}}'", offset: 4 }]],
    ["${{ 'it''s }}' }}!", [{ source: "'it''s }}'", offset: 4 }, { text: "!" }]],
    ["${{ '${{' }}", [{ source: "'${{'", offset: 4 }]],
    ["${{\n  a\n  }}", [{ source: "a", offset: 6 }]],
    ["$${{ a }}", [{ text: "$" }, { source: "a", offset: 5 }]],
  ])("%j", (text, parts) => {
    expect(scanTemplate(text)).toEqual({ ok: true, value: parts });
  });

  test.each([
    ["a ${{ b", "`${{` is not closed with `}}`", 2, 5],
    ["a ${{ 'b }}", "`${{` is not closed with `}}`", 2, 9],
    ["${{ a }} ${{ b }", "`${{` is not closed with `}}`", 9, 7],
    ["x ${{ }} y", "The expression in `${{ }}` is empty", 2, 6],
    ["${{}}", "The expression in `${{ }}` is empty", 0, 5],
  ])("%j is an error", (text, message, offset, length) => {
    expect(scanTemplate(text)).toMatchObject({ ok: false, error: { kind: "syntax", message, offset, length } });
  });

  test("an unclosed quote is named as the likely reason", () => {
    expect(scanTemplate("${{ it's }}")).toMatchObject({
      error: { suggestion: expect.stringContaining("single quotes") },
    });
  });

  test("parts joined give the text back, and scanning what was joined gives the parts back", () => {
    const source = fc.array(fc.constantFrom("inputs.a", "'}}'", "'it''s'", "==", "f(1)", "'${{'"), { minLength: 1 });
    const text = fc.array(fc.constantFrom("a", "}}", "$", "{", "'", "\n", " ", "😀"), { minLength: 1 });
    const part = fc.oneof(
      source.map((words) => ({ source: words.join(" ") })),
      text.map((words) => ({ text: words.join("") })).filter((one) => !one.text.includes("${{")),
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 8 }), (parts) => {
        const written = parts.map((one) => ("text" in one ? one.text : `\${{ ${one.source} }}`)).join("");
        const scanned = scanTemplate(written);
        // Two neighbouring texts may form a `${{` of their own.
        if (!scanned.ok || parts.some((one, index) => "text" in one && "text" in (parts[index + 1] ?? {}))) return;
        let end = 0;
        const again = scanned.value.map((one) => {
          if ("text" in one) return { text: one.text };
          expect(written.slice(one.offset, one.offset + one.source.length)).toBe(one.source);
          expect(one.offset).toBeGreaterThan(end);
          end = one.offset + one.source.length;
          return { source: one.source };
        });
        expect(again).toEqual(parts);
      }),
      { numRuns: 2_000 },
    );
  });

  test("10,000 random texts never throw, and errors lie inside the text", () => {
    const pieces = fc.array(fc.constantFrom("${{", "}}", "'", " ", "a", "$", "{", "\n"), { maxLength: 20 });
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: "binary" }),
          pieces.map((some) => some.join("")),
        ),
        (text) => {
          const scanned = scanTemplate(text);
          if (scanned.ok) return;
          expect(scanned.error.offset + scanned.error.length).toBeLessThanOrEqual(text.length);
        },
      ),
      { numRuns: 10_000 },
    );
  });
});

describe("an evaluator resolves templates", () => {
  const contexts = {
    inputs: { a: "x", n: 1.5, flag: true, none: null, list: [1, { b: "ü" }], evil: "${{ inputs.a }}" },
  };

  test.each<[string, Template, Json]>([
    ["data as it is", { type: "data", json: { a: ["${{ inputs.a }}"] } }, { a: ["${{ inputs.a }}"] }],
    ["a sole expression keeps its type", sole("inputs.list"), [1, { b: "ü" }]],
    ["text in a value is never expanded again", sole("inputs.evil"), "${{ inputs.a }}"],
    ["a list", { type: "list", items: [sole("inputs.n"), { type: "data", json: null }] }, [1.5, null]],
    [
      "mixed text",
      {
        type: "text",
        parts: [
          "a=",
          "inputs.a",
          " n=",
          "inputs.n",
          " f=",
          "inputs.flag",
          " 0=",
          "inputs.none",
          " l=",
          "inputs.list",
        ].map((part, index) => (index % 2 === 0 ? part : expression(part))),
      },
      'a=x n=1.5 f=true 0= l=[1,{"b":"ü"}]',
    ],
    [
      "a map",
      {
        type: "map",
        entries: [
          { name: "a", value: sole("inputs.a") },
          { name: "b", value: { type: "data", json: 1 } },
        ],
      },
      { a: "x", b: 1 },
    ],
  ])("%s", (_, template, expected) => {
    expect(createEvaluator().resolve(template, { contexts })).toEqual({ ok: true, value: expected });
  });

  test("a map keeps an entry named __proto__ as its own", () => {
    const template: Template = {
      type: "map",
      entries: [{ name: "__proto__", value: { type: "data", json: { x: 1 } } }],
    };
    const result = createEvaluator().resolve(template, { contexts });
    expect(JSON.stringify(result)).toBe('{"ok":true,"value":{"__proto__":{"x":1}}}');
  });

  test("any JSON through a sole expression is the same value", () => {
    const evaluator = createEvaluator();
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), (x) => {
        const result = evaluator.resolve(sole("inputs.x"), { contexts: { inputs: { x: x as Json } } });
        expect(result.ok && Object.is(result.value, x)).toBe(true);
      }),
    );
  });

  test("an error lies at its place in the expression when that is on one line", () => {
    const inputs = lookup({ get: () => missing("`a` failed"), names: () => [] });
    const source = "'x' == inputs.a";
    const result = createEvaluator().value(expression(source), { contexts: { inputs } });
    expect(result).toMatchObject({ error: { kind: "missing", at: { line: 3, column: 17, endColumn: 25 } } });
  });

  test("an error lies at the whole expression when its span is wider or goes over lines", () => {
    const wide = { source: "nope.a", at: at("${{ nope.a }}") };
    const long = { source: "nope\n.a", at: { ...at("nope"), endLine: 4, endColumn: 3 } };
    for (const one of [wide, long]) {
      const result = createEvaluator().value(one, { contexts });
      expect(result).toMatchObject({ ok: false, error: { kind: "unknown", at: one.at } });
    }
  });

  test("the first error of a list, a map or a text is the error of the whole", () => {
    const evaluator = createEvaluator();
    const bad = sole("trim(inputs.n)");
    const templates: Template[] = [
      { type: "list", items: [sole("inputs.a"), bad] },
      { type: "map", entries: [{ name: "x", value: bad }] },
      { type: "text", parts: ["a", expression("trim(inputs.n)")] },
    ];
    for (const template of templates) {
      expect(evaluator.resolve(template, { contexts })).toMatchObject({
        error: { message: "trim() takes a text, not 1.5" },
      });
    }
  });

  test("a text may not grow beyond the limit", () => {
    const parts = Array.from({ length: 3 }, () => expression("inputs.a"));
    const result = createEvaluator().resolve(
      { type: "text", parts },
      { contexts: { inputs: { a: "12345" } }, maxSize: 12 },
    );
    expect(result).toMatchObject({ ok: false, error: { kind: "limit", at: at("inputs.a") } });
  });

  test("conditions must be boolean, and what they saw is shown", () => {
    const evaluator = createEvaluator();
    expect(evaluator.condition(expression("inputs.n > 1"), { contexts })).toEqual({ ok: true, value: true });
    expect(evaluator.condition(expression("inputs.a"), { contexts })).toMatchObject({ error: { at: at("inputs.a") } });
    expect(evaluator.seen(expression("inputs.n > 1"), { contexts })).toEqual([{ expression: "inputs.n", value: 1.5 }]);
    expect(evaluator.seen(expression("inputs.n >"), { contexts })).toEqual([]);
  });

  test("more different expressions than it remembers are still right", () => {
    const evaluator = createEvaluator();
    for (let n = 0; n < 10_050; n++) {
      const result = evaluator.value(expression(`${n} == ${n}`), { contexts });
      if (!result.ok || result.value !== true) throw new Error(`${n}`);
    }
    expect(evaluator.value(expression("0 == 0"), { contexts })).toEqual({ ok: true, value: true });
  });
});
