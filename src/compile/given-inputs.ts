import { compileSchema } from "../jsonschema/compile.ts";
import { fitsPlainly } from "../jsonschema/fits-plainly.ts";
import type { Diagnostic, Span } from "../model/diagnostic.ts";
import { isJsonObject, type Json, type JsonObject } from "../model/json.ts";
import { nearest } from "../model/names.ts";
import type { Input } from "../model/plan.ts";
import { err, ok, type Result } from "../model/result.ts";
import { createReport, didYouMean, oneOf, type Report } from "./report.ts";

/** What somebody gave to a run: texts from the command line, which take the declared type, and values that have one. */
export interface Given {
  readonly texts: readonly { readonly name: string; readonly text: string }[];
  readonly values: JsonObject;
}

/** The values of a workflow's inputs with defaults filled in; or everything that is missing, unknown or wrong. */
export async function readGivenInputs(
  inputs: readonly Input[],
  given: Given,
  file: string,
): Promise<Result<JsonObject, readonly Diagnostic[]>> {
  const { report, sorted } = createReport();
  const start: Span = { file, line: 1, column: 1, endLine: 1, endColumn: 2 };
  const found = new Map<string, Json>();
  for (const [name, value] of Object.entries(given.values)) {
    const input = declared(inputs, name, start, report);
    if (input) found.set(input.name, value);
  }
  const typed = new Set<string>();
  for (const { name, text } of given.texts) {
    const input = declared(inputs, name, start, report);
    if (!input) continue;
    if (typed.has(input.name))
      report("FLOW7003", input.at, `input \`${input.name}\` was given twice`, { suggestion: "give it once" });
    typed.add(input.name);
    const value = coerce(text, input.schema.json);
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

function declared(inputs: readonly Input[], name: string, start: Span, report: Report): Input | undefined {
  const input =
    inputs.find((it) => it.name === name) ?? inputs.find((it) => it.name.toLowerCase() === name.toLowerCase());
  if (input) return input;
  const names = inputs.map((it) => it.name);
  const near = nearest(name, names);
  const known = names.length === 0 ? "this workflow takes no inputs" : `it takes ${oneOf(names)}`;
  report(
    "FLOW7002",
    start,
    `there is no input ${JSON.stringify(name)}`,
    near === undefined ? { suggestion: known } : didYouMean(near),
  );
  return undefined;
}

/** A text as the type its schema declares; texts stay texts unless a number, a boolean or JSON is asked for. */
function coerce(text: string, schema: Json): Result<Json, string> {
  const type = isJsonObject(schema) ? schema["type"] : undefined;
  const types = (Array.isArray(type) ? type : [type]).filter((it) => it !== undefined);
  if (types.length === 0 || types.includes("string")) return ok(text);
  const reasons: string[] = [];
  for (const wanted of types) {
    const value = coerceTo(text, typeof wanted === "string" ? wanted : "");
    if (value.ok) return value;
    reasons.push(value.error);
  }
  return err(`${reasons.join(" or ")}; given was ${JSON.stringify(text.slice(0, 60))}`);
}

function coerceTo(text: string, type: string): Result<Json, string> {
  switch (type) {
    case "number":
    case "integer": {
      const number = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text.trim()) ? Number(text) : Number.NaN;
      return Number.isFinite(number)
        ? ok(number)
        : err(type === "integer" ? "must be a whole number" : "must be a number");
    }
    case "boolean":
      return text === "true" || text === "false" ? ok(text === "true") : err("must be `true` or `false`");
    case "null":
      return text === "null" ? ok(null) : err("must be `null`");
    default: {
      const value = parseJson(text);
      const fits = type === "array" ? Array.isArray(value) : isJsonObject(value);
      return fits && value !== undefined
        ? ok(value)
        : err(`must be a JSON ${type}, such as ${type === "array" ? "'[1, 2]'" : `'{"a": 1}'`}`);
    }
  }
}

function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

async function checkValue(input: Input, value: Json, report: Report): Promise<void> {
  if (fitsPlainly(input.schema.json, value)) return;
  const check = await compileSchema(input.schema.json);
  for (const issue of check.ok ? check.value(value) : []) {
    const where = issue.path.length === 0 ? "" : ` at \`${issue.path.join(".")}\``;
    report("FLOW7003", input.at, `input \`${input.name}\`${where} ${issue.message}`);
  }
}
