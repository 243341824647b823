import { isJsonObject } from "../model/json.ts";
import type { Json, JsonObject } from "../model/json.ts";

/** What a context may hold: JSON as it is, never copied, or an object whose properties are fetched when touched. */
export type Value = Json | Lookup;

const lookupMark: unique symbol = Symbol("lookup");
const missingMark: unique symbol = Symbol("missing");

/** A lazy object. The mark is a symbol, so no JSON of a user can pass for one. */
export interface Lookup extends LookupSource {
  readonly [lookupMark]: true;
}
export interface LookupSource {
  /** `undefined`: there is no such name (null in the language). Called with the name as written, then as in `names`. */
  get(name: string): Value | Missing | undefined;
  /** Asked for only when `get` knows no such name, or when the whole object is needed. */
  names(): readonly string[];
}

/** Stands where a value should be and is not. Reading it is an error, except inside `default(…)`. */
export interface Missing {
  readonly [missingMark]: true;
  readonly reason: string;
}

export function lookup(source: LookupSource): Lookup {
  return { [lookupMark]: true, get: (name) => source.get(name), names: () => source.names() };
}

/** `reason` becomes the message of the error: it should name what is missing and why. */
export function missing(reason: string): Missing {
  return { [missingMark]: true, reason };
}

export function isLookup(value: unknown): value is Lookup {
  return typeof value === "object" && value !== null && lookupMark in value;
}

export function isMissing(value: Value | Missing | undefined): value is Missing {
  return typeof value === "object" && value !== null && missingMark in value;
}

/** The result of `.*`: an access on it is an access on each of its items that has such a property. */
export class Filtered {
  readonly items: readonly Value[];

  constructor(items: readonly Value[]) {
    this.items = items;
  }
}

/** Any value while an expression is evaluated. */
export type Item = Value | Filtered;

export type Kind = "null" | "boolean" | "number" | "string" | "array" | "object";

export function kindOf(item: Item): Kind {
  if (item === null) return "null";
  if (typeof item === "object") return Array.isArray(item) || item instanceof Filtered ? "array" : "object";
  return typeof item as Kind;
}

/** Plain JSON of an item. JSON is returned as it is; a lazy object is read whole, without what is missing in it. */
export function toJson(item: Item): Json {
  if (item instanceof Filtered) return item.items.map(toJson);
  if (!isLookup(item)) return item;
  return Object.fromEntries(entriesOf(item).map(([name, value]) => [name, toJson(value)]));
}

export function entriesOf(source: Lookup): (readonly [string, Value])[] {
  const entries: (readonly [string, Value])[] = [];
  for (const name of source.names()) {
    const value = source.get(name);
    if (value !== undefined && !isMissing(value)) entries.push([name, value]);
  }
  return entries;
}

/** A property by the language's rule: the name as written, else the first that is equal ignoring case. */
export function propertyOf(object: JsonObject | Lookup, name: string): Value | Missing | undefined {
  if (isLookup(object)) {
    const value = object.get(name);
    if (value !== undefined) return value;
    const other = ignoringCase(object.names(), name);
    return other === undefined ? undefined : object.get(other);
  }
  if (Object.hasOwn(object, name)) return object[name];
  const other = ignoringCase(Object.keys(object), name);
  return other === undefined ? undefined : object[other];
}

function ignoringCase(names: readonly string[], name: string): string | undefined {
  const lower = name.toLowerCase();
  return names.find((candidate) => candidate.toLowerCase() === lower);
}

export function isTruthy(item: Item): boolean {
  return typeof item === "object" ? item !== null : Boolean(item);
}

/** As GitHub turns a value into text: null is empty, lists and objects are only named. */
export function toText(item: Item): string {
  if (item === null) return "";
  if (typeof item === "object") return kindOf(item) === "array" ? "Array" : "Object";
  return typeof item === "number" ? numberText(item) : String(item);
}

/** At most 15 decimals, as GitHub prints them; what that would round to 0 is printed in full. */
function numberText(value: number): string {
  return String(Number(value.toFixed(15)) || value);
}

export function toNumber(item: Item): number {
  return typeof item === "object" && item !== null ? Number.NaN : Number(item);
}

/** `==`: text ignoring case, objects and arrays by identity, different kinds as numbers. */
export function isEqual(left: Item, right: Item): boolean {
  const kind = kindOf(left);
  if (kind !== kindOf(right)) return toNumber(left) === toNumber(right);
  if (typeof left === "string" && typeof right === "string") return left === right || upper(left) === upper(right);
  return left === right;
}

/** `>`. There is no order between arrays or objects. */
export function isGreater(left: Item, right: Item): boolean {
  if (typeof left === "string" && typeof right === "string") return upper(left) > upper(right);
  if (left === null && right === null) return false;
  return toNumber(left) > toNumber(right);
}

/** Upper case for comparing; the dotless `ı` stays, or it would equal `i`. */
export function upper(text: string): string {
  return text.includes("ı") ? text.split("ı").map(plainUpper).join("ı") : text.toUpperCase();
}

function plainUpper(text: string): string {
  return text.toUpperCase();
}

export function isObject(item: Item): item is JsonObject | Lookup {
  return isLookup(item) || (isJsonObject(item) && !(item instanceof Filtered));
}
