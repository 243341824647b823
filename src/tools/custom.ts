import { scanTemplate, type Evaluator } from "../expr/template.ts";
import type { Span } from "../model/diagnostic.ts";
import { parseDuration } from "../model/duration.ts";
import { isJsonObject, type Json, type JsonObject, own, parseJson } from "../model/json.ts";
import type { Template } from "../model/plan.ts";
import type { Tool, ToolCall, ToolOutput } from "../model/ports.ts";
import { type Result, err, ok } from "../model/result.ts";
import { runProcess } from "../process/run.ts";
import { answer } from "./answer.ts";
import { keptOutput, outputOf, type Programs, withLine } from "./programs.ts";

const defaultTime = 120_000;
/** Bytes of one argument or variable; Linux takes no more. */
const longestValue = 128 * 1024;

export interface CustomOptions extends Programs {
  readonly evaluator: Evaluator;
  /** Secrets the workflow declares: `env` of a tool may hand them to its program. */
  readonly secrets: JsonObject;
}

/** The `tools:` of a workflow, as its plan has them. Each is a program with arguments; no shell reads what a model wrote. */
export function customTools(tools: Json | undefined, options: CustomOptions): readonly Tool[] {
  if (!isJsonObject(tools)) return [];
  return Object.entries(tools).flatMap(([name, tool]) => (isJsonObject(tool) ? [customTool(name, tool, options)] : []));
}

function customTool(name: string, tool: JsonObject, options: CustomOptions): Tool {
  const parameters = own(tool, "parameters");
  const description = own(tool, "description");
  return {
    name,
    description: typeof description === "string" ? description : name,
    parameters: isJsonObject(parameters) ? parameters : { type: "object" },
    readOnly: false,
    run: (args, call) => run(tool, { args, call, options }),
  };
}

interface Called {
  readonly args: JsonObject;
  readonly call: ToolCall;
  readonly options: CustomOptions;
}

async function run(tool: JsonObject, called: Called): Promise<Result<ToolOutput, string>> {
  const { args, call, options } = called;
  const program = programOf(tool, called);
  if (!program.ok) return program;
  const time = timeOf(tool);
  const timer = AbortSignal.timeout(time);
  const { marks, environment, filter } = options;
  const ran = await runProcess({
    argv: program.value.argv,
    cwd: call.workspace,
    env: { ...environment, PWD: call.workspace, ...program.value.env },
    // The arguments as JSON, for a program that would rather read them than be called with them.
    stdin: JSON.stringify(args),
    marks,
    signal: AbortSignal.any([call.signal, timer]),
    maxBytes: keptOutput,
    ...(filter && { filter }),
    ...(call.launch && { launch: call.launch }),
  });
  switch (ran.kind) {
    case "spawn_failed":
      return err(ran.message);
    case "aborted":
      return err(call.signal.aborted ? "cancelled" : `it was ended after ${time} ms (\`timeout\`)`);
    case "signalled":
      return err(withLine(outputOf(ran), `[ended by ${ran.signal}]`));
    case "exited":
      if (ran.code !== 0) return err(withLine(outputOf(ran), `[exit code ${ran.code}]`));
      return answered(ran.stdout.text.replace(/\n+$/, ""));
    default:
      return ran satisfies never;
  }
}

/** A program that prints one JSON object gives fields. One with a number that would become another gives none, loudly. */
function answered(text: string): Result<ToolOutput, string> {
  const plain = answer(text);
  if (!plain.ok || !text.trimStart().startsWith("{")) return plain;
  const read = parseJson(text);
  if (read.ok) return isJsonObject(read.value) ? ok({ ...plain.value, structured: read.value }) : plain;
  return read.error.isJson ? err(withLine(text, `[it cannot be used as JSON: ${read.error.message}]`)) : plain;
}

interface Program {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

function programOf(tool: JsonObject, called: Called): Result<Program, string> {
  const list = own(tool, "run");
  const variables = own(tool, "env");
  const argv: string[] = [];
  for (const item of Array.isArray(list) ? list : []) {
    const text = textOf(item, called);
    if (!text.ok) return text;
    argv.push(text.value);
  }
  const env: [string, string][] = [];
  for (const [name, item] of Object.entries(isJsonObject(variables) ? variables : {})) {
    const text = textOf(item, called);
    if (!text.ok) return text;
    env.push([name, text.value]);
  }
  return ok({ argv, env: Object.fromEntries(env) });
}

/** A value as the program gets it: text as it is, null as nothing, everything else as JSON. */
function textOf(item: Json, { args, options }: Called): Result<string, string> {
  const template = templateOf(item);
  if (!template.ok) return template;
  const value = options.evaluator.resolve(template.value, { contexts: { inputs: args, secrets: options.secrets } });
  if (!value.ok) return err(value.error.message);
  const text = typeof value.value === "string" ? value.value : value.value === null ? "" : JSON.stringify(value.value);
  if (text.includes("\0")) return err("an argument contains a NUL character");
  if (Buffer.byteLength(text) > longestValue)
    return err("an argument is longer than 128 KiB; the program can read it from stdin");
  return ok(text);
}

const nowhere: Span = { file: "", line: 1, column: 1, endLine: 1, endColumn: 1 };

function templateOf(item: Json): Result<Template, string> {
  if (typeof item !== "string") return ok({ type: "data", json: item });
  const scanned = scanTemplate(item);
  if (!scanned.ok) return err(scanned.error.message);
  const parts = scanned.value.map((part) => ("text" in part ? part.text : { source: part.source, at: nowhere }));
  const [only] = parts;
  if (parts.length === 1 && typeof only === "object") return ok({ type: "expression", ...only });
  return ok({ type: "text", parts });
}

function timeOf(tool: JsonObject): number {
  const text = own(tool, "timeout");
  return (typeof text === "string" ? parseDuration(text) : undefined) ?? defaultTime;
}
