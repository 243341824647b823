import type { StaticType } from "../expr/inspect.ts";
import { followSchema, schemaType } from "../jsonschema/follow.ts";
import { isJsonObject, type Json } from "../model/json.ts";

/** What is known of a value before anything runs. */
export type Known =
  | { readonly kind: "nothing" }
  /** The place `path` inside a value of the schema `root`; kept apart, because a `$ref` in it names the root. */
  | { readonly kind: "schema"; readonly root: Json; readonly path: Path }
  | {
      readonly kind: "object";
      /** By name in lower case. */
      readonly properties: ReadonlyMap<string, Property>;
      /** As written. */
      readonly names: readonly string[];
      /** What else may be there; nothing else when absent. */
      readonly beyond?: Known;
    }
  | { readonly kind: "list"; readonly items: Known };

/** Names, indexes, and `*` for every item. */
export type Path = readonly (string | number)[];

interface Property {
  readonly name: string;
  readonly value: Known;
}

export type Followed =
  | { readonly kind: "found"; readonly known: Known }
  /** Nothing is known about that place: anything may be there. */
  | { readonly kind: "unchecked" }
  /** Part `at` of the path names something that cannot be there; `known` are the names that can. */
  | {
      readonly kind: "unknown_property";
      readonly at: number;
      readonly name: string;
      readonly known: readonly string[];
    };

export const nothing: Known = { kind: "nothing" };

export function ofSchema(root: Json, path: Path = []): Known {
  return { kind: "schema", root, path };
}

/** An object of exactly these properties, or of what is `beyond` as well. */
export function objectOf(properties: Iterable<readonly [name: string, value: Known]>, beyond?: Known): Known {
  const byName = new Map<string, Property>();
  for (const [name, value] of properties) byName.set(name.toLowerCase(), { name, value });
  const names = [...byName.values()].map((property) => property.name);
  return { kind: "object", properties: byName, names, ...(beyond && { beyond }) };
}

/** A constant: exact about names, plain about values. */
export function ofData(value: Json): Known {
  if (Array.isArray(value)) return { kind: "list", items: anyOf(value.map(ofData)) };
  if (isJsonObject(value)) return objectOf(Object.entries(value).map(([name, inner]) => [name, ofData(inner)]));
  return ofSchema({ type: value === null ? "null" : typeof value });
}

/** One of several: the names of all when all are objects, the type when they share one, else nothing. */
export function anyOf(several: readonly Known[]): Known {
  const objects = several.filter((it) => it.kind === "object");
  if (several.length === 0) return nothing;
  if (objects.length === several.length && objects.every((it) => it.beyond === undefined)) {
    const values = Map.groupBy(
      objects.flatMap((it) => [...it.properties.values()]),
      (property) => property.name,
    );
    return objectOf(
      [...values].map(([name, all]) => [
        name,
        all.length === several.length ? anyOf(all.map((it) => it.value)) : nothing,
      ]),
    );
  }
  const [type = "unknown", ...others] = new Set(several.map(typeOfKnown));
  return others.length > 0 || type === "unknown" || type === "object" || type === "array"
    ? nothing
    : ofSchema({ type });
}

/** Follows names and indexes as far as anything is known. Names are found ignoring case. */
export function follow(start: Known, path: Path): Followed {
  let known = start;
  for (const [index, part] of path.entries()) {
    switch (known.kind) {
      case "nothing":
        return { kind: "unchecked" };
      case "schema":
        return followInSchema(known, path, index);
      case "list":
        if (typeof part === "string" && part !== "*") return { kind: "unchecked" };
        known = known.items;
        break;
      case "object": {
        const property = typeof part === "string" ? known.properties.get(part.toLowerCase()) : undefined;
        if (property) known = property.value;
        else if (typeof part === "number" || part === "*") return { kind: "unchecked" };
        else return followBeyond(known, path, index);
      }
    }
  }
  return known.kind === "nothing" ? { kind: "unchecked" } : { kind: "found", known };
}

export function typeOfKnown(known: Known): StaticType {
  switch (known.kind) {
    case "nothing":
      return "unknown";
    case "object":
      return "object";
    case "list":
      return "array";
    case "schema": {
      const followed = followSchema(known.root, known.path);
      return followed.kind === "found" ? schemaType(followed.schema) : "unknown";
    }
  }
}

function followInSchema({ root, path: before }: Known & { kind: "schema" }, path: Path, index: number): Followed {
  const whole = [...before, ...path.slice(index)];
  const followed = followSchema(root, whole);
  switch (followed.kind) {
    case "found":
      return { kind: "found", known: ofSchema(root, whole) };
    case "unchecked":
      return { kind: "unchecked" };
    case "unknown_property":
      return { ...followed, at: followed.at - before.length + index };
  }
}

function followBeyond({ names, beyond }: Known & { kind: "object" }, path: Path, index: number): Followed {
  const followed = beyond && follow(beyond, path.slice(index));
  if (followed === undefined) return { kind: "unknown_property", at: index, name: String(path[index]), known: names };
  if (followed.kind !== "unknown_property") return followed;
  const known = followed.at === 0 ? [...names, ...followed.known] : followed.known;
  return { ...followed, at: followed.at + index, known };
}
