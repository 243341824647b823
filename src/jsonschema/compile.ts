import type { Json, JsonObject } from "../model/json.ts";
import { isJsonObject } from "../model/json.ts";
import { err, messageOf, ok } from "../model/result.ts";
import type { Result } from "../model/result.ts";
import { boundedPatterns, SlowPattern } from "./bounded-pattern.ts";
import { checkUserSchema } from "./check.ts";
import { toIssues } from "./gather.ts";
import type { SchemaIssue } from "./issue.ts";
import { strictOptions } from "./options.ts";
import { formats } from "./user-schema.ts";

/** What in `value` does not fit the schema, empty when it does. Never throws, never runs long on a bad pattern. */
export type SchemaCheck = (value: Json) => readonly SchemaIssue[];

/**
 * Compiles a JSON Schema that a user, an agent file or a server wrote. The error holds the issues of the schema itself.
 * Loads ajv on its first use (some 150 ms); keep the result rather than compiling again.
 */
export async function compileSchema(schema: Json): Promise<Result<SchemaCheck, readonly SchemaIssue[]>> {
  const issues = checkUserSchema(schema);
  if (issues.length > 0) return err(issues);
  // Of a CommonJS package only `default` is there both in Node and in a bundle.
  const [ajvPackage, formatsPackage] = await Promise.all([import("ajv/dist/2020.js"), import("ajv-formats")]);
  const ajv = new ajvPackage.default.Ajv2020({
    ...strictOptions,
    // Our own check has refused unknown keywords and formats; what else `strict` asks is style.
    strict: false,
    verbose: true,
    logger: false,
    validateSchema: false,
    code: { regExp: boundedPatterns(), process: boundErrors },
  });
  formatsPackage.default.default(ajv, [...formats]);
  const root: JsonObject = isJsonObject(schema) ? schema : {};
  try {
    const validate = ajv.compile(isJsonObject(schema) ? schema : schema !== false);
    return ok((value) => check(() => (validate(value) ? [] : toIssues(validate.errors ?? [], value, root))));
  } catch (error) {
    return err([{ path: [], problem: { kind: "value" }, message: `cannot be used: ${messageOf(error)}` }]);
  }
}

/** ajv joins the errors of nested schemas by copying all before them: without a bound 100,000 of them take a minute. */
function boundErrors(code: string): string {
  return code.replace(/\bvErrors\.concat\(([\w.]+)\)/g, "(vErrors.length < 10000 ? vErrors.concat($1) : vErrors)");
}

function check(validate: () => readonly SchemaIssue[]): readonly SchemaIssue[] {
  try {
    return validate();
  } catch (error) {
    const problem = { kind: "value" } as const;
    if (error instanceof SlowPattern) return [{ path: [], problem, message: error.message }];
    // A schema that refers to itself follows the value down: a value can be nested deeper than the stack is.
    if (error instanceof RangeError) return [{ path: [], problem, message: "is nested too deep to be checked" }];
    throw error;
  }
}
