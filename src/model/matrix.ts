import { isJsonObject, type Json, type JsonObject } from "./json.ts";

/** A `foreach` or `matrix` has at most this many items. */
export const itemLimit = 10_000;

/** What keeps a matrix from being expanded, for one whose lists were given by expressions. */
export function matrixProblem(matrix: JsonObject): string | undefined {
  for (const [name, values] of Object.entries(matrix)) {
    const shown = `\`matrix.${name}\``;
    if (!Array.isArray(values)) return `${shown} needs a list, and this is ${JSON.stringify(values).slice(0, 80)}`;
    const isAxis = name !== "include" && name !== "exclude";
    const odd = isAxis ? undefined : values.find((value) => !isJsonObject(value));
    if (odd !== undefined) return `${shown} needs mappings, and one entry is ${JSON.stringify(odd).slice(0, 80)}`;
  }
  return undefined;
}

/**
 * The product of the named lists, less what `exclude` matches. What `include` names is added to each combination that
 * it agrees with, and is a combination of its own if there is none. Cut at one more than {@link itemLimit}.
 */
export function expandMatrix(matrix: JsonObject): Json[] {
  const { include, exclude, ...axes } = matrix;
  let product: JsonObject[] = Object.keys(axes).length === 0 ? [] : [{}];
  for (const [name, values] of Object.entries(axes)) {
    if (!Array.isArray(values)) continue;
    if (product.length * values.length > itemLimit) return Array.from({ length: itemLimit + 1 }, () => null);
    product = product.flatMap((partial) => values.map((value) => ({ ...partial, [name]: value })));
  }
  const excluded = mappings(exclude);
  return extend(
    product.filter((item) => !excluded.some((pattern) => matches(item, pattern))),
    mappings(include),
  );
}

/** An added value may be replaced by a later `include`, one of the matrix itself never. */
function extend(product: readonly JsonObject[], include: readonly JsonObject[]): JsonObject[] {
  const extended = [...product];
  const added: JsonObject[] = [];
  for (const extra of include) {
    const agreeing = product.flatMap((item, index) => (agrees(item, extra) ? [index] : []));
    for (const index of agreeing) extended[index] = { ...extended[index], ...extra };
    if (agreeing.length === 0) added.push(extra);
  }
  return [...extended, ...added];
}

function mappings(value: Json | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

function agrees(item: JsonObject, extra: JsonObject): boolean {
  return Object.entries(extra).every(([name, value]) => !Object.hasOwn(item, name) || isSame(item[name], value));
}

function matches(item: JsonObject, pattern: JsonObject): boolean {
  return Object.entries(pattern).every(([name, value]) => Object.hasOwn(item, name) && isSame(item[name], value));
}

function isSame(a: Json | undefined, b: Json): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
