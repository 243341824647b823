import { describe, expect, test } from "vitest";
import { checkUserSchema } from "../../src/jsonschema/check.ts";
import type { Json } from "../../src/model/json.ts";

function lines(schema: Json): readonly string[] {
  return checkUserSchema(schema).map((issue) => `${issue.path.join(".")}: ${issue.message}`);
}

function nested(levels: number): Json {
  let schema: Json = { type: "string" };
  for (let i = 1; i < levels / 2; i++) schema = { properties: { a: schema } };
  return schema;
}

describe("a schema that a user wrote has no issues when it", () => {
  test.each<readonly [string, Json]>([
    ["is true", true],
    ["is empty", {}],
    ["says what an input is", { type: "string", enum: ["quick", "deep"], default: "quick", description: "How deep" }],
    ["names the draft", { $schema: "https://json-schema.org/draft/2020-12/schema", type: "object" }],
    [
      "refers to itself",
      {
        type: "object",
        properties: { child: { $ref: "#" }, list: { items: { $ref: "#/$defs/a" } } },
        $defs: { a: {} },
      },
    ],
    ["refers to a name with odd signs", { $ref: "#/$defs/a~1b%20~0", $defs: { "a/b ~": true } }],
    ["is nested 64 levels deep", nested(64)],
    [
      "has properties that are called like keywords",
      { properties: { $id: {}, pattern: {}, $ref: { type: "string" } } },
    ],
    [
      "has data that looks like a schema",
      { default: { $ref: "x", pattern: "((" }, enum: [{ $id: 1 }], const: { format: "x" } },
    ],
    [
      "uses a known format and pattern",
      { format: "date-time", pattern: "^[a-z]+(-[a-z]+)*$", patternProperties: { "^x-": {} } },
    ],
  ])("%s", (_what, schema) => {
    expect(lines(schema)).toEqual([]);
  });
});

const alone = 'a schema stands alone here; use `$defs` and `$ref: "#/$defs/NAME"`';
const own = "must point into this schema, as in `#/$defs/NAME`: other files and addresses are never read";

describe("a schema that a user wrote is refused when it", () => {
  test.each<readonly [string, Json, readonly string[]]>([
    ["is a text", "string", [": must be a mapping or true or false, not `string`"]],
    [
      "misspells a type",
      { type: "strng" },
      ["type: must be one of array, boolean, integer, null, number, object, string, not `strng`"],
    ],
    [
      "misspells one of several types",
      { properties: { a: { type: ["string", "nul"] } } },
      ["properties.a.type.1: must be one of array, boolean, integer, null, number, object, string, not `nul`"],
    ],
    ["misspells a keyword", { items: { propertes: {} } }, ["items: unknown keyword `propertes`"]],
    [
      "misspells a format",
      { format: "emial" },
      [expect.stringMatching(/^format: must be a known format: date, .*uuid/)],
    ],
    ["gives a limit as text", { minimum: "1" }, ["minimum: must be a number, not `1`"]],
    [
      "requires a single name without a list",
      { required: "a" },
      ["required: must be a list, not `a`; write `[a]` for a list of one"],
    ],
    ["allows no value", { enum: [] }, ["enum: must not be empty"]],
    ["has a pattern that is none", { pattern: "(a" }, ["pattern: must be a regular expression: Unterminated group"]],
    [
      "has a name pattern that is none",
      { patternProperties: { "[": {} } },
      ["patternProperties.[: must be a regular expression: Unterminated character class"],
    ],
    ["refers to an address", { items: { $ref: "http://127.0.0.1:1/x.json" } }, [`items.$ref: ${own}`]],
    ["refers to a file", { $ref: "other.json#/a" }, [`$ref: ${own}`]],
    ["refers to nothing", { $ref: "#/$defs/a" }, ["$ref: points to nothing: there is no schema at `#/$defs/a`"]],
    [
      "refers to what objects inherit",
      { $ref: "#/constructor" },
      ["$ref: points to nothing: there is no schema at `#/constructor`"],
    ],
    [
      "refers to what is no schema",
      { $ref: "#/required", required: ["a"] },
      ["$ref: points to nothing: there is no schema at `#/required`"],
    ],
    [
      "refers to itself without end",
      { $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } } },
      Array(3).fill(expect.stringContaining("leads back to itself")),
    ],
    ["has an address of its own", { $id: "x" }, [`: \`$id\` cannot be used: ${alone}`]],
    [
      "uses references that move",
      { items: { $dynamicRef: "#a" } },
      [`items: \`$dynamicRef\` cannot be used: ${alone}`],
    ],
    [
      "is of another draft",
      { $schema: "http://json-schema.org/draft-07/schema#" },
      ["$schema: must be draft 2020-12 (https://json-schema.org/draft/2020-12/schema)"],
    ],
    ["is nested 70 levels deep", nested(70), [": must not be nested deeper than 64 levels"]],
    ["is nested 500 levels deep", nested(500), [": must not be nested deeper than 64 levels"]],
    ["is nested 100,000 levels deep", nested(100_000), [": must not be nested deeper than 64 levels"]],
  ])("%s", (_what, schema, expected) => {
    expect(lines(schema)).toEqual(expected);
  });

  test("has 100,000 mistakes, of which 1,000 are told", () => {
    const properties = Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`p${i}`, { tpye: "string" }]));
    expect(checkUserSchema({ properties })).toHaveLength(1_000);
    const types = Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`p${i}`, { type: 1 }]));
    expect(checkUserSchema({ properties: types })).toHaveLength(1_000);
  });
});

test("a misspelt keyword comes with the keywords that exist", () => {
  const [issue] = checkUserSchema({ requierd: [] });
  expect(issue?.problem.kind === "unknown_key" && issue.problem.allowed).toContain("required");
});
