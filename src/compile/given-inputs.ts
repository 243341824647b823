import { compileSchema } from "../jsonschema/compile.ts";
import { fitsPlainly } from "../jsonschema/fits-plainly.ts";
import { fromText } from "../jsonschema/from-text.ts";
import type { Diagnostic, Span } from "../model/diagnostic.ts";
import type { Json, JsonObject } from "../model/json.ts";
import { nearest } from "../model/names.ts";
import type { Input } from "../model/plan.ts";
import { err, ok, type Result } from "../model/result.ts";
import { createReport, didYouMean, oneOf, type Report } from "./report.ts";

/** What somebody gave to a run: texts from the command line, which take the declared type, and values that have one. */
export interface Given {
  readonly texts: readonly { readonly name: string; readonly text: string }[];
  readonly values: JsonObject;
}

/**
 * The values of a workflow's inputs with defaults filled in; or everything that is missing, unknown or wrong. What was not
 * declared is told at `at`.
 */
export async function readGivenInputs(
  inputs: readonly Input[],
  given: Given,
  at: Span,
): Promise<Result<JsonObject, readonly Diagnostic[]>> {
  const { report, sorted } = createReport();
  const found = new Map<string, Json>();
  for (const [name, value] of Object.entries(given.values)) {
    const input = declared(inputs, name, at, report);
    if (input) found.set(input.name, value);
  }
  const typed = new Set<string>();
  for (const { name, text } of given.texts) {
    const input = declared(inputs, name, at, report);
    if (!input) continue;
    if (typed.has(input.name))
      report("FLOW7003", input.at, `input \`${input.name}\` was given twice`, { suggestion: "give it once" });
    typed.add(input.name);
    const value = fromText(text, input.schema.json);
    if (value.ok) found.set(input.name, value.value);
    else report("FLOW7003", input.at, `input \`${input.name}\` ${value.error}`);
  }
  for (const input of inputs) {
    const value = found.get(input.name);
    if (value !== undefined) await checkValue(input, value, report);
    else if (input.default) found.set(input.name, input.default.json);
    else if (!typed.has(input.name))
      report("FLOW7001", input.at, `input \`${input.name}\` is required and was not given`, {
        suggestion: `add \`--input ${input.name}=…\``,
      });
  }
  const problems = sorted();
  return problems.length > 0
    ? err(problems)
    : ok(Object.fromEntries(inputs.map((input) => [input.name, found.get(input.name) ?? null])));
}

function declared(inputs: readonly Input[], name: string, at: Span, report: Report): Input | undefined {
  const input =
    inputs.find((it) => it.name === name) ?? inputs.find((it) => it.name.toLowerCase() === name.toLowerCase());
  if (input) return input;
  const names = inputs.map((it) => it.name);
  const near = nearest(name, names);
  const known = names.length === 0 ? "this workflow takes no inputs" : `it takes ${oneOf(names)}`;
  report(
    "FLOW7002",
    at,
    `there is no input ${JSON.stringify(name)}`,
    near === undefined ? { suggestion: known } : didYouMean(near),
  );
  return undefined;
}

async function checkValue(input: Input, value: Json, report: Report): Promise<void> {
  if (fitsPlainly(input.schema.json, value)) return;
  const check = await compileSchema(input.schema.json);
  for (const issue of check.ok ? check.value(value) : []) {
    const where = issue.path.length === 0 ? "" : ` at \`${issue.path.join(".")}\``;
    report("FLOW7003", input.at, `input \`${input.name}\`${where} ${issue.message}`);
  }
}
