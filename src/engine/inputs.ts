import { propertyOf } from "../expr/value.ts";
import type { SchemaCheck } from "../jsonschema/compile.ts";
import { compileSchema } from "../jsonschema/compile.ts";
import { fitsPlainly } from "../jsonschema/fits-plainly.ts";
import type { Json, JsonObject } from "../model/json.ts";
import type { Failure } from "../model/outcome.ts";
import type { Data, Input, Workflow } from "../model/plan.ts";
import type { Result } from "../model/result.ts";
import { err, ok } from "../model/result.ts";

/** The values of a workflow's inputs by their declared names, defaults filled in; or why they cannot be used. */
export function fillInputs(workflow: Workflow, given: JsonObject): Result<JsonObject, Failure> {
  const inputs: [string, Json][] = [];
  for (const { name, default: preset, at } of workflow.inputs) {
    // Only JSON is given: nothing in it is looked up later.
    const value = (propertyOf(given, name) as Json | undefined) ?? preset?.json;
    if (value === undefined) {
      const message = `\`${workflow.name}\` needs the input \`${name}\`, which was not given`;
      return err({ kind: "input", message, position: at });
    }
    inputs.push([name, value]);
  }
  return ok(Object.fromEntries(inputs));
}

/** What is wrong with the values of a workflow's inputs by their schemas. */
export type CheckInputs = (workflow: Workflow, inputs: JsonObject) => Promise<Failure | undefined>;

/** Compiles each schema once: a sub-workflow in a loop is called thousands of times. */
export function createInputCheck(): CheckInputs {
  const compiled = new WeakMap<Data, ReturnType<typeof compileSchema>>();
  const issuesOf = async ({ schema }: Input, value: Json): Promise<ReturnType<SchemaCheck>> => {
    if (fitsPlainly(schema.json, value)) return [];
    const compiling = compiled.get(schema) ?? compileSchema(schema.json);
    compiled.set(schema, compiling);
    const check = await compiling;
    return check.ok ? check.value(value) : check.error;
  };
  return async (workflow, inputs) => {
    for (const input of workflow.inputs) {
      const [issue] = await issuesOf(input, inputs[input.name] ?? null);
      if (issue === undefined) continue;
      const where = issue.path.length === 0 ? "" : ` at \`${issue.path.join(".")}\``;
      const message = `the input \`${input.name}\` of \`${workflow.name}\`${where} ${issue.message}`;
      return { kind: "input", message, position: input.at };
    }
    return undefined;
  };
}
