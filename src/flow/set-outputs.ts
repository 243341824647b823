import { compileSchema } from "../jsonschema/compile.ts";
import type { LogLine, SetOutput } from "../model/event.ts";
import { isJsonObject, type Json, type JsonObject, own, parseJson } from "../model/json.ts";
import { nearest } from "../model/names.ts";
import type { Plan, Step } from "../model/plan.ts";
import { err, ok, type Result } from "../model/result.ts";
import { resolveLine } from "../runlog/blobs.ts";
import { readLog } from "../runlog/read.ts";

/** What `--set` says, as it was typed: `PATH.output=value`. */
export interface WrittenSet {
  readonly step: string;
  readonly output: string;
  readonly text: string;
}

/** The error says how it is written. */
export function parseSet(text: string): Result<WrittenSet, string> {
  const [, step, output, value] = /^([^=]+)\.([A-Za-z_][A-Za-z0-9_-]*)=([\s\S]*)$/.exec(text) ?? [];
  if (step === undefined || output === undefined || value === undefined)
    return err(
      `\`--set ${text.slice(0, 60)}\` is not of the form PATH.output=value, as in \`--set plan.topics='["a"]'\``,
    );
  return ok({ step, output, text: value });
}

/** The value for an output of a step that succeeded, fitted to what the step declares; `outputs` are those it had. */
export async function fitSet(plan: Plan, written: WrittenSet, outputs: Json): Promise<Result<SetOutput, string>> {
  const { step, output, text } = written;
  const declared = declaredOutput(stepAt(plan, step), output);
  const names = isJsonObject(outputs) ? Object.keys(outputs) : [];
  if (!names.includes(output) && declared === undefined) {
    const near = nearest(output, names);
    const known =
      names.length === 0
        ? "it has none"
        : near === undefined
          ? `it has ${names.join(", ")}`
          : `did you mean \`${near}\`?`;
    return err(`\`${step}\` has no output \`${output}\`; ${known}`);
  }
  const problems: string[] = [];
  const values = valuesOf(text);
  if (!values.ok) return err(`the value for \`${step}.${output}\` cannot be kept as it is: ${values.error}`);
  for (const value of values.value) {
    const found = declared === undefined ? [] : await misfits(declared, output, value);
    if (found.length === 0) return ok({ step, output, value });
    problems.push(...found);
  }
  return err(
    `the value for \`${step}.${output}\` does not fit what the step declares: ${[...new Set(problems)].join("; ")}`,
  );
}

/** The last outputs of these steps, items or iterations, by their path. */
export async function lastOutputs(
  folder: string,
  paths: ReadonlySet<string>,
): Promise<Result<ReadonlyMap<string, Json>, string>> {
  const found = new Map<string, Json>();
  for await (const record of readLog(folder)) {
    if (record.kind !== "line" || record.line.type !== "step.finished" || !paths.has(record.line.step)) continue;
    const resolved = await resolveLine(folder, record.line);
    if (!resolved.ok) return err(resolved.error.message);
    const line: LogLine = resolved.value;
    if (line.type === "step.finished") found.set(line.step, line.outputs ?? {});
  }
  return ok(found);
}

/** JSON where it is JSON; every text is also a text. */
function valuesOf(text: string): Result<Json[], string> {
  const read = parseJson(text);
  if (!read.ok) return read.error.isJson ? err(read.error.message) : ok([text]);
  return ok(typeof read.value === "string" ? [read.value] : [read.value, text]);
}

/** The schema of a result that is the step's outputs, if it declares that one. */
function declaredOutput(step: Step | undefined, output: string): JsonObject | undefined {
  if (step === undefined || step.outputs !== undefined || !("output" in step.body)) return undefined;
  const schema = step.body.output?.json;
  const properties = isJsonObject(schema) ? own(schema, "properties") : undefined;
  return isJsonObject(schema) && isJsonObject(properties) && own(properties, output) !== undefined ? schema : undefined;
}

async function misfits(schema: JsonObject, output: string, value: Json): Promise<string[]> {
  const { required: _, ...rest } = schema;
  const check = await compileSchema(rest);
  if (!check.ok) return check.error.map(({ message }) => message);
  return check.value({ [output]: value }).map(({ path, message }) => `\`${path.join(".")}\` ${message}`);
}

/** The step a path names, its items and iterations left aside. */
export function stepAt(plan: Plan, path: string): Step | undefined {
  let scope = plan.workflows[plan.root]?.scope;
  let step: Step | undefined;
  for (const part of path.split("/")) {
    const id = part.replace(/[[#].*$/, "");
    step = scope?.steps.find((candidate) => candidate.id === id);
    const inner = step?.scope;
    scope = inner === undefined ? undefined : "inline" in inner ? inner.inline : plan.workflows[inner.workflow]?.scope;
  }
  return step;
}
