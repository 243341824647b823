import { isJsonObject, type Json, type JsonObject, own } from "../model/json.ts";
import { checkUserSchema } from "./check.ts";
import { depthIssue, formats, listsOfSchemas, mapsOfSchemas, plainKeywords, singleSchemas } from "./user-schema.ts";

/**
 * A schema that another program gave, of whatever draft, as one of ours: what older drafts say in other words is
 * translated, and what means nothing here is left out, which only widens it. Undefined when it is none even then.
 */
export function fromForeignSchema(schema: Json): JsonObject | undefined {
  if (!isJsonObject(schema) || depthIssue(schema)) return undefined;
  const cleaned = clean(schema);
  return isJsonObject(cleaned) && checkUserSchema(cleaned).length === 0 ? cleaned : undefined;
}

const plain = new Set(plainKeywords.filter((keyword) => keyword !== "$schema"));
const knownFormats: ReadonlySet<string> = new Set(formats);

function clean(schema: Json): Json {
  if (!isJsonObject(schema)) return schema;
  const entries = Object.entries(modern(schema)).flatMap(([key, value]): [string, Json][] => {
    if (key === "format") return typeof value === "string" && knownFormats.has(value) ? [[key, value]] : [];
    if (plain.has(key)) return [[key, value]];
    if (mapsOfSchemas.includes(key) && isJsonObject(value))
      return [[key, Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, clean(inner)]))]];
    if (listsOfSchemas.includes(key) && Array.isArray(value)) return [[key, value.map(clean)]];
    return singleSchemas.includes(key) ? [[key, clean(value)]] : [];
  });
  return Object.fromEntries(entries);
}

/** Lists of items, and dependencies, as the draft of 2020 writes them. */
function modern(schema: JsonObject): JsonObject {
  const { items, additionalItems, dependencies, ...rest } = schema;
  const result: JsonObject = { ...rest };
  if (Array.isArray(items)) {
    result["prefixItems"] = items;
    if (additionalItems !== undefined) result["items"] = additionalItems;
  } else if (items !== undefined) result["items"] = items;
  if (!isJsonObject(dependencies)) return result;
  const named = Object.entries(dependencies);
  const lists = named.filter(([, value]) => Array.isArray(value));
  const schemas = named.filter(([, value]) => !Array.isArray(value));
  if (lists.length > 0)
    result["dependentRequired"] = { ...objectAt(schema, "dependentRequired"), ...Object.fromEntries(lists) };
  if (schemas.length > 0)
    result["dependentSchemas"] = { ...objectAt(schema, "dependentSchemas"), ...Object.fromEntries(schemas) };
  return result;
}

function objectAt(schema: JsonObject, key: string): JsonObject {
  const value = own(schema, key);
  return isJsonObject(value) ? value : {};
}
