import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, test } from "vitest";
import { ownVocabulary, strictOptions } from "../../src/jsonschema/options.ts";
import { isJsonObject, own } from "../../src/model/json.ts";
import type { Json, JsonObject } from "../../src/model/json.ts";
import { failureKinds } from "../../src/model/outcome.ts";

const files = ["agent", "workflow", "config", "managed"].map((name) => `${name}.schema.json`);
const schemas = new Map<string, JsonObject>(
  files.map((file) => [file, JSON.parse(readFileSync(new URL(`../../schemas/${file}`, import.meta.url), "utf8"))]),
);

const ajv = new Ajv2020(strictOptions);
ajv.addVocabulary(ownVocabulary);
for (const schema of schemas.values()) ajv.addSchema(schema);

interface Property {
  readonly file: string;
  readonly pointer: string;
  readonly schema: JsonObject;
}

/** Every entry of every `properties`, wherever it stands. */
function propertiesOf(file: string, schema: Json, pointer: string): readonly Property[] {
  if (typeof schema !== "object" || schema === null) return [];
  return Object.entries(schema).flatMap(([key, value]): readonly Property[] => {
    if (["examples", "default", "enum", "required"].includes(key)) return [];
    const at = `${pointer}/${key}`;
    if (key !== "properties" || !isJsonObject(value)) return propertiesOf(file, value, at);
    return Object.entries(value).flatMap(([name, one]) => [
      ...(isJsonObject(one) ? [{ file, pointer: `${at}/${name}`, schema: one }] : []),
      ...propertiesOf(file, one, `${at}/${name}`),
    ]);
  });
}

const properties = [...schemas].flatMap(([file, schema]) => propertiesOf(file, schema, "#"));

describe("the published schemas", () => {
  test.each(files)("%s is a valid draft 2020-12 schema and compiles in strict mode", (file) => {
    expect(ajv.validateSchema(schemas.get(file) ?? false), JSON.stringify(ajv.errors)).toBe(true);
    expect(ajv.getSchema(file)).toBeTypeOf("function");
  });

  test("cover the properties they are meant to cover", () => {
    expect(properties.length).toBeGreaterThan(150);
  });

  test.each(properties)("$file$pointer tells an editor what it is and shows an example", ({ schema }) => {
    expect(own(schema, "description")).toMatch(/^[A-Z`].{8,}[.:]$/s);
    expect(own(schema, "examples")).toSatisfy((examples) => Array.isArray(examples) && examples.length > 0);
  });

  test.each(properties)("$file$pointer accepts its own examples and default", ({ file, pointer, schema }) => {
    const validate = ajv.compile({ $ref: `${file}${pointer.replaceAll("$", "%24")}` });
    for (const example of [own(schema, "examples") ?? []].flat(1)) {
      expect(validate(example), `${JSON.stringify(example)}: ${JSON.stringify(validate.errors)}`).toBe(true);
    }
    const standard = own(schema, "default");
    // `if` is a condition when absent; `success()` is how one would write it.
    if (standard !== undefined) expect(validate(standard), JSON.stringify(standard)).toBe(true);
  });

  test("name the keys of a workflow and of an agent that the language has", () => {
    expect(keysAt("workflow.schema.json", [])).toEqual(
      words(
        "agents defaults description edges env expect inputs limits mcp model name outputs permissions secrets steps tools vars",
      ),
    );
    expect(keysAt("agent.schema.json", [])).toEqual(
      words(
        "approval description disable effort guards hidden hooks inputs instructions instructions-files limits max-output mcp " +
          "memory mode model name options output permissions prompt sandbox skills subagents team temperature tools top-p",
      ),
    );
    expect(keysAt("workflow.schema.json", ["$defs", "anyStep"])).toEqual(
      words(
        "cache continue-on-error description env fail-fast foreach if isolation join limits matrix name needs outputs parallel " +
          "repeat rerun retry timeout undo with",
      ),
    );
  });

  test("let retry name only kinds of failure that exist", () => {
    const kinds = at("workflow.schema.json", ["$defs", "failureKind", "enum"]);
    const never = ["rejected", "expect", "lost", "log", "internal"];
    expect(kinds).toEqual(failureKinds.filter((kind) => !never.includes(kind)));
  });

  test.each([...schemas])("%s requires only keys it describes", (_file, schema) => {
    const undescribed: string[] = [];
    walk(schema, (part) => {
      const { required, properties: described } = part;
      if (!Array.isArray(required) || !isJsonObject(described)) return;
      undescribed.push(...required.map(String).filter((key) => !Object.hasOwn(described, key)));
    });
    expect(undescribed).toEqual([]);
  });
});

function at(file: string, path: readonly string[]): Json | undefined {
  let found: Json | undefined = schemas.get(file);
  for (const part of path) found = isJsonObject(found) ? own(found, part) : undefined;
  return found;
}

function keysAt(file: string, path: readonly string[]): readonly string[] {
  const found = at(file, [...path, "properties"]);
  return isJsonObject(found) ? Object.keys(found).sort() : [];
}

function words(text: string): readonly string[] {
  return text.split(" ").sort();
}

function walk(schema: Json, look: (part: JsonObject) => void): void {
  if (typeof schema !== "object" || schema === null) return;
  if (isJsonObject(schema)) look(schema);
  for (const [key, value] of Object.entries(schema)) {
    if (!["examples", "default"].includes(key)) walk(value, look);
  }
}
