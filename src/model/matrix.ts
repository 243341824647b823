import { isJsonObject, type Json, type JsonObject } from "./json.ts";

/** A `foreach` or `matrix` has at most this many items. */
export const itemLimit = 10_000;

/** The product of the named lists, less what `exclude` matches, plus `include`; cut at one more than {@link itemLimit}. */
export function expandMatrix(matrix: JsonObject): Json[] {
  const { include, exclude, ...axes } = matrix;
  let product: JsonObject[] = Object.keys(axes).length === 0 ? [] : [{}];
  for (const [name, values] of Object.entries(axes)) {
    if (!Array.isArray(values)) continue;
    if (product.length * values.length > itemLimit) return Array.from({ length: itemLimit + 1 }, () => null);
    product = product.flatMap((partial) => values.map((value) => ({ ...partial, [name]: value })));
  }
  const excluded = Array.isArray(exclude) ? exclude.filter(isJsonObject) : [];
  const kept = product.filter((item) => !excluded.some((pattern) => matches(item, pattern)));
  return [...kept, ...(Array.isArray(include) ? include : [])];
}

function matches(item: JsonObject, pattern: JsonObject): boolean {
  return Object.entries(pattern).every(([name, value]) => JSON.stringify(item[name]) === JSON.stringify(value));
}
