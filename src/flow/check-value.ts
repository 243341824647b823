import { compileSchema } from "../jsonschema/compile.ts";
import type { SchemaIssue } from "../jsonschema/issue.ts";
import { isJsonObject, type Json, own } from "../model/json.ts";
import { nearest } from "../model/names.ts";

/** What does not fit a schema that a user or a server wrote, one phrase each; the schema's own problems where it is none. */
export async function checkValue(schema: Json, value: Json): Promise<readonly string[]> {
  const check = await compileSchema(schema);
  if (!check.ok) return check.error.map((issue) => issue.message);
  return check.value(value).map((issue) => phrase(issue, { schema, value }));
}

function phrase(
  { path, message, problem }: SchemaIssue,
  { schema, value }: { readonly schema: Json; readonly value: Json },
): string {
  const isOfKey = problem.kind === "missing_key" || problem.kind === "unknown_key";
  if (path.length > 0) return `\`${path.join(".")}\`${isOfKey ? ":" : ""} ${message}`;
  if (!isOfKey) return `it ${message}`;
  const meant = problem.kind === "missing_key" ? writtenFor(problem.key, { schema, value }) : undefined;
  return meant === undefined ? message : `${message}; is \`${meant}\` meant for it?`;
}

/** The key that somebody probably wrote instead: much like it, and none that the schema knows. */
function writtenFor(
  key: string,
  { schema, value }: { readonly schema: Json; readonly value: Json },
): string | undefined {
  const properties = isJsonObject(schema) ? own(schema, "properties") : undefined;
  const known = new Set(isJsonObject(properties) ? Object.keys(properties) : []);
  const others = isJsonObject(value) ? Object.keys(value).filter((name) => !known.has(name)) : [];
  return key.length < 3 ? undefined : nearest(key, others);
}
