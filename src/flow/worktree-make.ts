import { mkdirSync } from "node:fs";
import { join, relative } from "node:path";
import type { Failure } from "../model/outcome.ts";
import { elapsed, type Emit } from "../model/ports.ts";
import { err, ok, type Result } from "../model/result.ts";
import type { RecordedWorktree, RecordedWorktrees } from "../worktree/recorded.ts";
import { call, commitOf, type Files, treeOf } from "../worktree/repository.ts";
import type { Order, Turns } from "../worktree/turns.ts";
import { addWorktree, applyPatch, dropRecord, removeWorktree, type Worktree } from "../worktree/worktree.ts";
import { systemClock } from "./clock.ts";
import type { WorktreeStore, WorktreeStoreOptions } from "./worktree-store.ts";

export interface WorktreesOptions extends WorktreeStoreOptions {
  readonly run: string;
  /** Where flow was started. */
  readonly cwd: string;
  readonly emit: Emit;
  /** What the log has of them from before the run was resumed. */
  readonly before: RecordedWorktrees | undefined;
  /** Aborted: there is no time left. */
  readonly kill: AbortSignal;
}

/** Somebody who is to work in a worktree of its own. */
export interface Asked {
  /** The path of the step it belongs to. */
  readonly step: string;
  /** The id of the agent run it is for, where that is not the whole step. */
  readonly agentRun?: string;
  /** Its place among all: the changes of those that are open at the same time are applied in this order. */
  readonly order: Order;
  /** The worktree that its changes go into, by its folder; the workspace when absent. */
  readonly into?: string;
  /** It goes on with what it had done before it was cut off, if anything is left of that. */
  readonly goesOn?: boolean;
  readonly signal: AbortSignal;
}

/** A folder whose files are changed by worktrees: the workspace, or a worktree that others are made from. */
export interface Target {
  readonly files: Files;
  readonly turns: Turns;
  /** Where a commit of its files begins. */
  readonly head: string;
  /** Of a worktree. */
  readonly name?: string;
}

interface Making {
  readonly store: WorktreeStore;
  readonly target: Target;
  readonly asked: Asked;
  readonly options: WorktreesOptions;
}

interface Made {
  readonly worktree: Worktree;
  /** Whoever works in it may go on where it was cut off. */
  readonly goesOn: boolean;
}

/** Makes a worktree from the files of its target as they are, or as they were for whoever goes on. */
export async function makeWorktree(making: Making): Promise<Result<Made, Failure>> {
  const started = systemClock.monotonic();
  const { store, target, asked, options } = making;
  const { step, agentRun } = asked;
  const name = store.newName(agentRun ?? step);
  const folder = store.folderOf(name);
  const before = asked.goesOn === true ? options.before?.last(agentRun ?? step) : undefined;
  const made = await startFrom(making, name, before);
  if (!made.ok) return made;
  const { worktree, restored } = made.value;
  // Git has no empty folders, nor those in which it ignores everything.
  mkdirSync(join(folder, store.repository.inside, relative(options.workspace, options.cwd)), { recursive: true });
  const about = { step, worktree: name, folder, base: worktree.base };
  const more = {
    ...(agentRun !== undefined && { agentRun }),
    ...(target.name !== undefined && { into: target.name }),
    ...(restored && { restored: true as const }),
  };
  options.emit({ type: "worktree.opened", ...about, ...more, duration: elapsed(systemClock, started) });
  const status = before?.closed?.status;
  const isWhole = status === undefined || status === "kept" || status === "empty";
  return ok({ worktree, goesOn: asked.goesOn === true && isWhole });
}

interface Started {
  readonly worktree: Worktree;
  readonly restored: boolean;
}

/** What was kept of the one before is a commit as long as git has it, and a patch after that. */
async function startFrom(
  { store, target, options: { run } }: Making,
  name: string,
  before: RecordedWorktree | undefined,
): Promise<Result<Started, Failure>> {
  const { repository } = store;
  const folder = store.folderOf(name);
  const { left, patch } = before?.closed?.status === "kept" ? before.closed : {};
  if (before && left !== undefined && (await call(repository.git, ["cat-file", "-e", left])).ok) {
    const added = await addWorktree({ repository, folder, base: before.base, left });
    return added.ok ? ok({ worktree: added.value, restored: true }) : err(noWorktree(added.error));
  }
  const base = await store.inTurn(() => snapshot(store, target, { run, name }));
  const added = base.ok ? await addWorktree({ repository, folder, base: base.value }) : base;
  if (!added.ok) return err(noWorktree(added.error));
  if (patch === undefined) return ok({ worktree: added.value, restored: false });
  const applied = await applyPatch(repository, added.value, patch);
  if (applied.ok) return ok({ worktree: added.value, restored: true });
  await removeWorktree(folder, added.value.admin);
  dropRecord(folder);
  const message = `what was done before the run was cut off does not fit any more; it is kept in ${patch}: ${applied.error}`;
  return err({ kind: "conflict", message });
}

export function noWorktree(message: string): Failure {
  return { kind: "unavailable", message: `there can be no worktree: ${message}` };
}

/** A commit of the files as they are: the one that is checked out, where nothing differs from it. */
async function snapshot(
  { repository }: WorktreeStore,
  { files, head }: Target,
  { run, name }: { readonly run: string; readonly name: string },
): Promise<Result<string, string>> {
  const tree = await treeOf(files);
  if (!tree.ok) return tree;
  const known = await call(repository.git, ["rev-parse", head, `${head}^{tree}`]);
  if (!known.ok) return known;
  const [commit = "", knownTree = ""] = known.value.split("\n");
  if (tree.value === knownTree) return ok(commit);
  return commitOf(repository, tree.value, {
    on: commit,
    message: `flow: the workspace as ${name} found it in run ${run}`,
  });
}
