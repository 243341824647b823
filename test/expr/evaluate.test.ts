import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { evaluateCondition, evaluateExpression, lookup, missing, seenValues } from "../../src/expr/evaluate.ts";
import type { Lookup, Missing, Scope, Value } from "../../src/expr/evaluate.ts";
import { parseExpression } from "../../src/expr/parse.ts";
import type { ExpressionError, ParsedExpression } from "../../src/expr/parse.ts";
import { evaluate } from "../../src/expr/public.ts";
import type { Json } from "../../src/model/json.ts";

function parsed(source: string): ParsedExpression {
  const result = parseExpression(source);
  if (!result.ok) throw new Error(result.error.message);
  return result.value;
}

function valueOf(source: string, contexts: { readonly [name: string]: Value } = {}, more: Partial<Scope> = {}): Json {
  const result = evaluateExpression(parsed(source), { contexts, ...more });
  if (!result.ok) throw new Error(`${source}: ${result.error.message}`);
  return result.value;
}

function errorOf(
  source: string,
  contexts: { readonly [name: string]: Value } = {},
  more: Partial<Scope> = {},
): ExpressionError {
  const result = evaluateExpression(parsed(source), { contexts, ...more });
  if (result.ok) throw new Error(`${source} is ${JSON.stringify(result.value)}`);
  return result.error;
}

/** A lazy object over plain entries that counts which names were asked for. */
function counted(entries: { readonly [name: string]: Value | Missing }): {
  readonly object: Lookup;
  readonly asked: string[];
} {
  const asked: string[] = [];
  const get = (name: string): Value | Missing | undefined => {
    asked.push(name);
    return Object.hasOwn(entries, name) ? entries[name] : undefined;
  };
  return { object: lookup({ get, names: () => Object.keys(entries) }), asked };
}

const status = {
  success: () => true,
  failure: (step?: string) => step === "a",
  always: () => true,
  cancelled: () => false,
};

describe("lazy objects", () => {
  test("only the property that is read is fetched, and only once", () => {
    const { object, asked } = counted({ a: "x", b: "y" });
    expect(valueOf("steps.a == 'x'", { steps: object })).toBe(true);
    expect(asked).toEqual(["a"]);
  });

  test("what && and || do not need is not fetched", () => {
    const { object, asked } = counted({ a: "x" });
    expect(valueOf("false && inputs.a || true || inputs.a", { inputs: object })).toBe(true);
    expect(asked).toEqual([]);
  });

  test("a name written in another case is found among the names", () => {
    const { object, asked } = counted({ Alpha: 1 });
    expect(valueOf("steps.ALPHA", { steps: object })).toBe(1);
    expect(valueOf("steps['none']", { steps: object })).toBe(null);
    expect(asked).toEqual(["ALPHA", "Alpha", "none"]);
  });

  test("the whole of one is read without what is missing in it", () => {
    const { object } = counted({ a: 1, b: missing("b did not run"), c: counted({ d: [2] }).object });
    expect(valueOf("steps", { steps: object })).toEqual({ a: 1, c: { d: [2] } });
    expect(valueOf("toJSON(steps)", { steps: object })).toBe(JSON.stringify({ a: 1, c: { d: [2] } }, null, 2));
    expect(valueOf("keys(steps)", { steps: object })).toEqual(["a", "c"]);
    expect(valueOf("steps.*", { steps: object })).toEqual([1, { d: [2] }]);
    expect(valueOf("steps.*.d", { steps: object })).toEqual([[2]]);
  });

  test("plain JSON is never copied and never taken for a lazy object", () => {
    const data = { get: "a function?", names: ["x"], reason: "no" };
    expect(valueOf("inputs", { inputs: data })).toBe(data);
    expect(valueOf("inputs.get", { inputs: data })).toBe("a function?");
  });
});

describe("a missing value", () => {
  const outputs = counted({ x: missing("`a` did not run"), y: null, z: 3 }).object;
  const steps = counted({ a: counted({ outputs }).object }).object;

  test("read outside default() fails with its reason, at the reference", () => {
    const error = errorOf("1 == steps.a.outputs.x.deep", { steps });
    expect(error).toMatchObject({ kind: "missing", message: "`a` did not run", offset: 5, length: 17 });
    expect(errorOf("length(steps.a.outputs['x'])", { steps }).kind).toBe("missing");
    expect(errorOf("item.x", {})).toMatchObject({ kind: "missing", message: "`item` has no value here" });
  });

  test.each([
    ["default(steps.a.outputs.x, 'none')", "none"],
    ["default(steps.a.outputs.x.deeper, steps.a.outputs.y, steps.a.outputs.z, 4)", 3],
    ["default(length(steps.a.outputs.x), 0)", 0],
    ["default(steps.a.outputs.x)", null],
    ["default(steps.a.outputs.none, false)", false],
    ["default(false, 1)", false],
    ["default('', 1)", ""],
    ["default(default(steps.a.outputs.x, null), 'inner')", "inner"],
    ["default(inputs.a, 1)", 1],
    ["case(false, steps.a.outputs.x, 2)", 2],
    ["true || steps.a.outputs.x", true],
  ])("%s is %j", (source, expected) => {
    expect(valueOf(source, { steps })).toEqual(expected);
  });

  test("default() evaluates nothing after the first value, and hides no other error", () => {
    const { object, asked } = counted({ a: 1, b: 2 });
    expect(valueOf("default(inputs.a, inputs.b)", { inputs: object })).toBe(1);
    expect(asked).toEqual(["a"]);
    expect(errorOf("default(trim(1), 2)").message).toContain("trim()");
  });
});

describe("inherited names are ordinary names", () => {
  test.each([
    "inputs.__proto__.polluted",
    "inputs.constructor.name",
    "inputs['toString']",
    "inputs.list.length",
    "inputs.text.length",
    "inputs.list.map.name",
    "inputs.hasOwnProperty",
  ])("%s is null", (source) => {
    expect(valueOf(source, { inputs: { list: [1], text: "abc" } })).toBe(null);
  });

  test("keys of that name in data are found, kept and not inherited", () => {
    const inputs = JSON.parse('{"__proto__": {"polluted": 1}, "constructor": "mine"}') as Json;
    expect(valueOf("inputs.__proto__.polluted", { inputs })).toBe(1);
    expect(valueOf("inputs.constructor", { inputs })).toBe("mine");
    expect(valueOf("toJSON(inputs)", { inputs })).toContain('"polluted": 1');
    expect(JSON.stringify(valueOf(`fromJSON('{"__proto__":{"a":1}}')`))).toBe('{"__proto__":{"a":1}}');
    const whole = valueOf("steps", {
      steps: counted(JSON.parse('{"__proto__": 5}') as { [name: string]: Value }).object,
    });
    expect(JSON.stringify(whole)).toBe('{"__proto__":5}');
    expect(Object.keys(Object.prototype)).toEqual([]);
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });
});

describe("large values", () => {
  const list = Array.from({ length: 1_000_000 }, (_, index) => index);
  const more = { maxSize: 20_000_000 };

  test("a list of 1,000,000 items goes through every kind of access", () => {
    const inputs = { list, objects: list.map((id) => ({ id })), nested: [list] };
    expect(valueOf("length(inputs.list)", { inputs })).toBe(1_000_000);
    expect(valueOf("inputs.list[999999]", { inputs })).toBe(999_999);
    expect(valueOf("contains(inputs.list, 999999)", { inputs })).toBe(true);
    expect(valueOf("length(inputs.objects.*.id)", { inputs })).toBe(1_000_000);
    expect(valueOf("length(inputs.nested.*.*)", { inputs })).toBe(1_000_000);
    expect(valueOf("length(flatten(inputs.nested))", { inputs })).toBe(1_000_000);
    expect(valueOf("where(inputs.objects, 'id', 999999)", { inputs })).toEqual([{ id: 999_999 }]);
    expect(valueOf("length(fromJSON(inputs.text))", { inputs: { text: JSON.stringify(list) } })).toBe(1_000_000);
    expect(valueOf("join(inputs.list)", { inputs }, more)).toHaveLength(6_888_889);
    expect(valueOf("inputs.list", { inputs }, more)).toBe(list);
  });

  test.each([
    ["inputs.list", "The result is larger than 1048576 bytes"],
    ["inputs.text", "The result is larger than 1048576 bytes"],
    ["join(inputs.list)", "The result of join() is longer than 1048576 bytes"],
    ["toJSON(inputs.list)", "The result of toJSON() is longer than 1048576 bytes"],
    [`length(format('${"{0}".repeat(2000)}', inputs.mega))`, "The result of format() is longer than 1048576 bytes"],
    ["length(replace(inputs.mega, 'a', inputs.mega))", "The result of replace() is longer than 1048576 bytes"],
    ["length(join(inputs.list, inputs.mega))", "The result of join() is longer than 1048576 bytes"],
    ["'abc'", "The result is larger than 4 bytes", 4],
    ["'üü'", "The result is larger than 5 bytes", 5],
    ["inputs.small", "The result is larger than 12 bytes", 12],
  ])("more than the limit is an error (%#)", (source, message, maxSize?: number) => {
    const inputs = { list, text: "x".repeat(1_048_577), mega: "a".repeat(1_000_000), small: { a: [1, 2, "x"] } };
    expect(errorOf(source, { inputs }, maxSize === undefined ? {} : { maxSize })).toMatchObject({
      kind: "limit",
      message,
    });
  });

  test.each([
    "contains(steps.a.outputs.stdout, 'FATAL')",
    "length(steps.a.outputs['stdout'])",
    "default(steps.a.outputs.stdout, '')",
    "contains(join(steps.a.outputs.*), 'FATAL')",
    "contains(join(steps.items.outputs.*.stdout), 'FATAL')",
    "contains(steps.items.outputs[0].stdout, 'FATAL')",
    "contains(toJSON(steps.items.outputs), 'FATAL')",
    "contains(toJSON(steps.a.outputs), 'FATAL')",
    "contains(values(steps.a.outputs)[0], 'FATAL')",
  ])("an output of more bytes than the limit is not read, because it may be shortened: %s", (source) => {
    for (const stdout of ["x".repeat(1_048_577), "ü".repeat(524_289)]) {
      const steps = { a: { outputs: { stdout } }, items: { outputs: [{ stdout }] } };
      expect(errorOf(source, { steps }).kind).toBe("limit");
      const whole = stdout.slice(0, 524_000);
      expect(valueOf("length(steps.a.outputs.stdout)", { steps: { a: { outputs: { stdout: whole } } } })).toBe(524_000);
    }
  });

  test("the size is that of the JSON text", () => {
    const inputs = { a: [1, 2, "x", { b: null, c: true }], d: "ü", e: [], f: {} };
    const maxSize = Buffer.byteLength(JSON.stringify(inputs));
    expect(valueOf("inputs", { inputs }, { maxSize })).toBe(inputs);
    expect(errorOf("inputs", { inputs }, { maxSize: maxSize - 1 }).kind).toBe("limit");
  });

  test("nesting that would overflow the stack is an error", () => {
    const text = `${"[".repeat(200_000)}${"]".repeat(200_000)}`;
    expect(errorOf("fromJSON(inputs.text)", { inputs: { text } }).kind).toMatch(/limit|evaluation/);
    expect(errorOf("toJSON(fromJSON(inputs.text))", { inputs: { text } }).kind).toMatch(/limit|evaluation/);
  });
});

test.each(["NaN", "-Infinity", "default(NaN, 1)"])("%s is not JSON", (source) => {
  expect(errorOf(source)).toMatchObject({ kind: "evaluation", message: expect.stringContaining("not a JSON number") });
});

test.each(["[1e999]", "9007199254740993", '{"a": [-9007199254740993]}'])(
  "fromJSON refuses %s: the number would become another one",
  (text) => {
    const error = errorOf("fromJSON(inputs.text)", { inputs: { text } });
    expect(error).toMatchObject({
      kind: "evaluation",
      message: expect.stringContaining("too large to be kept exactly"),
    });
  },
);

describe("a condition", () => {
  test.each([
    ["inputs.flag", true],
    ["!inputs.text", false],
    ["inputs.n > 1 && success()", true],
    ["failure('a') && !failure('b') && !failure()", true],
    ["cancelled() || always()", true],
  ])("%s is %s", (source, expected) => {
    const contexts = { inputs: { flag: true, text: "false", n: 2 } };
    expect(evaluateCondition(parsed(source), { contexts, status })).toEqual({ ok: true, value: expected });
  });

  test.each([
    ["inputs.text", "the text 'false'", "`inputs.text == 'false'`"],
    ["inputs.text || 'x'", "the text 'false'", "`(inputs.text || 'x') == 'false'`"],
    ["inputs.n", "2", "`inputs.n > 0`"],
    ["inputs.none", "null", "`inputs.none != null`"],
    ["inputs.list", "a list", "`length(inputs.list) > 0`"],
    ["inputs", "an object", "`inputs != null`"],
  ])("%s is an error, for it is %s", (source, what, rewrite) => {
    const contexts = { inputs: { text: "false", n: 2, list: [] } };
    const result = evaluateCondition(parsed(source), { contexts });
    expect(result).toMatchObject({
      error: {
        kind: "evaluation",
        message: `A condition must be true or false, but this is ${what}`,
        suggestion: `Write a comparison, for example ${rewrite}.`,
        offset: 0,
        length: source.length,
      },
    });
  });

  test.each(["success()", "failure('a')", "always()", "cancelled()", "hashFiles('*')"])(
    "%s needs a scope that allows it",
    (source) => {
      expect(errorOf(source)).toMatchObject({
        kind: "evaluation",
        message: expect.stringContaining("not allowed here"),
      });
    },
  );
});

test("what a condition saw: references and status calls in source order, once, without a value when missing", () => {
  const outputs = counted({
    x: missing("did not run"),
    long: "é".repeat(500),
    list: Array.from({ length: 500 }, () => 1),
  }).object;
  const contexts = { steps: counted({ a: counted({ outputs }).object }).object, inputs: { n: 1 } };
  const source =
    "default(steps.a.outputs.x, 1) == 1 && inputs.n > 0 && failure('a') && inputs.n < 2 && steps.a.outputs.long && steps.a.outputs.list && inputs[item]";
  expect(seenValues(parsed(source), { contexts, status })).toEqual([
    { expression: "steps.a.outputs.x" },
    { expression: "inputs.n", value: 1 },
    { expression: "failure('a')", value: true },
    { expression: "steps.a.outputs.long", value: `${"é".repeat(200)}…` },
    { expression: "steps.a.outputs.list", value: "(a list of 500 items)" },
    { expression: "inputs[item]" },
    { expression: "item" },
  ]);
});

describe("the public function", () => {
  test("takes contexts of any name and case", () => {
    expect(evaluate("github.ref == 'main'", { GitHub: { Ref: "MAIN" } })).toEqual({ ok: true, value: true });
    expect(evaluate("inputs.a")).toMatchObject({ ok: false, error: { kind: "missing" } });
    expect(evaluate("github.ref")).toMatchObject({ ok: false, error: { kind: "unknown" } });
    expect(evaluate(" ")).toEqual({ ok: true, value: null });
  });

  test("any JSON comes back exactly, and nothing random throws", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), fc.string({ maxLength: 12 }), (value, key) => {
        const inputs = Object.fromEntries([[key, value as Json]]);
        const name = `'${key.replaceAll("'", "''")}'`;
        const result = evaluate(`inputs[${name}]`, { inputs });
        if (result.ok) expect(result.value).toBe(value);
        else expect(result.error.message).toContain("control character");
      }),
      { numRuns: 2_000 },
    );
  });
});
