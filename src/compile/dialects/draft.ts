import type { Span } from "../../model/diagnostic.ts";
import type { Json } from "../../model/json.ts";
import { isJsonObject } from "../../model/json.ts";
import type { MapEntry, MapNode, SourceDocument, SourceNode } from "../../source/document.ts";
import type { Report } from "../report.ts";

/** What became of one field of another program's agent file. */
export interface Field {
  readonly key: string;
  readonly at: Span;
  /** `honoured`: the same here; `mapped`: says `to` here; `ignored`: has no effect here. */
  readonly fate: "honoured" | "mapped" | "ignored";
  /** The key of ours that it became. */
  readonly to?: string;
  /** How, or why not. */
  readonly note?: string;
}

/** What the language knows that names in other programs' files may mean. */
export interface Vocabulary {
  /** Every tool by name: whether it comes by that. */
  readonly tools: ReadonlyMap<string, boolean>;
  /** The tool that other programs call so. */
  readonly canonical: (name: string) => string | undefined;
  /** `provider/name` for what another program calls a model; undefined when flow can ask none of that name. */
  readonly modelOf: (name: string, provider?: string) => Promise<string | undefined>;
}

/** A foreign file on its way to be one of ours: our keys with the places of theirs. */
export interface Draft {
  readonly document: SourceDocument;
  readonly report: Report;
  readonly vocabulary: Vocabulary;
  /** The program, as a person names it. */
  readonly program: string;
  readonly entries: MapEntry[];
  readonly fields: Field[];
  /** Rules, in the order they count. */
  readonly rules: MapEntry[];
  readonly limits: MapEntry[];
  /** True: the rules may take away and never give. */
  narrows: boolean;
}

/** Takes a field over as a key of ours. */
export function put(draft: Draft, theirs: MapEntry, key: string, value: SourceNode = theirs.value): void {
  putAs(draft, theirs, { key, value });
}

/** As {@link put}, with what there is to say about it. */
export function putAs(
  draft: Draft,
  theirs: MapEntry,
  { key, value, note }: { readonly key: string; readonly value: SourceNode; readonly note?: string | undefined },
): void {
  draft.entries.push({ key, keyAt: theirs.keyAt, value });
  took(draft, theirs, key, note);
}

/** Writes down what a field became. */
export function took(draft: Draft, { key, keyAt }: MapEntry, to: string, note?: string): void {
  const isSame = key === to && note === undefined;
  draft.fields.push({ key, at: keyAt, fate: isSame ? "honoured" : "mapped", to, ...(note !== undefined && { note }) });
}

/** A field without effect: never silent, never an error. */
export function ignore(draft: Draft, { key, keyAt }: MapEntry, why: string): void {
  draft.fields.push({ key, at: keyAt, fate: "ignored", note: why });
  draft.report("FLOW6005", keyAt, `\`${key}\` of this ${draft.program} agent has no effect: ${why}`, {
    severity: "warning",
  });
}

/** A part of a field that is left out, at its place. */
export function leaveOut(draft: Draft, at: Span, what: string): void {
  draft.report("FLOW6005", at, what, { severity: "warning" });
}

/** The agent as one of our own files would say it. */
export function finished({ entries, rules, limits, document }: Draft): MapNode {
  const at = document.root.at;
  const group = (key: string, inner: readonly MapEntry[]): MapEntry[] => {
    const [first] = inner;
    return first ? [{ key, keyAt: first.keyAt, value: { kind: "map", entries: inner, at: first.keyAt } }] : [];
  };
  return { kind: "map", entries: [...entries, ...group("limits", limits), ...group("permissions", merged(rules))], at };
}

/** Rules for one tool, or of one list, stand together, where the first of them stood. */
function merged(rules: readonly MapEntry[]): MapEntry[] {
  const byKey = new Map<string, MapEntry>();
  for (const rule of rules) {
    const before = byKey.get(rule.key);
    byKey.set(rule.key, before ? { ...before, value: joined(before.value, rule.value) } : rule);
  }
  return [...byKey.values()];
}

function joined(first: SourceNode, second: SourceNode): SourceNode {
  if (first.kind === "list" && second.kind === "list") return { ...first, items: [...first.items, ...second.items] };
  if (first.kind !== "map" || second.kind !== "map") return second;
  const kept = first.entries.filter(({ key }) => !second.entries.some((entry) => entry.key === key));
  return { ...first, entries: [...kept, ...second.entries] };
}

/** A value of ours at a place of theirs. */
export function nodeOf(value: Json, at: Span): SourceNode {
  if (Array.isArray(value)) return { kind: "list", items: value.map((item) => nodeOf(item, at)), at };
  if (!isJsonObject(value)) return { kind: "scalar", value, style: "plain", at, from: 0, to: 0 };
  return {
    kind: "map",
    entries: Object.entries(value).map(([key, inner]) => ({ key, keyAt: at, value: nodeOf(inner, at) })),
    at,
  };
}
