import { describe, expect, test } from "vitest";
import { followSchema, schemaType } from "../../src/jsonschema/follow.ts";
import type { FollowResult } from "../../src/jsonschema/follow.ts";
import type { Json } from "../../src/model/json.ts";

const text: Json = { type: "string" };
const count: Json = { type: "integer" };
const unchecked: FollowResult = { kind: "unchecked" };

function found(schema: Json): FollowResult {
  return { kind: "found", schema };
}
function unknown(at: number, name: string, known: readonly string[]): FollowResult {
  return { kind: "unknown_property", at, name, known };
}

const report: Json = {
  type: "object",
  properties: {
    title: text,
    findings: { type: "array", items: { $ref: "#/$defs/finding" } },
    pair: { type: "array", prefixItems: [text, { properties: { n: count } }], items: count },
    tree: { $ref: "#/$defs/tree" },
    any: {},
    all: true,
    list: { type: "array" },
    meta: { type: "object", properties: { a: text }, additionalProperties: text },
    shut: { type: "object", properties: { a: text }, additionalProperties: false },
    named: { type: "object", properties: { a: text }, patternProperties: { "^x": text } },
    hello: { $ref: "#/$defs/text", description: "Hello" },
    lost: { $ref: "#/$defs/nothing" },
  },
  $defs: {
    text,
    finding: { type: "object", properties: { file: text, line: count } },
    tree: { properties: { value: count, children: { items: { $ref: "#/$defs/tree" } } } },
  },
};
const reportKeys = [
  "title",
  "findings",
  "pair",
  "tree",
  "any",
  "all",
  "list",
  "meta",
  "shut",
  "named",
  "hello",
  "lost",
];

describe("following a reference through a schema", () => {
  test.each<readonly [string, readonly (string | number)[], FollowResult]>([
    ["nothing", [], found(report)],
    ["a property", ["title"], found(text)],
    ["a property in other letters", ["TITLE"], found(text)],
    ["an unknown property", ["titel"], unknown(0, "titel", reportKeys)],
    ["a name that objects inherit", ["constructor"], unknown(0, "constructor", reportKeys)],
    ["an item behind a reference", ["findings", 3, "line"], found(count)],
    ["every item", ["findings", "*", "file"], found(text)],
    ["an unknown property of an item", ["findings", 0, "lines"], unknown(2, "lines", ["file", "line"])],
    ["a place in a tuple", ["pair", 1, "n"], found(count)],
    ["an unknown property in a tuple", ["pair", 1, "m"], unknown(2, "m", ["n"])],
    ["a place behind a tuple", ["pair", 2], found(count)],
    ["a schema that refers to itself", ["tree", "children", 0, "children", 1, "value"], found(count)],
    ["an unknown property deep in it", ["tree", "children", 0, "vlaue"], unknown(3, "vlaue", ["value", "children"])],
    ["anything below an empty schema", ["any", "x", "y"], unchecked],
    ["anything below true", ["all", "x"], unchecked],
    ["an item of a list without items", ["list", 0], unchecked],
    ["a property of a list of items", ["findings", "file"], unchecked],
    ["an index into an object", ["shut", 0], unchecked],
    ["a property of a text", ["title", "length"], unchecked],
    ["a declared property beside others", ["meta", "a"], found(text)],
    ["another property where others may be", ["meta", "b"], unchecked],
    ["another property where others may not be", ["shut", "b"], unknown(1, "b", ["a"])],
    ["a property where names have patterns", ["named", "b"], unchecked],
    ["a reference with words beside it", ["hello"], found({ type: "string", description: "Hello" })],
    ["below a reference to nothing", ["lost", "x"], unchecked],
  ])("%s", (_what, path, expected) => {
    expect(followSchema(report, path)).toEqual(expected);
  });

  const a: Json = { properties: { a: text } };
  const b: Json = { properties: { b: count } };
  test.each<readonly [string, Json, string, FollowResult]>([
    ["any branch may declare it", { anyOf: [a, b] }, "b", found(count)],
    ["one of several may declare it", { oneOf: [a, b] }, "a", found(text)],
    ["all of them together declare", { allOf: [a, b] }, "b", found(count)],
    ["no branch declares it", { anyOf: [a, b] }, "c", unknown(0, "c", ["a", "b"])],
    ["branches declare beside the schema's own", { ...asObject(a), oneOf: [b] }, "b", found(count)],
    [
      "branches that only require do not open it",
      { ...asObject(a), anyOf: [{ required: ["a"] }, { required: ["x"] }] },
      "x",
      unknown(0, "x", ["a"]),
    ],
    ["a branch that is no object does not open it", { anyOf: [a, { type: "null" }] }, "x", unknown(0, "x", ["a"])],
    ["a branch that says nothing opens it", { anyOf: [a, { type: "object" }] }, "x", unchecked],
    [
      "a branch that allows others opens it",
      { oneOf: [a, { properties: { b: text }, additionalProperties: true }] },
      "x",
      unchecked,
    ],
    ["a part that allows others opens it", { allOf: [a, { additionalProperties: text }] }, "x", unchecked],
    ["else may declare it", { ...asObject(a), if: {}, else: b }, "b", found(count)],
    ["a circle of parts ends", { ...asObject(a), allOf: [{ $ref: "#" }] }, "x", unknown(0, "x", ["a"])],
    ["two declare it", { anyOf: [a, { properties: { a: count } }] }, "a", found({ anyOf: [text, count] })],
    ["a circle of references ends", { $ref: "#" }, "x", unchecked],
  ])("%s", (_what, schema, name, expected) => {
    expect(followSchema(schema, [name])).toEqual(expected);
  });
});

function asObject(schema: Json): { [key: string]: Json } {
  return typeof schema === "object" && schema !== null && !Array.isArray(schema) ? schema : {};
}

test.each<readonly [Json, string]>([
  [{ type: "boolean" }, "boolean"],
  [{ type: "integer" }, "number"],
  [{ type: ["integer", "number"] }, "number"],
  [{ type: ["string", "null"] }, "unknown"],
  [{ type: "array" }, "array"],
  [{ enum: ["a", "b"] }, "string"],
  [{ enum: ["a", 1] }, "unknown"],
  [{ const: null }, "null"],
  [{ const: { a: 1 } }, "object"],
  [{ anyOf: [{ type: "integer" }, { type: "number" }] }, "number"],
  [{ type: "strng" }, "unknown"],
  [{}, "unknown"],
  [true, "unknown"],
])("the type of %j is %s", (schema, expected) => {
  expect(schemaType(schema)).toBe(expected);
});
