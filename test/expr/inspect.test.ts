import { describe, expect, test } from "vitest";
import { calls, comparisons, isConstant, references, staticType, usesStatus } from "../../src/expr/inspect.ts";
import type { Reference, Segment } from "../../src/expr/inspect.ts";
import { parseExpression } from "../../src/expr/parse.ts";
import type { ParsedExpression } from "../../src/expr/parse.ts";

function parsed(source: string): ParsedExpression {
  const result = parseExpression(source);
  if (!result.ok) throw new Error(result.error.message);
  return result.value;
}

/** `steps.a[0].*`, with `?` in front when it is guarded; the written text after `=`. */
function shown(source: string): readonly string[] {
  const segment = (part: Segment): string =>
    part.kind === "name" ? `.${part.name}` : part.kind === "star" ? ".*" : `[${part.value ?? "?"}]`;
  return references(parsed(source)).map(({ context, path, guarded, offset, length }: Reference) => {
    const name = context + path.map(segment).join("");
    return `${guarded ? "?" : ""}${name} = ${source.slice(offset, offset + length)}`;
  });
}

describe("references are reported once, at their longest chain, in source order", () => {
  test.each([
    ["steps.x.outputs.y", ["steps.x.outputs.y = steps.x.outputs.y"]],
    ["STEPS['x'].Outputs", ["steps.x.Outputs = STEPS['x'].Outputs"]],
    ["steps[ 'it''s' ]", ["steps.it's = steps[ 'it''s' ]"]],
    ["(steps.a).outputs['b']", ["steps.a.outputs.b = (steps.a).outputs['b']"]],
    ["inputs.list[0][*].name", ["inputs.list[0].*.name = inputs.list[0][*].name"]],
    ["inputs.a[inputs.b].c", ["inputs.a[?].c = inputs.a[inputs.b].c", "inputs.b = inputs.b"]],
    ["inputs[vars.a][vars.b]", ["inputs[?][?] = inputs[vars.a][vars.b]", "vars.a = vars.a", "vars.b = vars.b"]],
    ["fromJSON(inputs.a).b[item]", ["inputs.a = inputs.a", "item = item"]],
    ["item", ["item = item"]],
    ["!(inputs.a == 'x' || vars.b > 1)", ["inputs.a = inputs.a", "vars.b = vars.b"]],
    ["default(steps.a.outputs.x, env.y)", ["?steps.a.outputs.x = steps.a.outputs.x", "?env.y = env.y"]],
    ["default(length(steps.a.outputs[item]), 0)", ["?steps.a.outputs[?] = steps.a.outputs[item]", "?item = item"]],
    ["default(1) && inputs.a", ["inputs.a = inputs.a"]],
    ["format('\n{0}', inputs.a)", ["inputs.a = inputs.a"]],
    ["'steps.a.outputs'", []],
  ])("%s", (source, expected) => {
    expect(shown(source)).toEqual(expected);
  });

  test("every name in a path has its own position", () => {
    const [reference] = references(parsed("1 == steps . a['b c']"));
    expect(reference?.path).toEqual([
      { kind: "name", name: "a", offset: 13, length: 1 },
      { kind: "name", name: "b c", offset: 15, length: 5 },
    ]);
  });
});

test("calls are reported with their literal texts", () => {
  const source = "failure('a') || contains(toJSON(inputs.x), 'it''s') || (ALWAYS())";
  expect(calls(parsed(source)).map(({ name, args }) => [name, args])).toEqual([
    ["failure", ["a"]],
    ["contains", [undefined, "it's"]],
    ["tojson", [undefined]],
    ["always", []],
  ]);
  const [first] = calls(parsed(source));
  expect(source.slice(first?.offset, (first?.offset ?? 0) + (first?.length ?? 0))).toBe("failure('a')");
});

test.each([
  ["steps.a.outcome == 'failure'", ["a failure"]],
  ["'failure' == steps.a.outcome", ["a failure"]],
  ["!(STEPS['a'].outcome=='it''s') && 1 == 1", ["a it's"]],
  ["steps.a.outcome == 'x' || steps.b.outcome == 'y'", ["a x", "b y"]],
  ["contains(steps.a.outcome == 'x', 'y')", ["a x"]],
  ["steps.a.outcome != 'x' || steps.a.outputs.n == 1 || steps.a == steps.b || 'x' == 'x'", []],
  ["'steps.a.outcome == ''failure'''", []],
])("comparisons of a reference with a text in %s", (source, expected) => {
  const found = comparisons(parsed(source));
  const id = (part: Segment | undefined): string => (part?.kind === "name" ? part.name : "?");
  expect(found.map(({ reference, text }) => `${id(reference.path[0])} ${text}`)).toEqual(expected);
  for (const { offset, length } of found) expect(source.slice(offset, offset + length)).toMatch(/^\S.*==.*\S$/);
});

test("a call reaches to its closing parenthesis, past a last comma", () => {
  const source = "1 == length( trim(inputs.a , ) ) && true";
  expect(calls(parsed(source)).map(({ offset, length }) => source.slice(offset, offset + length))).toEqual([
    "length( trim(inputs.a , ) )",
    "trim(inputs.a , )",
  ]);
});

test.each([
  ["1 == 1", true, false],
  ["contains('abc', 'b')", true, false],
  ["inputs.a", false, false],
  ["default(item, 1)", false, false],
  ["!failure('x')", false, true],
  ["true || (Success())", false, true],
  ["hashFiles('*.ts')", false, false],
  ["'success()'", true, false],
])("%s: constant %s, asks for the status %s", (source, constant, status) => {
  expect(isConstant(parsed(source))).toBe(constant);
  expect(usesStatus(parsed(source))).toBe(status);
});

test.each([
  ["'a'", "string"],
  ["1.5", "number"],
  ["null", "null"],
  ["true", "boolean"],
  ["inputs.a", "string"],
  ["inputs.n", "number"],
  ["inputs.other", "unknown"],
  ["inputs.n == 1", "boolean"],
  ["!inputs.a", "boolean"],
  ["inputs.a || 'x'", "string"],
  ["inputs.a || 1", "unknown"],
  ["inputs.n > 1 && success()", "boolean"],
  ["inputs.list.*.name", "array"],
  ["fromJSON('{}')", "unknown"],
  ["fromJSON('{}').a", "unknown"],
  ["contains(inputs.a, 'x')", "boolean"],
  ["length(inputs.a)", "number"],
  ["split(inputs.a, ',')", "array"],
  ["default(inputs.a, 'x')", "string"],
  ["default(inputs.a, 1)", "unknown"],
  ["default(inputs.a, inputs.a)", "unknown"],
  ["case(inputs.n == 1, 'a', inputs.a)", "string"],
  ["case(inputs.n == 1, 'a', 1)", "unknown"],
])("the type of %s is %s", (source, type) => {
  const typeOf = ({ path: [first] }: Reference): "string" | "number" | "unknown" => {
    if (first?.kind !== "name") return "unknown";
    return first.name === "a" ? "string" : first.name === "n" ? "number" : "unknown";
  };
  expect(staticType(parsed(source), typeOf)).toBe(type);
});
