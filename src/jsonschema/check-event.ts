import type { Json } from "../model/json.ts";
import { errorsOf, schema } from "./generated/event.js";
import { toIssues } from "./gather.ts";
import type { SchemaIssue } from "./issue.ts";

/** What does not fit `schemas/event.schema.json`: one line of a run's log. */
export function checkEvent(value: Json): readonly SchemaIssue[] {
  return toIssues(errorsOf(value), value, schema);
}
