import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { pathsFrom } from "../engine/from.ts";
import type { Event, SetOutput } from "../model/event.ts";
import type { Plan } from "../model/plan.ts";
import { err, ok, type Result } from "../model/result.ts";
import { continueLog } from "../runlog/write.ts";
import type { PastRun } from "./past-run.ts";
import { planChanges } from "./plan-changes.ts";
import type { RunEnd } from "./run-end.ts";
import type { StartOptions } from "./run-options.ts";
import type { Course } from "./run-resources.ts";
import { inWorkspace, runCourse } from "./run.ts";
import { fitSet, lastOutputs, parseSet } from "./set-outputs.ts";
import { version } from "./version.ts";

/**
 * Whether the files are what the plan in the log was made of, by the same flow: then it is not made again. A plan that
 * names agents is, because a new file may come before the one it found; so is one in which a secret was masked.
 */
export function isUnchanged(past: PastRun): boolean {
  const { plan, workspace } = past;
  if (plan.files.length === 0 || !isWhole(past)) return false;
  if (Object.keys(plan.agents).some((key) => !key.includes("#"))) return false;
  return plan.files.every(({ path, sha256 }) => hashOf(resolve(workspace, path)) === sha256);
}

/** Whether the plan in the log can be gone on with, whatever has become of the files. */
export function isWhole({ plan, flow }: PastRun): boolean {
  return flow === version && !JSON.stringify(plan).includes("***");
}

function hashOf(file: string): string | undefined {
  try {
    return createHash("sha256").update(readFileSync(file)).digest("hex");
  } catch {
    return undefined;
  }
}

/** Where the plan to go on with comes from: a file, relative to where flow was started, or else the log. */
export interface PlanSource {
  readonly file: string | undefined;
  readonly notes: readonly string[];
  /** Why the plan of that file cannot be meant for this run. */
  stranger(plan: Plan): string | undefined;
}

/** The file that is named now, or the one the run was started with, as long as it is there. */
export function inheritPlan(past: PastRun, request: { readonly workflow?: string; readonly cwd?: string }): PlanSource {
  const { first, workspace, cwd } = past;
  const known = past.plan.root;
  const named = request.workflow === undefined ? undefined : resolve(request.cwd ?? process.cwd(), request.workflow);
  const own = resolve(workspace, known);
  const isThere = known !== "-" && existsSync(own);
  const path = named ?? (isThere ? own : undefined);
  const gone = known === "-" ? "the workflow is in no file" : `the file ${known} is gone`;
  const stranger = (plan: Plan): string | undefined => {
    const ids = new Set(stepIds(past.plan));
    if (plan.root === known || ids.size === 0 || stepIds(plan).some((id) => ids.has(id))) return undefined;
    return `${plan.root} has no step in common with ${known}, which run ${first.run} was started with: this is the log of another workflow`;
  };
  return {
    file: path === undefined ? undefined : relative(cwd, path),
    notes: [
      ...(path === undefined ? [`${gone}: the plan in the log is used`] : []),
      ...(JSON.stringify(past.inputs).includes("***") ? [maskedInput] : []),
    ],
    stranger,
  };
}

const maskedInput = "an input held a secret, which the log does not have: what runs again sees `***` in its place";

function stepIds({ workflows, root }: Plan): string[] {
  return workflows[root]?.scope.steps.map(({ id }) => id) ?? [];
}

/** How the run ended, if it succeeded. */
export function finishedEnd({ finished, first, folder }: PastRun): RunEnd | undefined {
  if (finished?.outcome !== "success") return undefined;
  const { outcome, outputs, usage, duration, exitCode } = finished;
  return {
    run: first.run,
    outcome,
    outputs,
    failures: [],
    usage,
    duration,
    exitCode,
    log: join(folder, "log.jsonl"),
  };
}

/** What somebody asks of a resume, as it was typed. */
export interface Wishes {
  readonly from: string | undefined;
  readonly set: readonly string[];
}

/** The wishes, checked against the plan and the log. */
export async function readWishes(
  past: PastRun,
  plan: Plan,
  wishes: Wishes,
): Promise<Result<readonly SetOutput[], string>> {
  const { history, folder } = past;
  if (wishes.from !== undefined) {
    const matches = pathsFrom(plan, wishes.from);
    if (!matches.ok) return err(`--from: ${matches.error}`);
    if (/[[#]/.test(wishes.from) && history.stateOf(wishes.from) === "unknown")
      return err(`--from: nothing called \`${wishes.from}\` has run yet`);
  }
  const written = [];
  for (const text of wishes.set) {
    const parsed = parseSet(text);
    if (!parsed.ok) return parsed;
    const state = history.stateOf(parsed.value.step);
    if (state === "unknown") return err(`--set: nothing called \`${parsed.value.step}\` has run in this run`);
    if (state === "begun")
      return err(`--set: \`${parsed.value.step}\` has not succeeded, so it has no outputs to replace`);
    written.push(parsed.value);
  }
  if (written.length === 0) return ok([]);
  const outputs = await lastOutputs(folder, new Set(written.map(({ step }) => step)));
  if (!outputs.ok) return outputs;
  const sets: SetOutput[] = [];
  for (const one of written) {
    const fitted = await fitSet(plan, one, outputs.value.get(one.step) ?? {});
    if (!fitted.ok) return err(`--set: ${fitted.error}`);
    sets.push(fitted.value);
  }
  return ok(sets);
}

export interface Resuming {
  readonly past: PastRun;
  readonly options: StartOptions;
  readonly from: string | undefined;
  readonly set: readonly SetOutput[];
  /** What a person should know beside how the plan changed. */
  readonly notes: readonly string[];
}

/** Goes on with a run in its own log. */
export function resumeRun({ past, options, from, set, notes }: Resuming): Promise<Result<RunEnd, string>> {
  const { reopened, history, agents, spending, approvals, worktrees, first, folder } = past;
  const { plan } = options;
  const isNew = plan.digest !== past.digest;
  const changes = [...notes, ...(isNew ? planChanges(past.plan, plan) : [])];
  const opening: Extract<Event, { type: "run.resumed" }> = {
    type: "run.resumed",
    flow: version,
    run: first.run,
    workflow: plan.root,
    name: plan.workflows[plan.root]?.name ?? plan.root,
    digest: plan.digest,
    supervision: options.supervision.mode,
    ...(isNew && { plan }),
    ...(changes.length > 0 && { changes }),
    ...(options.replay !== undefined && { replay: inWorkspace(options.replay, options.workspace) }),
    ...(options.script !== undefined && {
      script: inWorkspace(resolve(options.cwd, options.script), options.workspace),
    }),
    ...(from !== undefined && { from }),
    ...(set.length > 0 && { set }),
    ...(options.answers.length > 0 && { answers: options.answers }),
    ...(reopened.torn > 0 && { torn: reopened.torn }),
  };
  history.add({ ...opening, seq: reopened.end.seq + 1, time: "" });
  const froms = history.froms.flatMap(({ seq, from: path }) => {
    const matches = pathsFrom(plan, path);
    return matches.ok ? [{ seq, matches: matches.value }] : [];
  });
  const course: Course = {
    run: first.run,
    folder,
    open: (log) => continueLog(log, reopened.end),
    opening,
    before: { past: history.past(froms), agents, spending, approvals, worktrees, started: first.time },
  };
  return runCourse(options, course);
}
