import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { evaluate } from "../../src/expr/public.ts";
import type { Json } from "../../src/model/json.ts";

const folder = join(import.meta.dirname, "../../../shared/samples/expressions");
const present = existsSync(folder);
if (!present) console.log("skipped: the published cases of the expression language are not on this machine");

interface Case {
  readonly expr: string;
  readonly contexts?: { readonly [name: string]: Json };
  readonly result?: { readonly kind: string; readonly value: Json };
  readonly err?: { readonly kind: string; readonly value: string };
  readonly options?: { readonly skip?: readonly string[] };
}

function publishedCases(): readonly (readonly [string, Case])[] {
  const files = readdirSync(folder).filter((file) => file.endsWith(".json"));
  return files.flatMap((file) => {
    const tables = JSON.parse(readFileSync(join(folder, file), "utf8")) as { [table: string]: Case[] };
    return Object.entries(tables).flatMap(([table, cases]) =>
      cases.map((published) => [`${file}, ${table}`, published] as const),
    );
  });
}

test.skipIf(!present)("all 1,015 published cases of the language hold", () => {
  const all = publishedCases();
  const ours = all.filter(([, { options }]) => options?.skip?.includes("typescript") !== true);
  const failures = ours.flatMap(([name, published]) => difference(name, published) ?? []);
  expect(failures).toEqual([]);
  expect([all.length, ours.length]).toEqual([1020, 1015]);
});

function difference(name: string, { expr, contexts, result, err }: Case): string | undefined {
  const actual = evaluate(expr, contexts);
  if (err !== undefined) {
    if (actual.ok) return `${name}: ${expr} should fail with ${err.value}`;
    const { message, offset } = actual.error;
    const whole = `${message}. Located at position ${offset + 1} within expression: ${expr}`;
    return whole.startsWith(err.value) ? undefined : `${name}: ${expr} fails with ${whole}, not ${err.value}`;
  }
  if (!actual.ok) return `${name}: ${expr} fails with ${actual.error.message}`;
  const same = kind(actual.value) === result?.kind && JSON.stringify(actual.value) === JSON.stringify(result.value);
  return same ? undefined : `${name}: ${expr} is ${JSON.stringify(actual.value)}, not ${JSON.stringify(result)}`;
}

function kind(value: Json): string {
  if (value === null) return "Null";
  if (Array.isArray(value)) return "Array";
  const type = typeof value;
  return type.charAt(0).toUpperCase() + type.slice(1);
}
