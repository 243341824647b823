import { rmSync } from "node:fs";
import { dirname, isAbsolute, join, relative, resolve } from "node:path";
import type { Conversations } from "../agent/recorded.ts";
import { exitCode } from "../engine/exit-code.ts";
import { runPlan, type RunResult } from "../engine/run.ts";
import type { Past } from "../engine/resume.ts";
import { compileSchema } from "../jsonschema/compile.ts";
import type { Event, LogLine } from "../model/event.ts";
import type { Json, JsonObject } from "../model/json.ts";
import { addUsage, noUsage } from "../model/message.ts";
import { exitCodes, type Failure, type RunOutcome } from "../model/outcome.ts";
import type { Plan, StepKind } from "../model/plan.ts";
import type { Emit, Execute } from "../model/ports.ts";
import { err, ok, type Result } from "../model/result.ts";
import type { StreamFilter } from "../process/capture.ts";
import { Marks } from "../process/marks.ts";
import { makeTempFolder } from "../process/temp-folder.ts";
import { namedKeys, providerKeyNames } from "../providers/catalog.ts";
import { gitCommit } from "../runlog/commit.ts";
import { maskData } from "../runlog/mask-event.ts";
import { createMask, type Mask, type StreamMask } from "../runlog/redact.ts";
import { newRunId, runsFolder } from "../runlog/runs.ts";
import { lockRun } from "../runlog/lock.ts";
import { type LogOptions, type LogWriter, openLog } from "../runlog/write.ts";
import { createSteps } from "../steps/index.ts";
import { systemClock } from "./clock.ts";
import { createFingerprint } from "./fingerprint.ts";
import { loadHashFiles } from "./hash-files.ts";
import type { Models } from "./models.ts";
import { version } from "./version.ts";

export interface StartOptions {
  readonly plan: Plan;
  /** Checked values of the root workflow's inputs. */
  readonly inputs: JsonObject;
  readonly secrets: { readonly [name: string]: string };
  readonly models: Models | undefined;
  readonly cwd: string;
  readonly workspace: string;
  readonly env: { readonly [name: string]: string | undefined };
  readonly runsDir: string | undefined;
  /** The file of replies that stands for every model, as it was given. */
  readonly script: string | undefined;
  readonly parallel: number | undefined;
  readonly logDeltas: boolean;
  readonly fsync: boolean;
  /** Whether an expression of the workflow asks for `hashFiles`. */
  readonly hashesFiles: boolean;
  /** Sees every event after the log has it. */
  readonly onEvent: ((line: LogLine) => void) | undefined;
  /** Aborted with the signal's name: the run is cancelled. */
  readonly signal: AbortSignal;
  /** Aborted: everything ends at once. */
  readonly kill: AbortSignal;
}

/** How a run ended. Paths are absolute. */
export interface RunEnd {
  readonly run: string;
  readonly outcome: RunOutcome;
  /** Secrets in them are masked. */
  readonly outputs: JsonObject;
  readonly error?: Failure;
  readonly exitCode: number;
  readonly log: string;
}

const defaultParallel = 8;

/** A run that begins or goes on: its log, and what it writes there first. */
export interface Course {
  readonly run: string;
  readonly folder: string;
  readonly open: (options: LogOptions) => Result<LogWriter, { readonly message: string }>;
  readonly opening: Event;
  /** What it was before it was resumed. */
  readonly before?: Before;
}

export interface Before {
  readonly past: Past;
  readonly agents: Conversations;
  /** When it began, RFC 3339. */
  readonly started: string;
}

/** Runs a plan under a new log. An error is a folder that cannot be written: then nothing has run. */
export async function startRun(options: StartOptions): Promise<Result<RunEnd, string>> {
  const { plan, workspace } = options;
  const run = newRunId(new Date(systemClock.now()), Math.random);
  const folder = join(runsFolder(workspace, options.runsDir), run);
  const locked = lockRun(folder);
  if (!locked.ok) return err(locked.error.message);
  const cwd = inWorkspace(options.cwd, workspace);
  const script = options.script === undefined ? undefined : resolve(options.cwd, options.script);
  const opening: Event = {
    type: "run.started",
    log: 1,
    flow: version,
    run,
    workflow: plan.root,
    name: plan.workflows[plan.root]?.name ?? plan.root,
    workspace,
    ...(cwd !== "" && { cwd }),
    ...(script !== undefined && { script: inWorkspace(script, workspace) }),
    commit: gitCommit(workspace),
    digest: plan.digest,
    inputs: options.inputs,
    plan,
  };
  try {
    return await runCourse(options, { run, folder, open: openLog, opening });
  } finally {
    locked.value.release();
  }
}

/** Relative to the workspace where it lies in there; `/` as separator. */
export function inWorkspace(path: string, workspace: string): string {
  const short = relative(workspace, path);
  return short.startsWith("..") || isAbsolute(short) ? path : short.replaceAll("\\", "/");
}

/** Runs a plan to its end under the log of its course. Whoever calls holds the run's lock. */
export async function runCourse(options: StartOptions, course: Course): Promise<Result<RunEnd, string>> {
  const { plan, env } = options;
  const { run, folder, before } = course;
  const clock = systemClock;
  const keys = keyNames(options);
  const toMask = secretsToMask(options, keys);
  const mask = createMask(toMask);
  const temp = openTempFolder();
  if (!temp.ok) return temp;
  const tempFolder = temp.value;
  const opened = course.open({
    folder,
    clock,
    mask,
    deltas: options.logDeltas,
    fsync: options.fsync,
    ...(options.onEvent && { onLine: reader(options.onEvent) }),
  });
  if (!opened.ok) {
    rmSync(tempFolder, { recursive: true, force: true });
    return err(opened.error.message);
  }
  const log = opened.value;
  const cancel = new AbortController();
  const signal = AbortSignal.any([options.signal, cancel.signal]);
  let usage = before?.agents.usage ?? noUsage;
  const emit: Emit = (event) => {
    if (event.type === "message" && event.usage !== undefined) usage = addUsage(usage, event.usage);
    log.emit(event);
    if (log.failure() !== undefined) cancel.abort("log");
  };
  const started = clock.monotonic();
  emit(course.opening);
  const began = before?.started ?? log.time();
  for (const warning of mask.warnings) emit(warningEvent(warning, plan.root));
  const marks = new Marks(run);
  try {
    // Nothing of a run that died may go on beside the one that takes its place.
    if (before !== undefined) await marks.reap();
    const hasSecrets = toMask.length > 0;
    const execute = createExecute({ options, run, mask, tempFolder, marks, log, emit, before, keys, hasSecrets });
    const result = await runPlan({
      plan,
      inputs: options.inputs,
      secrets: options.secrets,
      run: { id: run, started: began },
      execute,
      retriable: (step) => retriedKinds.has(step.kind),
      fingerprint: createFingerprint(plan, hasSecrets ? mask.mask : undefined),
      ...(before && { past: before.past }),
      emit,
      clock,
      signal,
      kill: options.kill,
      parallel: options.parallel ?? defaultParallel,
      ...(options.hashesFiles && { hashFiles: await loadHashFiles(options.cwd) }),
    });
    const end = endOf(result, { log, options, env });
    emit({ type: "run.finished", ...end.finished, usage, duration: Math.round(clock.monotonic() - started) });
    return ok({ run, ...maskedEnd(end.finished, mask), log: log.file });
  } catch (bug) {
    const error: Failure = { kind: "internal", message: bug instanceof Error ? bug.message : String(bug) };
    const duration = Math.round(clock.monotonic() - started);
    emit({
      type: "run.finished",
      outcome: "failure",
      outputs: {},
      error,
      usage,
      duration,
      exitCode: exitCodes.internal,
    });
    throw bug;
  } finally {
    await marks.reap();
    log.close();
    rmSync(tempFolder, { recursive: true, force: true });
  }
}

/** What leaves the run by another way than its log. */
function maskedEnd(finished: ReturnType<typeof endOf>["finished"], { mask }: Mask): typeof finished {
  const { error, outputs } = finished;
  const masked = error && {
    ...error,
    message: mask(error.message),
    ...(error.cause !== undefined && { cause: mask(error.cause) }),
  };
  return { ...finished, outputs: maskData(outputs, mask) as JsonObject, ...(masked && { error: masked }) };
}

function openTempFolder(): Result<string, string> {
  try {
    return ok(makeTempFolder());
  } catch (error) {
    return err(`cannot make a temporary folder: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Watchers see what the log says, masked, not what was emitted. */
function reader(onEvent: (line: LogLine) => void): (line: string) => void {
  return (line) => onEvent(JSON.parse(line) as LogLine);
}

const retriedKinds: ReadonlySet<StepKind> = new Set(["run", "agent", "tool"]);

/** The providers' keys, and those that models of this run name. */
function keyNames({ plan, inputs }: StartOptions): string[] {
  return [...providerKeyNames, ...namedKeys([plan as unknown as Json, inputs])];
}

/** Declared secrets and keys, which nothing should ever print. */
function secretsToMask(options: StartOptions, names: readonly string[]): { name: string; value: string }[] {
  const { secrets, env } = options;
  const keys = names.flatMap((name) => (Object.hasOwn(env, name) ? [{ name, value: env[name] ?? "" }] : []));
  return [
    ...Object.entries(secrets).map(([name, value]) => ({ name, value })),
    ...keys.filter(({ value }) => value !== ""),
  ];
}

interface ExecuteSource {
  readonly options: StartOptions;
  readonly run: string;
  readonly mask: Mask;
  readonly tempFolder: string;
  readonly marks: Marks;
  readonly log: LogWriter;
  readonly emit: Emit;
  readonly before: Before | undefined;
  /** Names of variables that hold models' keys. */
  readonly keys: readonly string[];
  readonly hasSecrets: boolean;
}

/** The record of step kinds: which room executes an attempt of which kind. */
function createExecute(source: ExecuteSource): Execute {
  const { options, run, mask, tempFolder, log, keys, hasSecrets } = source;
  const { secrets, env, cwd } = options;
  const steps = createSteps({
    runId: run,
    cwd,
    tempFolder,
    spillFolder: join(dirname(log.file), "files"),
    inheritedEnvironment: env,
    providerKeys: keys,
    secretNames: Object.keys(secrets),
    checkOutput,
    tools: async () => (await import("../tools/index.ts")).createTools({ marks: source.marks }),
    workspace: options.workspace,
    ...(hasSecrets && { filter: () => byteFilter(mask.stream()) }),
  });
  let agent: Promise<Execute> | undefined;
  const kinds: { readonly [kind in StepKind]: Execute } = {
    run: steps.run,
    set: steps.set,
    agent: async (attempt) => {
      agent ??= loadAgent(source);
      return (await agent)(attempt);
    },
    tool: steps.tool,
    approve: refused,
    steps: refused,
    workflow: refused,
  };
  const execute: Execute = (attempt) => kinds[attempt.step.kind](attempt);
  return hasSecrets ? masked(execute, mask) : execute;
}

/** The text mask as a filter of bytes; a character cut in two waits for its other half. */
function byteFilter(mask: StreamMask): StreamFilter {
  const decoder = new TextDecoder();
  return {
    write: (chunk) => Buffer.from(mask.push(decoder.decode(chunk, { stream: true }))),
    end: () => Buffer.from(mask.push(decoder.decode()) + mask.end()),
  };
}

/** The compiler keeps these out of a run, and the engine runs groups and sub-workflows by itself. */
function refused(): never {
  throw new Error("this kind of step is not executed as an attempt");
}

/** Outputs are masked where they are captured: a later step sees `***` now and after a resume alike. */
function masked(execute: Execute, mask: Mask): Execute {
  return async (attempt) => {
    const result = await execute(attempt);
    if (result.outcome === "success") {
      return {
        outcome: "success",
        result: maskData(result.result, mask.mask),
        outputs: maskData(result.outputs, mask.mask),
      };
    }
    const outputs = result.outputs === undefined ? {} : { outputs: maskData(result.outputs, mask.mask) };
    if (result.outcome === "cancelled") return { outcome: "cancelled", ...outputs };
    return { outcome: "failure", error: { ...result.error, message: mask.mask(result.error.message) }, ...outputs };
  };
}

async function checkOutput(schema: Json, value: Json): Promise<readonly string[]> {
  const check = await compileSchema(schema);
  if (!check.ok) return check.error.map((issue) => issue.message);
  return check
    .value(value)
    .map((issue) => `${issue.path.length === 0 ? "it" : `\`${issue.path.join(".")}\``} ${issue.message}`);
}

async function loadAgent({ options, log, emit, marks, before }: ExecuteSource): Promise<Execute> {
  const [{ createAgentExecute }, { createTools }] = await Promise.all([
    import("../agent/execute.ts"),
    import("../tools/index.ts"),
  ]);
  const { models, plan, workspace } = options;
  const offered = createTools({ marks });
  return createAgentExecute({
    agents: plan.agents,
    client: async (model, step) =>
      models?.client(model, step) ?? err({ kind: "internal", message: "the run was started without models" }),
    tools: (names) => ok(names === undefined ? offered : offered.filter((tool) => names.includes(tool.name))),
    workspace,
    emit,
    clock: systemClock,
    ...(before && { before: before.agents }),
    spill: (text) => {
      const kept = log.keep(text);
      return kept.ok ? kept.value : "(it could not be kept)";
    },
  });
}

interface EndSource {
  readonly log: LogWriter;
  readonly options: StartOptions;
  readonly env: StartOptions["env"];
}

/** A run whose log broke has failed, whatever its steps did. */
function endOf(
  result: RunResult,
  { log, options }: EndSource,
): { finished: Pick<RunEnd, "outcome" | "outputs" | "error" | "exitCode"> } {
  const broken = log.failure();
  const failure: Failure | undefined = broken === undefined ? undefined : { kind: "log", message: broken };
  const failures = failure ? [failure, ...result.failures] : result.failures;
  const outcome = failure ? "failure" : result.outcome;
  const error = failure ?? result.error;
  const signal = options.signal.reason === "SIGTERM" ? "SIGTERM" : "SIGINT";
  return {
    finished: {
      outcome,
      outputs: failure ? {} : result.outputs,
      ...(error && { error }),
      exitCode: exitCode({ outcome, failures, signal }),
    },
  };
}

function warningEvent(message: string, file: string): Event {
  const at = { file, line: 1, column: 1, endLine: 1, endColumn: 1 };
  return { type: "diagnostic", diagnostic: { code: "FLOW8007", severity: "warning", message, at } };
}
