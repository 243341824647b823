import { isJsonObject, own } from "../model/json.ts";
import type { Json, JsonObject } from "../model/json.ts";
import { resolvePointer } from "./pointer.ts";

export type FollowResult =
  /** What the schema says about the value there. Its own `$ref` is resolved; those deeper inside still name the root. */
  | { readonly kind: "found"; readonly schema: Json }
  /** The schema says nothing about it: any property may be there. */
  | { readonly kind: "unchecked" }
  /** Part `at` of the path names a property that cannot be there; `known` are those that can. */
  | {
      readonly kind: "unknown_property";
      readonly at: number;
      readonly name: string;
      readonly known: readonly string[];
    };

export type SchemaType = "boolean" | "number" | "string" | "null" | "array" | "object" | "unknown";

/**
 * Follows a reference such as `.findings[0].title` through `properties`, `items`, `prefixItems` and local `$ref`; `"*"`
 * stands for every item or property. Names are found ignoring case. Under `oneOf`, `anyOf`, `allOf`, `then` and `else`
 * any branch may declare a property.
 */
export function followSchema(schema: Json, path: readonly (string | number)[]): FollowResult {
  let at: readonly Json[] = [schema];
  for (const [index, part] of path.entries()) {
    const level = levelOf(at, schema);
    const next = inside(level, part);
    if (next.length > 0) at = next;
    else if (typeof part === "number" || part === "*" || level.open) return { kind: "unchecked" };
    else return { kind: "unknown_property", at: index, name: part, known: level.names };
  }
  const [only = true, ...others] = levelOf(at, schema).parts;
  return {
    kind: "found",
    schema: at.length > 1 && others.length > 0 ? { anyOf: [...at] } : withoutReference(only, schema),
  };
}

/** The type that every value of the schema has, as expressions know types (`integer` is a number). */
export function schemaType(schema: Json): SchemaType {
  if (!isJsonObject(schema)) return "unknown";
  const written = [own(schema, "type") ?? []].flat().map(typeName);
  const values = [own(schema, "enum") ?? []].flat();
  const constant = own(schema, "const");
  const branches = own(schema, "anyOf") ?? own(schema, "oneOf");
  if (written.length > 0) return common(written);
  if (constant !== undefined) return typeOf(constant);
  if (values.length > 0) return common(values.map(typeOf));
  return Array.isArray(branches) ? common(branches.map(schemaType)) : "unknown";
}

/** Everything that is said about one value, from all schemas that apply or may apply to it. */
interface Level {
  /** The schemas, first of them what was asked for, with `$ref` resolved. */
  readonly parts: readonly Json[];
  /** By name in lower case. */
  readonly properties: ReadonlyMap<string, readonly Json[]>;
  readonly names: readonly string[];
  readonly items: readonly Json[];
  readonly prefixItems: readonly (readonly Json[])[];
  /** Properties beyond the declared ones may be there. */
  readonly open: boolean;
}

function levelOf(schemas: readonly Json[], root: Json): Level {
  const reached = new Map<Json, Reach>();
  const open = schemas.map((one) => reach(one, root, reached)).some((one) => one !== "closed");
  const parts = [...reached.keys()];
  const objects = parts.filter(isJsonObject);
  const properties = new Map<string, Json[]>();
  const names: string[] = [];
  for (const [name, value] of objects.flatMap((part) => Object.entries(mapAt(part, "properties")))) {
    const declared = properties.get(name.toLowerCase());
    if (declared === undefined) names.push(name);
    properties.set(name.toLowerCase(), [...(declared ?? []), value]);
  }
  const items = objects.flatMap((part) => own(part, "items") ?? []);
  const prefixItems = objects.map((part) => listAt(part, "prefixItems"));
  return { parts, properties, names, items, prefixItems, open };
}

function inside(level: Level, part: string | number): readonly Json[] {
  if (part === "*") return [...level.items, ...level.prefixItems.flat(), ...[...level.properties.values()].flat()];
  if (typeof part === "string") return level.properties.get(part.toLowerCase()) ?? [];
  const positioned = level.prefixItems.flatMap((items) => items[part] ?? []);
  return positioned.length > 0 ? positioned : level.items;
}

/**
 * What a schema says about property names. `closed`: it declares some, and no others. `open`: it allows others.
 * `silent`: nothing, so that a schema beside it decides.
 */
type Reach = "closed" | "open" | "silent";

/** Puts into `reached` the schema and all that apply or may apply to the same value, each once. */
function reach(written: Json, root: Json, reached: Map<Json, Reach>): Reach {
  const schema = atEndOfReferences(written, root);
  if (!isJsonObject(schema)) return "silent";
  const target = targetOf(schema, root);
  const before = reached.get(schema);
  if (before !== undefined) return before;
  // A schema that leads back to itself adds nothing the second time.
  reached.set(schema, "silent");
  const beside = [target ?? [], ...["allOf", "then", "else"].map((keyword) => own(schema, keyword) ?? [])].flat();
  const together = sum([ownReach(schema), ...beside.map((one) => reach(one, root, reached))]);
  const branches = [...listAt(schema, "anyOf"), ...listAt(schema, "oneOf")].filter((one) => mayBeObject(one, root));
  const apart = branches.map((one) => sum([together, reach(one, root, reached)]));
  const result = apart.length === 0 ? together : apart.every((one) => one === "closed") ? "closed" : "open";
  reached.set(schema, result);
  return result;
}

function ownReach(schema: JsonObject): Reach {
  if (Object.hasOwn(schema, "patternProperties")) return "open";
  for (const keyword of ["additionalProperties", "unevaluatedProperties"]) {
    if ((own(schema, keyword) ?? false) !== false) return "open";
  }
  return Object.hasOwn(schema, "properties") ? "closed" : "silent";
}

function sum(reaches: readonly Reach[]): Reach {
  if (reaches.includes("open")) return "open";
  return reaches.includes("closed") ? "closed" : "silent";
}

function mayBeObject(schema: Json, root: Json): boolean {
  if (!isJsonObject(schema)) return schema !== false;
  const target = targetOf(schema, root);
  const types = [own(schema, "type") ?? (isJsonObject(target) ? own(target, "type") : undefined) ?? "object"].flat();
  return types.includes("object");
}

function targetOf(schema: JsonObject, root: Json): Json | undefined {
  const reference = own(schema, "$ref");
  return typeof reference === "string" ? resolvePointer(root, reference) : undefined;
}

/** Follows a schema that is nothing but a reference; `true` when that goes in a circle. */
function atEndOfReferences(schema: Json, root: Json): Json {
  const seen = new Set<Json>();
  let at = schema;
  while (isJsonObject(at) && Object.keys(at).length === 1) {
    const target = targetOf(at, root);
    if (target === undefined) return at;
    if (seen.has(at)) return true;
    seen.add(at);
    at = target;
  }
  return at;
}

function withoutReference(schema: Json, root: Json): Json {
  if (!isJsonObject(schema)) return schema;
  const target = targetOf(schema, root);
  if (!isJsonObject(target) || target === schema) return schema;
  const { $ref: _, ...rest } = schema;
  return { ...target, ...rest };
}

function mapAt(schema: JsonObject, keyword: string): JsonObject {
  const value = own(schema, keyword);
  return isJsonObject(value) ? value : {};
}

function listAt(schema: JsonObject, keyword: string): readonly Json[] {
  const value = own(schema, keyword);
  return Array.isArray(value) ? value : [];
}

function common(types: readonly SchemaType[]): SchemaType {
  const [first = "unknown"] = types;
  return types.every((type) => type === first) ? first : "unknown";
}

function typeName(type: Json): SchemaType {
  if (type === "integer") return "number";
  return typeNames.find((name) => name === type) ?? "unknown";
}

function typeOf(value: Json): SchemaType {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeName(typeof value);
}

const typeNames = ["boolean", "number", "string", "null", "array", "object"] as const;
