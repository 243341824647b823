import { randomBytes } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { join, relative, resolve } from "node:path";
import { isJsonObject, type Json, type JsonObject, parseJson } from "../model/json.ts";
import type { Failure, FailureKind, StepResult } from "../model/outcome.ts";
import { Places } from "../model/places.ts";
import type { Body } from "../model/plan.ts";
import type { Attempt, Execute } from "../model/ports.ts";
import { err, messageOf, ok, type Result, unreachable } from "../model/result.ts";
import type { Captured, StreamFilter } from "../process/capture.ts";
import { stepEnvironment } from "../process/environment.ts";
import type { Marks } from "../process/marks.ts";
import { Pipes } from "../process/pipes.ts";
import { placesHere } from "../process/places.ts";
import { type ProcessOptions, type ProcessResult, type Ran, runProcess } from "../process/run.ts";
import type { SpawnFailed } from "../process/spawn-error.ts";
import { readFlowOutput, streamNames } from "./flow-output.ts";
import { type Base, readRunInputs, type RunInputs } from "./run-inputs.ts";

export interface RunOptions {
  readonly runId: string;
  /** Absolute; where flow was started. */
  readonly cwd: string;
  /** Absolute; what an attempt's own workspace stands for. */
  readonly workspace: string;
  /** From `makeTempFolder`, for scripts and `$FLOW_OUTPUT` files; whoever made it removes it after the run. */
  readonly tempFolder: string;
  /** Those of the run, which every process carries. */
  readonly marks: Marks;
  /** A folder for output that is too long to be a value, made when needed; absent: its middle is dropped. */
  readonly spillFolder?: string;
  readonly inheritedEnvironment: Readonly<Record<string, string | undefined>>;
  /** Names of the variables that hold the providers' keys. */
  readonly providerKeys: readonly string[];
  readonly secretNames: readonly string[];
  /** What is wrong with a value by a JSON Schema; empty when nothing is. */
  readonly checkOutput: (schema: Json, value: Json) => Promise<readonly string[]>;
  /** Masks a stream before anything of it is kept. */
  readonly filter?: () => StreamFilter;
  /** Milliseconds between SIGTERM and SIGKILL. Default 5,000. */
  readonly grace?: number;
  /** Bytes of each stream that make a value. Default 1 MiB. */
  readonly maxBytes?: number;
}

type RunBody = Extract<Body, { kind: "run" }>;

/** The kind `run`: a script in a shell, or a program with its arguments and no shell between. */
export function createRun(options: RunOptions): Execute {
  const { inheritedEnvironment: inherited, providerKeys, secretNames: secrets } = options;
  const environment = stepEnvironment({ inherited, providerKeys, secrets, own: {} });
  const pipes = new Pipes(options.tempFolder);
  const places = new Places(placesHere());
  // A resumed run writes its long output beside that of the run before.
  const suffix = randomBytes(4).toString("hex");
  let attempts = 0;
  return async (attempt) => {
    const { body } = attempt.step;
    if (body.kind !== "run") throw new Error(`a ${body.kind} step was given to run`);
    if (attempt.signal.aborted) return { outcome: "cancelled" };
    const inputs = readRunInputs(attempt.inputs, placeOf(attempt, options));
    if (!inputs.ok) return failure({ kind: "input", message: inputs.error });
    attempts += 1;
    const name = `${attempt.step.id.slice(0, 60)}-${suffix}-${attempts}`;
    const files = { script: join(options.tempFolder, name), output: join(options.tempFolder, `${name}.output`) };
    try {
      const argv = prepare(body, inputs.value, files);
      if (!argv.ok) return failure({ kind: "unavailable", message: argv.error });
      const given = { FLOW_OUTPUT: files.output, FLOW_RUN_ID: options.runId, FLOW_STEP: attempt.path };
      const { cwd, stdin } = inputs.value;
      const env = { ...environment, PWD: cwd, ...inputs.value.env, ...given };
      const ran = await runProcess({
        ...limits(options, name),
        argv: argv.value,
        cwd,
        env,
        marks: options.marks,
        signal: attempt.signal,
        pipes,
        places,
        ...(stdin !== undefined && { stdin }),
      });
      return await conclude(ran, { body, files, options });
    } finally {
      discard(files.output);
      if ("script" in body.command) discard(files.script);
    }
  };
}

/** Where flow was started, in the worktree of an attempt that has one. */
function placeOf({ workspace }: Attempt, options: RunOptions): Base {
  if (workspace === undefined) return { cwd: options.cwd };
  const cwd = resolve(workspace, relative(options.workspace, options.cwd));
  return { cwd, moved: { from: options.workspace, to: workspace } };
}

interface Files {
  readonly script: string;
  readonly output: string;
}

/** Writes the files the process needs and gives its argv. */
function prepare(body: RunBody, inputs: RunInputs, files: Files): Result<readonly string[], string> {
  try {
    writeFileSync(files.output, "", { mode: 0o600, flag: "wx" });
    if ("argv" in body.command) return ok(inputs.argv);
    writeFileSync(files.script, body.command.script, { mode: 0o600, flag: "wx" });
    return ok(shellCommand(body.shell, files.script));
  } catch (error) {
    return err(`the step's temporary files cannot be written: ${messageOf(error)}`);
  }
}

/** What a script made undeletable stays until the folder's owner removes it all. */
function discard(file: string): boolean {
  try {
    rmSync(file, { force: true, recursive: true });
    return true;
  } catch {
    return false;
  }
}

/** `shell` is `bash`, `sh`, or a command of your own, in which `{0}` (or else the end) is the script's file. */
function shellCommand(shell: string, file: string): readonly string[] {
  if (shell === "bash") return ["bash", "--noprofile", "--norc", "-eo", "pipefail", file];
  if (shell === "sh") return ["sh", "-e", file];
  const words = shell.split(/\s+/).filter((word) => word !== "");
  return words.includes("{0}") ? words.map((word) => (word === "{0}" ? file : word)) : [...words, file];
}

function limits(options: RunOptions, name: string): Partial<ProcessOptions> {
  const { filter, grace, maxBytes, spillFolder } = options;
  return {
    ...(filter !== undefined && { filter }),
    ...(grace !== undefined && { grace }),
    ...(maxBytes !== undefined && { maxBytes }),
    ...(spillFolder !== undefined && {
      spill: { stdout: join(spillFolder, `${name}.stdout`), stderr: join(spillFolder, `${name}.stderr`) },
    }),
  };
}

interface Conclusion {
  readonly body: RunBody;
  readonly files: Files;
  readonly options: RunOptions;
}

async function conclude(ran: ProcessResult, { body, files, options }: Conclusion): Promise<StepResult> {
  if (ran.kind === "spawn_failed") return failure({ kind: spawnFailureKind(ran.reason), message: ran.message });
  const result = streams(ran);
  const written = readFlowOutput(files.output);
  const kept = written.ok ? { ...result, ...Object.fromEntries(written.value) } : result;
  if (ran.kind === "aborted") return { outcome: "cancelled", outputs: kept };
  const problem = exitFailure(ran);
  if (problem !== undefined) {
    return failure(written.ok ? problem : { ...problem, cause: written.error }, kept);
  }
  if (!written.ok) return failure({ kind: "output", message: written.error }, kept);
  if (body.output === undefined) return { outcome: "success", result, outputs: kept };
  const fields = await readFields(ran, body.output.json, options);
  if (!fields.ok) return failure({ kind: "output", message: fields.error }, kept);
  const clash = clashing(Object.keys(kept), Object.keys(fields.value));
  if (clash !== undefined) {
    const message = `stdout has a field ${JSON.stringify(clash)}, and so have the step's outputs (names ignore case)`;
    return failure({ kind: "output", message }, kept);
  }
  return { outcome: "success", result, outputs: { ...kept, ...fields.value } };
}

function spawnFailureKind(reason: SpawnFailed["reason"]): FailureKind {
  switch (reason) {
    case "program":
    case "resources":
      return "unavailable";
    case "cwd":
    case "arguments":
      return "input";
    default:
      return unreachable(reason);
  }
}

/** What every command gives; a process that was ended by flow has no exit code. */
function streams(ran: Ran): Readonly<Record<string, Json>> {
  const result = { stdout: streamText(ran.stdout), stderr: streamText(ran.stderr) };
  switch (ran.kind) {
    case "exited":
      return { ...result, "exit-code": ran.code };
    case "signalled":
      return { ...result, "exit-code": 128 + constants.signals[ran.signal] };
    case "aborted":
      return result;
    default:
      return unreachable(ran);
  }
}

/**
 * Without final newlines, as the shell's `$(…)` does it. A stream that was shortened loses one: by its length
 * it is over what an expression reads, so that nothing judges a part of it as the whole, and so it has to stay.
 */
function streamText({ text, truncated }: Captured): string {
  if (truncated) return text.endsWith("\n") ? text.slice(0, -1) : text;
  let end = text.length;
  while (text[end - 1] === "\n") end -= 1;
  return text.slice(0, end);
}

function exitFailure(ran: Exclude<Ran, { kind: "aborted" }>): Failure | undefined {
  const line = lastLine(ran.stderr.text);
  const said = line === "" ? "" : `: ${line}`;
  if (ran.kind === "signalled") return { kind: "signal", message: `ended by ${ran.signal}${said}` };
  return ran.code === 0 ? undefined : { kind: "exit", message: `exited with ${ran.code}${said}` };
}

/** The last line that says something, as one line of plain text. */
function lastLine(text: string): string {
  const end = text.trimEnd();
  const line = end.slice(end.lastIndexOf("\n") + 1);
  const plain = line
    .slice(0, 1000)
    .replaceAll(/\u001B\[[0-9;]*[A-Za-z]/g, "")
    .replaceAll(/\p{Cc}/gu, " ")
    .trim();
  return plain.length > 200 ? `${plain.slice(0, 200)}…` : plain;
}

/** `output`: stdout is one JSON object that matches the schema. */
async function readFields(ran: Ran, schema: Json, options: RunOptions): Promise<Result<JsonObject, string>> {
  if (ran.stdout.truncated) return err(`stdout is ${ran.stdout.bytes} bytes long, too long to be read as JSON`);
  const read = parseJson(ran.stdout.text);
  if (!read.ok) {
    const { isJson, message } = read.error;
    return err(`stdout ${isJson ? "cannot be kept as it is" : "is not one JSON object"}: ${message}`);
  }
  const { value } = read;
  if (!isJsonObject(value)) return err("stdout is JSON, but not an object");
  const problems = await options.checkOutput(schema, value);
  if (problems.length > 0) return err(`stdout does not match the step's output: ${problems.join("; ")}`);
  return ok(value);
}

function clashing(names: readonly string[], fields: readonly string[]): string | undefined {
  const seen = new Set([...names, ...streamNames].map((name) => name.toLowerCase()));
  return fields.find((field) => seen.size === seen.add(field.toLowerCase()).size);
}

function failure(error: Failure, outputs?: Json): StepResult {
  return { outcome: "failure", error, ...(outputs !== undefined && { outputs }) };
}
