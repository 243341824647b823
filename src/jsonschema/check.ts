import type { Json } from "../model/json.ts";
import { errorsOf as agentErrors, schema as agentSchema } from "./generated/agent.js";
import { errorsOf as metaErrors, schema as metaSchema } from "./generated/meta.js";
import { errorsOf as workflowErrors, schema as workflowSchema } from "./generated/workflow.js";
import { toIssues } from "./gather.ts";
import type { SchemaIssue } from "./issue.ts";
import { depthIssue, ownRules } from "./user-schema.ts";

export type { SchemaIssue } from "./issue.ts";

/** What does not fit `schemas/workflow.schema.json`, at most 1,000 issues; user schemas inside are not looked into. */
export function checkWorkflow(value: Json): readonly SchemaIssue[] {
  return toIssues(workflowErrors(value), value, workflowSchema);
}

/** What does not fit `schemas/agent.schema.json`. */
export function checkAgent(value: Json): readonly SchemaIssue[] {
  return toIssues(agentErrors(value), value, agentSchema);
}

/**
 * What is wrong with a JSON Schema that a user wrote: draft 2020-12, at most 64 levels, standing alone (`$ref` only to
 * its own `#/…`, never fetched), only keywords, formats and patterns that exist. A schema without issues compiles.
 */
export function checkUserSchema(schema: Json): readonly SchemaIssue[] {
  const deep = depthIssue(schema);
  if (deep !== undefined) return [deep];
  const issues = toIssues(metaErrors(schema), schema, metaSchema);
  return issues.length > 0 ? issues : ownRules(schema);
}
