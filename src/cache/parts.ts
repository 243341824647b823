import { hash } from "node:crypto";
import { canonicalJson, isJsonObject, type Json } from "../model/json.ts";
import type { CacheQuestion } from "../model/ports.ts";

/** One of the things that decide: a name that a person can read, and what stands for its value. */
export interface Part {
  readonly name: string;
  /** 16 hex digits; a secret in the value was masked before. */
  readonly hash: string;
}

export interface Deciding {
  /** sha256 (hex) over all parts, and over the format of what is kept. */
  readonly key: string;
  readonly parts: readonly Part[];
}

export interface Decisive {
  readonly question: CacheQuestion;
  /** What the step is, by name; see `definitionOf`. */
  readonly definition: readonly NamedValue[];
  /** What else about the run counts. */
  readonly around: readonly NamedValue[];
  readonly files: readonly { readonly path: string; readonly sha256: string }[];
  readonly mask: Masks;
}

/** What keeps secrets out of texts and of values. */
export interface Masks {
  readonly text: (text: string) => string;
  readonly value: (value: Json) => Json;
}

export interface NamedValue {
  readonly name: string;
  readonly value: Json;
}

/** Raised when what is kept, or what decides, changes its meaning. */
export const format = 1;

/** Everything that decides whether two executions are the same, each part by itself. */
export function decide({ question, definition, around, files, mask }: Decisive): Deciding {
  const values: NamedValue[] = [
    ...definition,
    ...inputValues(question.inputs ?? {}),
    ...question.reads.flatMap(({ expression, value }) =>
      value === undefined ? [] : [{ name: `\${{ ${expression} }}`, value }],
    ),
    ...around,
    ...(question.item === undefined ? [] : [{ name: "item", value: question.item }]),
    ...(question.key === undefined ? [] : [{ name: "cache.key", value: question.key }]),
    ...files.map(({ path, sha256 }) => ({ name: `file ${path}`, value: sha256 })),
  ];
  const parts = values.map(({ name, value }) => ({
    name: mask.text(name),
    hash: digest(canonicalJson(mask.value(value))).slice(0, 16),
  }));
  const key = digest(canonicalJson([format, ...parts.map((part) => [part.name, part.hash])]));
  return { key, parts };
}

/** As the keys are written in the file: `env.BASE`, `with.diff`, `prompt`. */
function inputValues(inputs: NonNullable<CacheQuestion["inputs"]>): NamedValue[] {
  return Object.entries(inputs).flatMap(([input, value]) => {
    const name = written[input] ?? input;
    if (!isJsonObject(value)) return [{ name, value }];
    return Object.entries(value).map(([field, inner]) => ({ name: `${name}.${field}`, value: inner }));
  });
}

const written: { readonly [input: string]: string } = { argv: "run", models: "model" };

const mostNamed = 20;

/** Names of the parts in which two executions differ. */
export function differing(before: readonly Part[], now: readonly Part[]): string[] {
  const was = new Map(before.map((part) => [part.name, part.hash]));
  const is = new Map(now.map((part) => [part.name, part.hash]));
  const names = [...new Set([...is.keys(), ...was.keys()])].filter((name) => was.get(name) !== is.get(name));
  const named = names
    .slice(0, mostNamed)
    .map((name) => name + (was.has(name) ? (is.has(name) ? "" : " (gone)") : " (new)"));
  const rest = names.length - named.length;
  return rest > 0 ? [...named, `and ${rest} more`] : named;
}

function digest(text: string): string {
  return hash("sha256", text);
}
