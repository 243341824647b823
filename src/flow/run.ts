import { isAbsolute, join, relative, resolve } from "node:path";
import { usesCache } from "../cache/used.ts";
import { exitCode } from "../engine/exit-code.ts";
import { runPlan, type RunResult } from "../engine/run.ts";
import type { Code } from "../model/codes.ts";
import { defaultStepsAtOnce } from "../model/defaults.ts";
import type { Event } from "../model/event.ts";
import type { JsonObject } from "../model/json.ts";
import { exitCodes, type Failure } from "../model/outcome.ts";
import type { StepKind } from "../model/plan.ts";
import { type Cache, elapsed, type Emit } from "../model/ports.ts";
import { err, ok, type Result } from "../model/result.ts";
import { limitsSpent } from "../model/spending.ts";
import { gitCommit } from "../runlog/commit.ts";
import { lockRun } from "../runlog/lock.ts";
import { maskData } from "../runlog/mask-event.ts";
import type { Mask } from "../runlog/redact.ts";
import { newRunId, runsFolder } from "../runlog/runs.ts";
import { type LogWriter, openLog } from "../runlog/write.ts";
import { worktreesOfRuns } from "../worktree/leftovers.ts";
import { systemClock } from "./clock.ts";
import { createExecute } from "./execute.ts";
import { createFingerprint } from "./fingerprint.ts";
import { loadHashFiles } from "./hash-files.ts";
import { readInstructions } from "./instructions.ts";
import { type Masking, maskedFailure } from "./masking.ts";
import type { RunEnd } from "./run-end.ts";
import type { StartOptions } from "./run-options.ts";
import { type Course, openResources, type RunResources } from "./run-resources.ts";
import { version } from "./version.ts";
import type { Worktrees } from "./worktrees.ts";

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
  const opened = openResources(options, course);
  if (!opened.ok) return opened;
  const resources = opened.value;
  const started = systemClock.monotonic();
  const spent = (): Spent => ({ usage: resources.usage(), duration: elapsed(systemClock, started) });
  try {
    return ok(await runOn(resources, { options, course, spent }));
  } catch (bug) {
    const error: Failure = { kind: "internal", message: bug instanceof Error ? bug.message : String(bug) };
    const end = { outcome: "failure", outputs: {}, error, exitCode: exitCodes.internal } as const;
    resources.emit({ type: "run.finished", ...end, ...spent() });
    throw bug;
  } finally {
    await resources.close();
  }
}

type Spent = Pick<RunEnd, "usage" | "duration">;

interface Running {
  readonly options: StartOptions;
  readonly course: Course;
  readonly spent: () => Spent;
}

async function runOn(resources: RunResources, { options, course, spent }: Running): Promise<RunEnd> {
  const { emit, log, masking, marks, approvals, spending } = resources;
  const { run, before, opening } = course;
  const { plan } = options;
  emit(opening);
  approvals.add(opening);
  const began = before?.started ?? log.time();
  if (before === undefined) for (const diagnostic of options.warnings) emit({ type: "diagnostic", diagnostic });
  for (const warning of masking.mask.warnings) emit(warningEvent(warning, plan.root));
  // Nothing of a run that died may go on beside the one that takes its place.
  if (before !== undefined) await marks.reap();
  const instructions = readInstructions(plan, options.cwd, options.workspace);
  const hasAgents = Object.keys(plan.agents).length > 0;
  const skills = hasAgents ? await (await import("./skills.ts")).readSkills(instructions.plan, options) : undefined;
  const defined = skills?.plan ?? instructions.plan;
  const worktrees = worktreesOf(resources, { options, course });
  // What a crash has left of them is in its place before anything begins.
  if (before?.worktrees.isEmpty === false || worktreesOfRuns(options.workspace).length > 0)
    await recover(await worktrees.get(), { options, before });
  const made = { ...resources, options, instructions, skills, run, before, worktrees: worktrees.get };
  const { execute, waiting, close } = createExecute(made);
  const cached = { ...options, plan: defined };
  const notUndone: Failure[] = [];
  const noting: Emit = (event) => {
    if (event.type === "step.undone" && event.outcome !== "success")
      notUndone.push({ kind: "lost", message: "it was cancelled before it ended", ...event.error, step: event.step });
    emit(event);
  };
  const result = await runPlan({
    plan,
    inputs: options.inputs,
    secrets: options.secrets,
    run: { id: run, started: began },
    execute,
    retriable: (step) => retriedKinds.has(step.kind),
    fingerprint: createFingerprint(defined, masking.hasSecrets ? masking.mask.mask : undefined),
    ...(before && { past: before.past }),
    ...(usesCache(plan) && { cache: await openCache(cached, { run, masking, emit }) }),
    spent: (path) => spending.within(path),
    emit: noting,
    clock: systemClock,
    signal: resources.signal,
    kill: options.kill,
    parallel: options.parallel ?? defaultStepsAtOnce,
    ...(options.hashesFiles && { hashFiles: await loadHashFiles(options.cwd) }),
  });
  await worktrees.end();
  await close();
  const { failures, ...end } = endOf(result, log, options);
  const counted = options.permissions?.counted();
  if (counted) emit(counted);
  const open = end.outcome === "waiting" ? waiting() : [];
  if (open.length > 0) emit({ type: "run.waiting", steps: open.map(({ step }) => step) });
  const account = spent();
  emit({ type: "run.finished", ...end, ...account });
  const budget = limitsSpent(plan.workflows[plan.root]?.limits ?? {}, spending.within(""));
  return {
    run,
    ...maskedEnd({ ...end, failures }, masking.mask),
    ...(notUndone.length > 0 && { notUndone: notUndone.map((failure) => maskedFailure(failure, masking.mask)) }),
    ...account,
    ...(budget.length > 0 && { budget }),
    ...(open.length > 0 && { waiting: open }),
    log: log.file,
  };
}

async function recover(worktrees: Worktrees, { options, before }: Recovering): Promise<void> {
  const finished = await worktrees.recover();
  if (finished.size === 0) return;
  const { arrived } = await import("./isolated.ts");
  for (const [path, end] of finished) before?.past.finish(path, arrived(end, options.workspace));
}

interface Recovering {
  readonly options: Pick<StartOptions, "workspace">;
  readonly before: Course["before"];
}

/** The worktrees of a run, made when somebody asks for the first. */
function worktreesOf(
  { emit, marks, masking, tempFolder }: RunResources,
  { options, course }: Pick<Running, "options" | "course">,
): { readonly get: () => Promise<Worktrees>; readonly end: () => Promise<void> } {
  const { workspace, env, cwd, kill } = options;
  const { run, folder, before } = course;
  const source = { workspace, env, cwd, kill, run, folder, emit, marks, masking, tempFolder };
  let made: Promise<Worktrees> | undefined;
  return {
    get: () =>
      (made ??= import("./worktrees.ts").then(({ createWorktrees }) =>
        createWorktrees({ ...source, before: before?.worktrees }),
      )),
    end: async () => (await made)?.end(),
  };
}

/** What leaves the run by another way than its log. */
function maskedEnd({ outputs, error, failures, ...end }: Ended, mask: Mask): Ended {
  return {
    ...end,
    outputs: maskData(outputs, mask.mask) as JsonObject,
    ...(error && { error: maskedFailure(error, mask) }),
    failures: failures.map((failure) => maskedFailure(failure, mask)),
  };
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
