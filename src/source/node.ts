import type { Span } from "../model/diagnostic.ts";

export type SourceNode = MapNode | ListNode | ScalarNode;

/** `at` of a map or list is its part on its first line, which is what a code frame should show. */
export interface MapNode {
  readonly kind: "map";
  readonly entries: readonly MapEntry[];
  readonly at: Span;
  /** Entries by key; only large maps carry it. */
  readonly index?: ReadonlyMap<string, MapEntry>;
}

export interface MapEntry {
  readonly key: string;
  readonly keyAt: Span;
  /** The target itself where the file has an alias, so two entries may share one node. */
  readonly value: SourceNode;
}

export interface ListNode {
  readonly kind: "list";
  readonly items: readonly SourceNode[];
  readonly at: Span;
}

export interface ScalarNode {
  readonly kind: "scalar";
  readonly value: string | number | boolean | null;
  readonly style: ScalarStyle;
  /** From the first quote, or the `|` or `>`, to the end of the last line. */
  readonly at: Span;
  /** Offsets in the text of what was written: inside the quotes, below the `|`. */
  readonly from: number;
  readonly to: number;
}

export type ScalarStyle = "plain" | "single" | "double" | "literal" | "folded";
