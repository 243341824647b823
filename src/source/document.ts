import type { Span } from "../model/diagnostic.ts";
import type { Json, JsonObject } from "../model/json.ts";
import type { MapEntry, MapNode, ScalarNode, SourceNode } from "./node.ts";
import type { Positions } from "./positions.ts";

export type { MapEntry, MapNode, ScalarNode, SourceNode } from "./node.ts";

/** A file as data that knows where every key and value stands. Everything in it is JSON: no tags, dates or NaN. */
export interface SourceDocument {
  readonly file: string;
  /** The whole text, without a byte order mark; every position counts in it. */
  readonly text: string;
  readonly root: SourceNode;
  readonly positions: Positions;
}

export function entry(map: MapNode, key: string): MapEntry | undefined {
  if (map.index !== undefined) return map.index.get(key);
  // Some forty times a step, mostly for a key that is not there: a plain loop takes half the time of `find`.
  for (const candidate of map.entries) if (candidate.key === key) return candidate;
  return undefined;
}

/** The value alone; every key becomes an own property, whatever its name. */
export function toJson(node: SourceNode): Json {
  if (node.kind === "scalar") return node.value;
  if (node.kind === "list") return node.items.map(toJson);
  const object: JsonObject = {};
  for (const { key, value } of node.entries) {
    const json = toJson(value);
    if (key === "__proto__") Object.defineProperty(object, key, { ...ownData, value: json });
    else object[key] = json;
  }
  return object;
}

const ownData = { enumerable: true, configurable: true, writable: true };

/**
 * The node a schema checker's path leads to (list items by number or digits), with the place of its key if it has one.
 * Undefined when the path leaves the document.
 */
export function nodeAt(
  root: SourceNode,
  path: readonly (string | number)[],
): { readonly node: SourceNode; readonly keyAt?: Span } | undefined {
  let found: { readonly node: SourceNode; readonly keyAt?: Span } = { node: root };
  for (const segment of path) {
    const { node } = found;
    if (node.kind === "scalar") return undefined;
    if (node.kind === "list") {
      const item = node.items[Number(segment)];
      if (item === undefined) return undefined;
      found = { node: item };
    } else {
      const next = entry(node, String(segment));
      if (next === undefined) return undefined;
      found = { node: next.value, keyAt: next.keyAt };
    }
  }
  return found;
}

/**
 * Where characters `[offset, offset + length)` of a string scalar's value stand in the file, through quotes, escapes,
 * indentation and folded lines. White space that folding made has no exact place and gets the nearest one.
 */
export function locate(document: SourceDocument, scalar: ScalarNode, offset: number, length: number): Span {
  return document.positions.locate(scalar, offset, length);
}
