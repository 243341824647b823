import { isJsonObject, own } from "../model/json.ts";
import type { Json, JsonObject } from "../model/json.ts";
import { mostIssues } from "./issue.ts";
import type { Problem, SchemaIssue } from "./issue.ts";
import { resolvePointer } from "./pointer.ts";

/** ajv's compiler overflows the stack at 500 levels. */
const mostLevels = 64;

/** The formats that are checked; ajv would take any other in silence. */
export const formats = [
  "date",
  "time",
  "date-time",
  "duration",
  "uri",
  "uri-reference",
  "uri-template",
  "email",
  "hostname",
  "ipv4",
  "ipv6",
  "regex",
  "uuid",
  "json-pointer",
  "relative-json-pointer",
] as const;

export const mapsOfSchemas: readonly string[] = [
  "properties",
  "patternProperties",
  "dependentSchemas",
  "$defs",
  "definitions",
];
export const listsOfSchemas: readonly string[] = ["allOf", "anyOf", "oneOf", "prefixItems"];
export const singleSchemas: readonly string[] = [
  "items",
  "contains",
  "additionalProperties",
  "unevaluatedProperties",
  "unevaluatedItems",
  "propertyNames",
  "not",
  "if",
  "then",
  "else",
];
export const plainKeywords: readonly string[] = [
  ..."type enum const default description title examples format pattern required dependentRequired".split(" "),
  ..."minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength uniqueItems".split(" "),
  ..."minItems maxItems minContains maxContains minProperties maxProperties deprecated readOnly writeOnly".split(" "),
  ..."$ref $schema $comment contentEncoding contentMediaType contentSchema".split(" "),
];
const keywords = [...plainKeywords, ...mapsOfSchemas, ...listsOfSchemas, ...singleSchemas];
const known: ReadonlySet<string> = new Set(keywords);
/** They give a schema an address, or let another schema reach into it: a schema here stands alone. */
const addresses = new Set(
  "$id $anchor $dynamicRef $dynamicAnchor $recursiveRef $recursiveAnchor $vocabulary".split(" "),
);

/** The issue of a schema that is nested deeper than 64 levels; found without recursion. */
export function depthIssue(schema: Json): SchemaIssue | undefined {
  let level: Json[] = [schema];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > mostLevels) return issue([], `must not be nested deeper than ${mostLevels} levels`);
    level = level.flatMap((value) => (typeof value === "object" && value !== null ? Object.values(value) : []));
  }
  return undefined;
}

/** What the meta-schema does not say, for a schema that it accepts and that is not too deep. */
export function ownRules(schema: Json): readonly SchemaIssue[] {
  const issues: SchemaIssue[] = [];
  visit(schema, [], (part, path) => {
    for (const one of issuesOf(part, path, schema)) if (issues.length < mostIssues) issues.push(one);
  });
  return issues;
}

function visit(
  schema: Json,
  path: readonly (string | number)[],
  look: (part: JsonObject, path: readonly (string | number)[]) => void,
): void {
  if (!isJsonObject(schema)) return;
  look(schema, path);
  for (const [keyword, value] of Object.entries(schema)) {
    const inner = [...path, keyword];
    if (singleSchemas.includes(keyword)) visit(value, inner, look);
    else if (listsOfSchemas.includes(keyword) && Array.isArray(value))
      value.forEach((one, index) => visit(one, [...inner, index], look));
    else if (mapsOfSchemas.includes(keyword) && isJsonObject(value))
      for (const [name, one] of Object.entries(value)) visit(one, [...inner, name], look);
  }
}

function issuesOf(part: JsonObject, path: readonly (string | number)[], root: Json): readonly SchemaIssue[] {
  const { format, pattern, $ref, $schema } = part;
  const names = own(part, "patternProperties");
  const allowed = own(part, "enum");
  return [
    ...Object.keys(part).flatMap((key) => keywordIssues(key, path)),
    ...(typeof $ref === "string" ? referenceIssues($ref, [...path, "$ref"], root) : []),
    ...(typeof $schema === "string" ? draftIssues($schema, [...path, "$schema"]) : []),
    ...(typeof format === "string" ? formatIssues(format, [...path, "format"]) : []),
    ...(typeof pattern === "string" ? patternIssues(pattern, [...path, "pattern"]) : []),
    ...(isJsonObject(names) ? Object.keys(names) : []).flatMap((name) =>
      patternIssues(name, [...path, "patternProperties", name]),
    ),
    ...(Array.isArray(allowed) && allowed.length === 0 ? [issue([...path, "enum"], "must not be empty")] : []),
  ];
}

function keywordIssues(key: string, path: readonly (string | number)[]): readonly SchemaIssue[] {
  if (known.has(key)) return [];
  const alone = 'a schema stands alone here; use `$defs` and `$ref: "#/$defs/NAME"`';
  if (addresses.has(key)) return [unknown(path, key, `\`${key}\` cannot be used: ${alone}`)];
  return [unknown(path, key, `unknown keyword \`${key.slice(0, 60)}\``, keywords)];
}

function draftIssues(draft: string, path: readonly (string | number)[]): readonly SchemaIssue[] {
  if (/^https:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/.test(draft)) return [];
  return [issue(path, "must be draft 2020-12 (https://json-schema.org/draft/2020-12/schema)")];
}

function formatIssues(format: string, path: readonly (string | number)[]): readonly SchemaIssue[] {
  if ((formats as readonly string[]).includes(format)) return [];
  return [
    issue(path, `must be a known format: ${formats.join(", ")}`, { kind: "enum", allowed: formats, given: format }),
  ];
}

function referenceIssues(target: string, path: readonly (string | number)[], root: Json): readonly SchemaIssue[] {
  if (!target.startsWith("#"))
    return [issue(path, "must point into this schema, as in `#/$defs/NAME`: other files and addresses are never read")];
  const seen = new Set<Json>();
  let found = resolvePointer(root, target);
  while (isJsonObject(found) && !seen.has(found)) {
    seen.add(found);
    const next = own(found, "$ref");
    if (typeof next !== "string") return [];
    found = resolvePointer(root, next);
  }
  if (typeof found === "boolean") return [];
  if (found !== undefined && seen.has(found)) return [issue(path, "leads back to itself and describes nothing")];
  return [issue(path, `points to nothing: there is no schema at \`${target.slice(0, 60)}\``)];
}

function patternIssues(pattern: string, path: readonly (string | number)[]): readonly SchemaIssue[] {
  try {
    void new RegExp(pattern, "u");
    return [];
  } catch (error) {
    const reason = error instanceof SyntaxError ? error.message.replace(/^.*: /s, "") : "invalid";
    return [issue(path, `must be a regular expression: ${reason}`)];
  }
}

function unknown(
  path: readonly (string | number)[],
  key: string,
  message: string,
  allowed: readonly string[] = [],
): SchemaIssue {
  return issue(path, message, { kind: "unknown_key", key, allowed });
}

function issue(path: readonly (string | number)[], message: string, problem: Problem = { kind: "value" }): SchemaIssue {
  return { path, problem, message };
}
