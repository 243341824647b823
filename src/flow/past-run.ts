import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { Conversations } from "../agent/conversations.ts";
import { History } from "../engine/resume.ts";
import type { LogLine } from "../model/event.ts";
import type { Json, JsonObject } from "../model/json.ts";
import type { Plan } from "../model/plan.ts";
import { err, ok, type Result } from "../model/result.ts";
import { Spending } from "../model/spending.ts";
import { readBlob } from "../runlog/blobs.ts";
import { isBlob } from "../runlog/fields.ts";
import { type Lock, lockRun } from "../runlog/lock.ts";
import { type Reopened, readForResume } from "../runlog/reopen.ts";
import { Approvals } from "../steps/approvals.ts";
import { RecordedWorktrees } from "../worktree/recorded.ts";

/** Why a run cannot go on: `usage` when somebody has to ask for something else. */
export interface ResumeProblem {
  readonly kind: "usage" | "unavailable";
  readonly message: string;
}

/** A run that is ours to go on with: folded, its large values fetched, locked until `close`. */
export interface PastRun {
  readonly folder: string;
  readonly first: Reopened["first"];
  readonly reopened: Reopened;
  readonly history: History;
  readonly agents: Conversations;
  readonly spending: Spending;
  readonly approvals: Approvals;
  readonly worktrees: RecordedWorktrees;
  readonly inputs: JsonObject;
  /** The plan in force when it stopped, and what it was started with. */
  readonly plan: Plan;
  readonly digest: string;
  /** Version of the flow that made the plan. */
  readonly flow: string;
  readonly script: string | undefined;
  readonly replay: string | undefined;
  readonly workspace: string;
  /** Where flow was started. */
  readonly cwd: string;
  /** Its last event, if it came to an end. */
  readonly finished: Extract<LogLine, { type: "run.finished" }> | undefined;
  close(): void;
}

/** Locks the run in `folder` and reads all of it. An error leaves everything as it was. */
export async function openPast(folder: string): Promise<Result<PastRun, ResumeProblem>> {
  const locked = lockRun(folder);
  if (!locked.ok) {
    const { kind, message } = locked.error;
    return err({ kind: kind === "held" ? "usage" : "unavailable", message });
  }
  const read = await readPast(folder, locked.value);
  if (read.ok) return read;
  locked.value.release();
  return err({ kind: "usage", message: read.error });
}

async function readPast(folder: string, lock: Lock): Promise<Result<PastRun, string>> {
  const history = new History();
  const agents = new Conversations();
  const spending = new Spending();
  const approvals = new Approvals();
  const worktrees = new RecordedWorktrees();
  const latest = new Latest();
  const read = await readForResume(folder, (line) => {
    history.add(line);
    agents.add(line);
    spending.add(line);
    approvals.add(line);
    worktrees.add(line);
    latest.add(line);
  });
  if (!read.ok) return read;
  const restore = new Restore(folder);
  for (const execution of history.executions.values())
    await restore.fields(execution.end, ["outputs", "result", "error"]);
  for (const { messages, calls, children } of agents.left) {
    for (const [index] of messages.entries()) await restore.fields(messages, [index]);
    for (const call of calls.values()) await restore.fields(call, ["text"]);
    for (const { end } of children.values()) if (end) await restore.fields(end, ["text", "output", "reason"]);
  }
  for (const apply of worktrees.applies.values()) await restore.fields(apply, ["result", "outputs"]);
  const { first } = read.value;
  const known = { inputs: first.inputs, plan: latest.plan, finished: { ...latest.finished } };
  await restore.fields(known, ["inputs", "plan"]);
  await restore.fields(known.finished, ["outputs", "error"]);
  if (restore.problem !== undefined) return err(restore.problem);
  const workspace = workspaceOfRun(folder, first.workspace);
  if (workspace.includes("***") && !existsSync(workspace))
    return err(
      `the run's workspace is ${workspace} in the log: its name holds a secret, which is masked there; a run whose log lies in the workspace's own .flow/runs can be resumed`,
    );
  return ok({
    folder,
    first,
    reopened: read.value,
    history,
    agents,
    spending,
    approvals,
    worktrees,
    inputs: known.inputs,
    plan: known.plan as Plan,
    digest: latest.digest,
    flow: latest.flow,
    script: latest.script === undefined ? undefined : resolve(workspace, latest.script),
    replay: latest.replay === undefined ? undefined : resolve(workspace, latest.replay),
    workspace,
    cwd: resolve(workspace, first.cwd ?? ""),
    finished: latest.finished && ({ ...known.finished } as PastRun["finished"]),
    close: () => lock.release(),
  });
}

/** What the last line that says something says. */
class Latest {
  plan: unknown;
  digest = "";
  flow = "";
  script: string | undefined;
  replay: string | undefined;
  finished: PastRun["finished"];

  add(line: LogLine): void {
    if (line.type === "run.finished") this.finished = line;
    if (line.type !== "run.started" && line.type !== "run.resumed") return;
    this.finished = undefined;
    if (line.plan !== undefined) this.flow = line.flow;
    this.plan = line.plan ?? this.plan;
    this.digest = line.digest;
    if (line.script === undefined && line.replay === undefined) return;
    this.script = line.script;
    this.replay = line.replay;
  }
}

/** Puts the values in the place of their references. */
class Restore {
  problem: string | undefined;
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async fields(owner: object, names: readonly (string | number)[]): Promise<void> {
    const fields = owner as { [name: string]: Json | undefined };
    for (const name of names) {
      const value = Object.hasOwn(fields, name) ? fields[name] : undefined;
      if (!isBlob(value)) continue;
      const read = await readBlob(this.#folder, value);
      if (read.ok) fields[name] = read.value;
      else this.problem ??= read.error.message;
    }
  }
}

/** A project may have been moved; its runs then moved with it. */
function workspaceOfRun(folder: string, recorded: string): string {
  const runs = dirname(folder);
  return runs.endsWith(join(".flow", "runs")) ? dirname(dirname(runs)) : recorded;
}
