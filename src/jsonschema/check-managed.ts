import type { Json } from "../model/json.ts";
import { toIssues } from "./gather.ts";
import { errorsOf, schema } from "./generated/managed.js";
import type { SchemaIssue } from "./issue.ts";

/** What does not fit `schemas/managed.schema.json`. */
export function checkManaged(value: Json): readonly SchemaIssue[] {
  return toIssues(errorsOf(value), value, schema);
}
