import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { checkUserSchema } from "../../src/jsonschema/check.ts";
import { compileSchema } from "../../src/jsonschema/compile.ts";
import type { SchemaCheck } from "../../src/jsonschema/compile.ts";
import type { Json } from "../../src/model/json.ts";

async function compiled(schema: Json): Promise<SchemaCheck> {
  const result = await compileSchema(schema);
  if (!result.ok) throw new Error(JSON.stringify(result.error));
  return result.value;
}

async function lines(schema: Json, value: Json): Promise<readonly string[]> {
  const check = await compiled(schema);
  return check(value).map((issue) => `${issue.path.join(".")}: ${issue.message}`);
}

const verdict: Json = {
  type: "object",
  required: ["approve", "summary"],
  additionalProperties: false,
  properties: {
    approve: { type: "boolean" },
    summary: { type: "string", minLength: 1 },
    score: { type: "integer", minimum: 0 },
  },
};

const either: Json = {
  anyOf: [
    { type: "string", minLength: 3 },
    { type: "array", items: { type: "integer" } },
  ],
};
const maybe: Json = {
  oneOf: [{ $ref: "#/$defs/point" }, { type: "null" }],
  $defs: { point: { type: "object", required: ["x"] } },
};

describe("a value checked against a user's schema", () => {
  test.each<readonly [string, Json, Json, readonly string[]]>([
    ["fits", verdict, { approve: true, summary: "ok", score: 3 }, []],
    ["misses a field", verdict, { approve: true }, [": `summary` is missing"]],
    ["has one too many", verdict, { approve: true, summary: "ok", sumary: "x" }, [": unknown key `sumary`"]],
    [
      "has a wrong type",
      verdict,
      { approve: "yes", summary: "" },
      ["approve: must be true or false, not `yes`", "summary: must not be empty"],
    ],
    ["is of another kind altogether", verdict, "approve", [": must be a mapping, not `approve`"]],
    [
      "fits neither of two types",
      either,
      5,
      [": must be text or a list, not 5; put it in quotes if it is meant as text"],
    ],
    ["has the type of one of two, and is too short", either, "ab", [": must be at least 3 characters long, not `ab`"]],
    ["has the type of one of two, and is wrong inside", either, [1, "x"], ["1: must be a whole number, not `x`"]],
    ["fits a branch behind a reference", maybe, { x: 1 }, []],
    ["misses what a branch behind a reference asks", maybe, {}, [": `x` is missing"]],
    [
      "fits two of the forms of which it may fit one",
      { oneOf: [{ minimum: 1 }, { maximum: 5 }] },
      3,
      [": matches several of the allowed forms, which exclude each other"],
    ],
    ["is no date", { type: "string", format: "date" }, "2026-02-30", [": must have the format date, not `2026-02-30`"]],
    ["is no multiple", { multipleOf: 2 }, 3, [": must be a multiple of 2, not 3"]],
    [
      "holds the same twice",
      { uniqueItems: true },
      [1, 2, 1],
      [": must not hold the same value twice (entries 1 and 3)"],
    ],
    ["is not the one constant", { const: { a: 1 } }, { a: 2 }, [': must be `{"a":1}`, not a mapping']],
    ["meets a schema that allows nothing", false, 1, [": must not be there"]],
  ])("%s", async (_what, schema, value, expected) => {
    expect(await lines(schema, value)).toEqual(expected);
  });

  test("may have keys that objects inherit", async () => {
    const value: Json = JSON.parse('{"approve":true,"summary":"x","__proto__":{"approve":1},"constructor":1}');
    expect(await lines(verdict, value)).toEqual([": unknown key `__proto__`", ": unknown key `constructor`"]);
    expect(await lines({ required: ["constructor", "__proto__"] }, {})).toEqual([
      ": `constructor` is missing",
      ": `__proto__` is missing",
    ]);
    expect(await lines({ properties: { constructor: { type: "string" }, toString: { type: "string" } } }, {})).toEqual(
      [],
    );
  });

  test("takes no default from the schema", async () => {
    const value = {};
    expect(await lines({ properties: { a: { default: 1 } } }, value)).toEqual([]);
    expect(value).toEqual({});
  });

  test("can be nested deeper than the stack", async () => {
    let value: Json = {};
    for (let i = 0; i < 100_000; i++) value = { child: value };
    const check = await compiled({ type: "object", properties: { child: { $ref: "#" } } });
    expect(check(value).map((issue) => issue.message)).toEqual(["is nested too deep to be checked"]);
  });

  test("can be wrong 200,000 times, of which 1,000 are told, soon", async () => {
    const check = await compiled({
      items: { $ref: "#/$defs/a" },
      $defs: { a: { type: "object", properties: { x: { $ref: "#" } }, required: ["x"] } },
    });
    const start = process.cpuUsage();
    expect(check(Array.from({ length: 200_000 }, () => ({})))).toHaveLength(1_000);
    const used = process.cpuUsage(start);
    expect((used.user + used.system) / 1_000).toBeLessThan(10_000);
  });
});

describe("a pattern that takes years", () => {
  test.each(["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(.*)*x", "^([a-z]+)*$", "(a*)\\1*b", "^(?:a?){40}a{40}$"])(
    "%s is stopped and the value refused",
    async (pattern) => {
      const check = await compiled({ type: "object", properties: { name: { type: "string", pattern } } });
      const start = performance.now();
      const issues = check({ name: `${"a".repeat(5_000)}!` });
      expect(performance.now() - start).toBeLessThan(5_000);
      expect(issues).toHaveLength(1);
      expect(check({ name: 5 })).toHaveLength(1);
    },
  );

  test("says which pattern it was", async () => {
    const check = await compiled({ pattern: "^(a+)+$" });
    expect(check(`${"a".repeat(5_000)}!`)[0]?.message).toBe(
      "cannot be checked: the pattern ^(a+)+$ takes too long on this text",
    );
    expect(check("aaaa")).toEqual([]);
    expect(check("b")[0]?.message).toBe("must match the pattern ^(a+)+$, not `b`");
  });

  test("does not wait for names of properties either", async () => {
    const check = await compiled({ patternProperties: { "^(a+)+$": { type: "string" } } });
    expect(check({ [`${"a".repeat(5_000)}!`]: 1 })).toHaveLength(1);
  });

  test("agrees with plain JavaScript where both answer", async () => {
    const patterns = ["^[a-z]+(-[a-z]+)*$", "^a*$", "b|c", "^\\p{L}+$", "(a)\\1"];
    for (const pattern of patterns) {
      const check = await compiled({ pattern });
      fc.assert(
        fc.property(fc.string({ unit: fc.constantFrom("a", "b", "-", "é") }), (text) => {
          expect(check(text).length === 0).toBe(new RegExp(pattern, "u").test(text));
        }),
        { numRuns: 50 },
      );
    }
  });
});

describe("a schema that cannot be used", () => {
  test.each<readonly [string, Json]>([
    ["a remote reference", { $ref: "http://127.0.0.1:1/schema.json" }],
    ["500 levels", Array.from({ length: 500 }).reduce<Json>((schema) => ({ not: schema }), {})],
    ["a bad pattern", { pattern: "(" }],
    ["an unknown keyword", { maxLenght: 3 }],
  ])("%s is an error with issues, never an exception", async (_what, schema) => {
    const result = await compileSchema(schema);
    expect(result.ok).toBe(false);
    expect(!result.ok && result.error.length).toBe(1);
  });

  test("that turns in circles without going deeper is noticed when it is used", async () => {
    const check = await compiled({ allOf: [{ $ref: "#" }] });
    expect(check(1).map((issue) => issue.message)).toEqual(["is nested too deep to be checked"]);
  });
});

test("every schema without issues compiles", async () => {
  const schema = fc.letrec<{ schema: Json }>((tie) => ({
    schema: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      fc.boolean(),
      fc.record(
        {
          type: fc.constantFrom<Json>("string", "object", ["null", "array"], "integer", "strng"),
          minimum: fc.oneof(fc.integer(), fc.constant("1")),
          minLength: fc.integer({ min: -1, max: 3 }),
          pattern: fc.constantFrom("^a+$", "(", "[^]"),
          format: fc.constantFrom("date", "uuid", "nope"),
          enum: fc.array(fc.jsonValue() as fc.Arbitrary<Json>, { maxLength: 2 }),
          required: fc.uniqueArray(fc.constantFrom("a", "__proto__", "constructor")),
          $ref: fc.constantFrom("#", "#/$defs/a", "#/properties/a", "#/nope", "x"),
          properties: fc.dictionary(fc.constantFrom("a", "__proto__", "toString"), tie("schema")),
          $defs: fc.record({ a: tie("schema") }),
          patternProperties: fc.dictionary(fc.constantFrom("^x", "("), tie("schema")),
          additionalProperties: tie("schema"),
          items: tie("schema"),
          prefixItems: fc.array(tie("schema"), { maxLength: 2 }),
          anyOf: fc.array(tie("schema"), { maxLength: 2 }),
          not: tie("schema"),
          if: tie("schema"),
          else: tie("schema"),
          contains: tie("schema"),
          dependentRequired: fc.constant({ a: ["b"] }),
          unevaluatedProperties: tie("schema"),
          maxContains: fc.integer({ min: 0, max: 2 }),
        },
        { requiredKeys: [] },
      ) as fc.Arbitrary<Json>,
    ),
  })).schema;
  let usable = 0;
  await fc.assert(
    fc.asyncProperty(schema, fc.jsonValue(), async (one, value) => {
      fc.pre(checkUserSchema(one).length === 0);
      usable++;
      const result = await compileSchema(one);
      expect(result.ok, JSON.stringify(result)).toBe(true);
      if (result.ok) expect(Array.isArray(result.value(value as Json))).toBe(true);
    }),
    { numRuns: 150 },
  );
  expect(usable).toBeGreaterThan(100);
});
