import type { Json } from "../model/json.ts";
import { toIssues } from "./gather.ts";
import { errorsOf, schema } from "./generated/config.js";
import type { SchemaIssue } from "./issue.ts";

/** What does not fit `schemas/config.schema.json`. */
export function checkConfig(value: Json): readonly SchemaIssue[] {
  return toIssues(errorsOf(value), value, schema);
}
