import type { Word } from "../word.ts";
import type { MapEntry, MapNode, ScalarNode, SourceNode } from "../../source/document.ts";

/**
 * Reading the located tree after the schema check: a node of the wrong shape has been reported there, so every reader
 * here answers `undefined` for it and goes on.
 */
export function asMap(node: SourceNode | undefined): MapNode | undefined {
  return node?.kind === "map" ? node : undefined;
}

export function asText(node: SourceNode | undefined): (ScalarNode & { readonly value: string }) | undefined {
  return node?.kind === "scalar" && isText(node) ? node : undefined;
}

function isText(node: ScalarNode): node is ScalarNode & { readonly value: string } {
  return typeof node.value === "string";
}

export function textOf(node: SourceNode | undefined): string | undefined {
  return asText(node)?.value;
}

export function numberOf(node: SourceNode | undefined): number | undefined {
  return node?.kind === "scalar" && typeof node.value === "number" ? node.value : undefined;
}

export function booleanOf(node: SourceNode | undefined): boolean | undefined {
  return node?.kind === "scalar" && typeof node.value === "boolean" ? node.value : undefined;
}

/** The entries of a map, or none. */
export function entriesOf(node: SourceNode | undefined): readonly MapEntry[] {
  return asMap(node)?.entries ?? [];
}

/** The items of a list, a lone value as a list of one, or none. */
export function itemsOf(node: SourceNode | undefined): readonly SourceNode[] {
  if (node === undefined) return [];
  return node.kind === "list" ? node.items : [node];
}

/** Every string in a list of strings, or a lone string as a list of one. */
export function textsOf(node: SourceNode | undefined): string[] {
  return itemsOf(node).flatMap((item) => textOf(item) ?? []);
}

/** The same with the place of each. */
export function wordsOf(node: SourceNode | undefined): Word[] {
  return itemsOf(node).flatMap((item) => {
    const text = asText(item);
    return text ? [{ text: text.value, at: text.at }] : [];
  });
}
