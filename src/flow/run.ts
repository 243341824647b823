import { rmSync } from "node:fs";
import { isAbsolute, join, relative, resolve } from "node:path";
import { usesCache } from "../cache/used.ts";
import { exitCode } from "../engine/exit-code.ts";
import { runPlan, type RunResult } from "../engine/run.ts";
import type { Code } from "../model/codes.ts";
import type { Event, LogLine } from "../model/event.ts";
import type { JsonObject } from "../model/json.ts";
import { addUsage, noUsage, type Usage } from "../model/message.ts";
import { exitCodes, type Failure, type RunOutcome } from "../model/outcome.ts";
import type { StepKind } from "../model/plan.ts";
import type { Cache, Emit, OpenApproval } from "../model/ports.ts";
import { type LimitSpent, limitsSpent, Spending } from "../model/spending.ts";
import { err, ok, type Result } from "../model/result.ts";
import { Marks } from "../process/marks.ts";
import { makeTempFolder } from "../process/temp-folder.ts";
import { startWatchdog } from "../process/watchdog.ts";
import { gitCommit } from "../runlog/commit.ts";
import { maskData } from "../runlog/mask-event.ts";
import { newRunId, runsFolder } from "../runlog/runs.ts";
import { lockRun } from "../runlog/lock.ts";
import { type LogOptions, type LogWriter, openLog } from "../runlog/write.ts";
import { Approvals } from "../steps/approvals.ts";
import { systemClock } from "./clock.ts";
import { createExecute } from "./execute.ts";
import { createFingerprint } from "./fingerprint.ts";
import { createMasking, type Masking, maskedFailure } from "./masking.ts";
import { loadHashFiles } from "./hash-files.ts";
import { readInstructions } from "./instructions.ts";
import type { Before, StartOptions } from "./run-options.ts";
import { version } from "./version.ts";

/** How a run ended. Paths are absolute. */
export interface RunEnd {
  readonly run: string;
  readonly outcome: RunOutcome;
  /** Secrets in them are masked. */
  readonly outputs: JsonObject;
  readonly error?: Failure;
  /** Of every step that concluded `failure`, in the order they ended, each with its path in `step`; `error` is the first. */
  readonly failures: readonly Failure[];
  readonly usage: Usage;
  /** What was spent of the run's own limits on cost and tokens, if it has any. */
  readonly budget?: readonly LimitSpent[];
  /** Milliseconds. */
  readonly duration: number;
  readonly exitCode: number;
  readonly log: string;
  /** The approvals a run with the outcome `waiting` waits for, in the order they were asked. */
  readonly waiting?: readonly OpenApproval[];
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
    ...(options.replay !== undefined && { replay: inWorkspace(options.replay, workspace) }),
    commit: gitCommit(workspace),
    supervision: options.supervision.mode,
    digest: plan.digest,
    inputs: options.inputs,
    ...(options.answers.length > 0 && { answers: options.answers }),
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
  const { plan } = options;
  const { run, folder, before } = course;
  const clock = systemClock;
  const masking = createMasking(options);
  const { mask, hasSecrets } = masking;
  const temp = openTempFolder();
  if (!temp.ok) return temp;
  const tempFolder = temp.value;
  const cancel = new AbortController();
  const opened = course.open({
    folder,
    clock,
    mask,
    deltas: options.logDeltas,
    fsync: options.fsync,
    onFailure: () => cancel.abort("log"),
    ...(options.onEvent && { onLine: reader(options.onEvent) }),
  });
  if (!opened.ok) {
    rmSync(tempFolder, { recursive: true, force: true });
    return err(opened.error.message);
  }
  const log = opened.value;
  const signal = AbortSignal.any([options.signal, cancel.signal]);
  const spending = before?.spending ?? new Spending();
  const approvals = before?.approvals ?? new Approvals();
  const over = new AbortController();
  let usage = before?.agents.usage ?? noUsage;
  const emit: Emit = (event) => {
    if (isModelCall(event) && event.usage !== undefined) usage = addUsage(usage, event.usage);
    spending.add(event);
    log.emit(event);
  };
  const started = clock.monotonic();
  emit(course.opening);
  const began = before?.started ?? log.time();
  for (const warning of mask.warnings) emit(warningEvent(warning, plan.root));
  const watch = (mark: string): (() => void) => startWatchdog({ mark, folder: tempFolder });
  const marks = new Marks(run, { ...options.supervision, watch });
  try {
    // Nothing of a run that died may go on beside the one that takes its place.
    if (before !== undefined) await marks.reap();
    const instructions = readInstructions(plan, options.cwd, options.workspace);
    const rooms = { options, instructions, run, masking, tempFolder, marks, log, emit, before, spending, approvals };
    approvals.add(course.opening);
    const { execute, waiting } = createExecute({ ...rooms, over: over.signal });
    const result = await runPlan({
      plan,
      inputs: options.inputs,
      secrets: options.secrets,
      run: { id: run, started: began },
      execute,
      retriable: (step) => retriedKinds.has(step.kind),
      fingerprint: createFingerprint(instructions.plan, hasSecrets ? mask.mask : undefined),
      ...(before && { past: before.past }),
      ...(usesCache(plan) && {
        cache: await openCache({ ...options, plan: instructions.plan }, { run, masking, emit }),
      }),
      spent: (path) => spending.within(path),
      emit,
      clock,
      signal,
      kill: options.kill,
      parallel: options.parallel ?? defaultParallel,
      ...(options.hashesFiles && { hashFiles: await loadHashFiles(options.cwd) }),
    });
    const { failures, ...end } = endOf(result, log, options);
    const counted = options.permissions?.counted();
    if (counted) emit(counted);
    const open = end.outcome === "waiting" ? waiting() : [];
    if (open.length > 0) emit({ type: "run.waiting", steps: open.map(({ step }) => step) });
    const spent = { usage, duration: Math.round(clock.monotonic() - started) };
    emit({ type: "run.finished", ...end, ...spent });
    const error = end.error && { error: maskedFailure(end.error, mask) };
    const outputs = maskData(end.outputs, mask.mask) as JsonObject;
    const budget = limitsSpent(plan.workflows[plan.root]?.limits ?? {}, spending.within(""));
    const masked = failures.map((failure) => maskedFailure(failure, mask));
    return ok({
      run,
      ...end,
      outputs,
      ...error,
      failures: masked,
      ...spent,
      ...(budget.length > 0 && { budget }),
      ...(open.length > 0 && { waiting: open }),
      log: log.file,
    });
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
    over.abort();
    try {
      await marks.end();
    } finally {
      log.close();
      rmSync(tempFolder, { recursive: true, force: true });
    }
  }
}

/** Whether a model was called: what it used counts, also when its reply was discarded. */
function isModelCall(
  event: Event,
): event is Extract<Event, { type: "message" | "model.retry" | "model.failed" } | { how: "summarised" }> {
  if (event.type === "context.compressed") return event.how === "summarised";
  return event.type === "message" || event.type === "model.retry" || event.type === "model.failed";
}

async function openCache(
  options: StartOptions,
  { run, masking, emit }: { readonly run: string; readonly masking: Masking; readonly emit: Emit },
): Promise<Cache> {
  const { createCache } = await import("./cache.ts");
  const { plan } = options;
  const { mask } = masking.mask;
  return createCache({
    ...options,
    run,
    clock: systemClock,
    mask: { text: mask, value: (value) => (masking.hasSecrets ? maskData(value, mask) : value) },
    warn: (message) => emit(warningEvent(message, plan.root, "FLOW8008")),
  });
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

const retriedKinds: ReadonlySet<StepKind> = new Set(["run", "agent", "tool", "approve"]);

type Ended = Pick<RunEnd, "outcome" | "outputs" | "error" | "exitCode" | "failures">;

/** A run whose log broke has failed, whatever its steps did. */
function endOf(result: RunResult, log: LogWriter, options: StartOptions): Ended {
  const broken = log.failure();
  const failure: Failure | undefined = broken === undefined ? undefined : { kind: "log", message: broken };
  const failures = failure ? [failure, ...result.failures] : result.failures;
  const outcome = failure ? "failure" : result.outcome;
  const error = failure ?? result.error;
  const signal = options.signal.reason === "SIGTERM" ? "SIGTERM" : "SIGINT";
  return {
    outcome,
    outputs: failure ? {} : result.outputs,
    ...(error && { error }),
    failures,
    exitCode: exitCode({ outcome, failures, signal }),
  };
}

function warningEvent(message: string, file: string, code: Code = "FLOW8007"): Event {
  const at = { file, line: 1, column: 1, endLine: 1, endColumn: 1 };
  return { type: "diagnostic", diagnostic: { code, severity: "warning", message, at } };
}
