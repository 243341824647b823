import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { misfits } from "../../src/compile/checks/key-fit.ts";
import { stepKinds } from "../../src/compile/read/kind.ts";
import { isJsonObject, type Json, type JsonObject, own } from "../../src/model/json.ts";
import { toJson } from "../../src/source/document.ts";
import { parseFrontMatter } from "../../src/source/front-matter.ts";
import { parseSource } from "../../src/source/parse.ts";
import { checkText, problemsOf } from "./checking.ts";

const schemas = new Map(
  ["workflow.schema.json", "agent.schema.json"].map((name) => [
    name,
    JSON.parse(readFileSync(fileURLToPath(new URL(`../../schemas/${name}`, import.meta.url)), "utf8")) as JsonObject,
  ]),
);

/** A place in one of the schemas, as `file#/pointer`. */
interface Place {
  readonly file: string;
  readonly pointer: string;
}

function schemaAt({ file, pointer }: Place): Json {
  let at: Json = schemas.get(file) ?? {};
  for (const part of pointer.split("/").slice(1)) {
    const next: Json | undefined = Array.isArray(at) ? at[Number(part)] : isJsonObject(at) ? own(at, part) : undefined;
    at = next ?? {};
  }
  return at;
}

/** Marks every `properties` entry that a value uses, following the schema as a validator would. */
function mark(value: Json, place: Place, used: Set<string>, seen: Set<string> = new Set()): void {
  const schema = schemaAt(place);
  const key = `${place.file}${place.pointer}`;
  if (!isJsonObject(schema) || seen.has(key)) return;
  const inside = (pointer: string): Place => ({ ...place, pointer: `${place.pointer}/${pointer}` });
  const again = new Set([...seen, key]);
  const reference = own(schema, "$ref");
  if (typeof reference === "string") {
    const [file = "", pointer = ""] = reference.split("#");
    mark(value, { file: file === "" ? place.file : file, pointer }, used, again);
  }
  const all = own(schema, "allOf");
  if (Array.isArray(all)) all.forEach((_, index) => mark(value, inside(`allOf/${index}`), used, again));
  if (Object.hasOwn(schema, "if")) {
    const branch = fits(value, own(schema, "if") ?? true) ? "then" : "else";
    if (Object.hasOwn(schema, branch)) mark(value, inside(branch), used, again);
  }
  if (Array.isArray(value)) value.forEach((item) => mark(item, inside("items"), used));
  if (!isJsonObject(value)) return;
  for (const [name, inner] of Object.entries(value)) {
    const property = inside(`properties/${name}`);
    if (
      isJsonObject(own(schema, "properties") ?? null) &&
      Object.hasOwn(own(schema, "properties") as JsonObject, name)
    ) {
      used.add(`${property.file}${property.pointer}`);
      mark(inner, property, used);
    } else if (isJsonObject(own(schema, "additionalProperties") ?? null))
      mark(inner, inside("additionalProperties"), used);
  }
}

/** The two forms of `if` that the schemas have: `required` and `type`. */
function fits(value: Json, condition: Json): boolean {
  if (!isJsonObject(condition)) return true;
  const { type, required } = condition;
  if (Array.isArray(required))
    return isJsonObject(value) && required.every((key) => typeof key === "string" && Object.hasOwn(value, key));
  return type === (Array.isArray(value) ? "array" : typeof value);
}

function everyProperty(file: string, schema: Json, pointer: string): string[] {
  if (!isJsonObject(schema)) return [];
  return Object.entries(schema).flatMap(([key, value]) => {
    if (["examples", "default", "enum", "required", "if"].includes(key)) return [];
    const at = `${pointer}/${key}`;
    if (Array.isArray(value)) return value.flatMap((item, index) => everyProperty(file, item, `${at}/${index}`));
    if (key !== "properties" || !isJsonObject(value)) return everyProperty(file, value, at);
    return Object.entries(value).flatMap(([name, one]) => [
      `${file}${at}/${name}`,
      ...everyProperty(file, one, `${at}/${name}`),
    ]);
  });
}

const folder = fileURLToPath(new URL("./ok", import.meta.url));
const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => /\.(yaml|md)$/.test(name));

function read(name: string): Json {
  const bytes = readFileSync(join(folder, name));
  const parsed = name.endsWith(".md") ? parseFrontMatter(bytes, name) : parseSource(bytes, name);
  if (!parsed.ok) throw new Error(`${name}: ${parsed.error[0]?.message}`);
  return toJson("document" in parsed.value ? parsed.value.document.root : parsed.value.root);
}

describe("the right files", () => {
  test("together use every key of both schemas", () => {
    const used = new Set<string>();
    for (const name of files) {
      const isAgent = name.includes("agents/agents/");
      mark(read(name), { file: isAgent ? "agent.schema.json" : "workflow.schema.json", pointer: "" }, used);
    }
    const every = [...schemas].flatMap(([file, schema]) => everyProperty(file, schema, ""));
    expect(every.length).toBeGreaterThan(150);
    expect(every.filter((property) => !used.has(property))).toEqual([]);
  });

  test("together use every key on every kind of step it may stand on", () => {
    const used = new Set<string>();
    const visit = (steps: Json | undefined): void => {
      for (const step of Object.values(isJsonObject(steps ?? null) ? (steps as JsonObject) : {})) {
        if (!isJsonObject(step)) continue;
        const kind = stepKinds.find((it) => Object.hasOwn(step, it));
        for (const key of Object.keys(step)) used.add(`${kind} ${key}`);
        visit(step["steps"]);
      }
    };
    for (const name of files) {
      const content = read(name);
      if (isJsonObject(content)) visit(content["steps"]);
    }
    expect(
      pairs.filter(([kind, key]) => isFitting(kind, key) && !used.has(`${kind} ${key}`)).map((pair) => pair.join(" ")),
    ).toEqual([]);
  });
});

const anyStep = Object.keys(
  own(schemaAt({ file: "workflow.schema.json", pointer: "/$defs/anyStep" }) as JsonObject, "properties") as JsonObject,
);
const pairs = stepKinds.flatMap((kind) => anyStep.map((key) => [kind, key] as const));

function isFitting(kind: (typeof stepKinds)[number], key: string): boolean {
  return !(Object.hasOwn(misfits, key) && misfits[key]?.kinds.includes(kind));
}

const bodies: { readonly [kind in (typeof stepKinds)[number]]: string } = {
  agent: "agent: { prompt: hi }",
  run: 'run: "true"',
  tool: "tool: Read",
  workflow: "workflow: ./nowhere.yaml",
  steps: "steps: { a: { set: { x: 1 } } }",
  approve: "approve: Go on?",
  set: "set: { x: 1 }",
};
const values: { readonly [key: string]: string } = {
  retry: "1",
  timeout: "1s",
  cache: "true",
  env: "{ A: b }",
  with: "{ a: b }",
  limits: "{ duration: 1s }",
  undo: '{ run: "true" }',
  rerun: "never",
  isolation: "worktree",
};

describe("a key that means nothing on a kind of step is refused with the reason:", () => {
  test.each(pairs.filter(([kind, key]) => !isFitting(kind, key)))("%s with %s", async (kind, key) => {
    const compilation = await checkText(`steps:\n  a:\n    ${bodies[kind]}\n    ${key}: ${values[key]}\n`);
    expect(problemsOf(compilation)).toContain(`FLOW2008 4:5 ${key}`);
  });

  test.each([
    ["run", "prompt: hi"],
    ["run", "model: openai/x"],
    ["set", "tools: [Read]"],
    ["steps", "permissions: { Read: allow }"],
    ["tool", "check: { run: x }"],
    ["approve", "team: { members: [a] }"],
    ["agent", "shell: sh"],
    ["workflow", "cwd: x"],
    ["set", "stdin: x"],
    ["steps", "output: { type: object }"],
    ["run", "form: { type: object }"],
  ] as const)("%s with `%s`", async (kind, line) => {
    const compilation = await checkText(`steps:\n  a:\n    ${bodies[kind]}\n    ${line}\n`);
    expect(problemsOf(compilation)).toContain(`FLOW2008 4:5 ${line.split(":")[0]}`);
  });
});
