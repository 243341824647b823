import { isAbsolute, relative, resolve } from "node:path";
import { isJsonObject, type Json, type JsonObject, own } from "../model/json.ts";
import { err, ok, type Result } from "../model/result.ts";
import { markPrefix } from "../process/marks.ts";

/** The resolved `inputs` of a `run` step, in the shape a process takes. */
export interface RunInputs {
  readonly env: Readonly<Record<string, string>>;
  /** Empty when the step is a script. */
  readonly argv: readonly string[];
  /** Absolute. */
  readonly cwd: string;
  readonly stdin?: string;
}

/** The kernel's limit for one argument, or for `NAME=value`, with the NUL that ends it. */
const maxArgument = 128 * 1024;

/** Names flow gives to every step; an `env` of the step's own cannot take them. */
const givenNames = new Set(["FLOW_OUTPUT", "FLOW_RUN_ID", "FLOW_STEP"]);

/** Where a process runs. */
export interface Base {
  /** The folder a relative `cwd` starts from. */
  readonly cwd: string;
  /** A `cwd` below the one folder means the same place below the other. */
  readonly moved?: { readonly from: string; readonly to: string };
}

/** The error says which value cannot be handed to a process. */
export function readRunInputs(inputs: JsonObject, base: Base): Result<RunInputs, string> {
  const env = readEnv(own(inputs, "env") ?? {});
  if (!env.ok) return env;
  const argv = readArgv(own(inputs, "argv") ?? []);
  if (!argv.ok) return argv;
  const folder = own(inputs, "cwd") ?? ".";
  if (typeof folder !== "string" || folder === "") return err(`cwd must be a path, it is ${JSON.stringify(folder)}`);
  if (folder.includes("\0")) return err("cwd holds a NUL character, no path can");
  const cwd = isAbsolute(folder) ? movedPath(folder, base) : resolve(base.cwd, folder);
  const stdin = own(inputs, "stdin");
  return ok({ env: env.value, argv: argv.value, cwd, ...(stdin !== undefined && { stdin: asText(stdin) }) });
}

function movedPath(path: string, { moved }: Base): string {
  const within = moved === undefined ? ".." : relative(moved.from, path);
  return moved === undefined || within.startsWith("..") ? path : resolve(moved.to, within);
}

/** A value as a process sees it: text as it is, null as nothing, everything else as compact JSON. */
export function asText(value: Json): string {
  if (typeof value === "string") return value;
  return value === null ? "" : JSON.stringify(value);
}

function readEnv(env: Json): Result<Readonly<Record<string, string>>, string> {
  if (!isJsonObject(env)) return err("env must be a map of names and values");
  const entries: [string, string][] = [];
  for (const [name, value] of Object.entries(env)) {
    const text = asText(value);
    const problem = nameProblem(name) ?? valueProblem(`env ${name}`, text, name.length + 1);
    if (problem !== undefined) return err(problem);
    entries.push([name, text]);
  }
  return ok(Object.fromEntries(entries));
}

function readArgv(argv: Json): Result<readonly string[], string> {
  if (!Array.isArray(argv)) return err("run must be a list of a program and its arguments");
  const texts = argv.map(asText);
  for (const [index, text] of texts.entries()) {
    const problem = valueProblem(`argument ${index}`, text, 0);
    if (problem !== undefined) return err(problem);
  }
  return ok(texts);
}

function nameProblem(name: string): string | undefined {
  if (name === "" || /[=\0]/.test(name)) return `env ${JSON.stringify(name)} is not the name of a variable`;
  if (givenNames.has(name) || name.startsWith(markPrefix)) return `env ${name} is set by flow itself`;
  return undefined;
}

function valueProblem(what: string, text: string, prefix: number): string | undefined {
  if (text.includes("\0")) return `${what} holds a NUL character, which no process can be given; use stdin`;
  const bytes = Buffer.byteLength(text) + prefix + 1;
  if (bytes <= maxArgument) return undefined;
  return `${what} is ${bytes} bytes long, more than the 128 KiB a process can be given; hand it over as stdin`;
}
