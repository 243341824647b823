import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Emit } from "../model/ports.ts";
import { err, type Result } from "../model/result.ts";
import { isLocked, lockRun } from "../runlog/lock.ts";
import { type Applied, applyChange, healFiles } from "../worktree/apply.ts";
import { type Left, worktreesOfRuns } from "../worktree/leftovers.ts";
import type { RecordedApply, RecordedWorktree, RecordedWorktrees } from "../worktree/recorded.ts";
import { changesBetween, commitOf, type Files } from "../worktree/repository.ts";
import {
  adminOf,
  commitOfWorktree,
  dropRecord,
  isGone,
  isWhole,
  keepForPeople,
  readRecord,
  removeWorktree,
} from "../worktree/worktree.ts";
import { type Closed, type Finished, lost, outcomeOf, shownFiles } from "./worktree-closed.ts";
import type { WorktreeStore } from "./worktree-store.ts";

export interface Recovery {
  readonly store: WorktreeStore;
  readonly before: RecordedWorktrees | undefined;
  readonly emit: Emit;
  readonly run: string;
  readonly workspace: string;
}

/**
 * Tidies up what a crash has left, in the order of the log: changes that were on their way into the workspace arrive, what
 * was in worktrees is kept, and the worktrees go. Gives what those executions had given whose changes have arrived.
 */
export async function recoverWorktrees(given: Recovery): Promise<ReadonlyMap<string, Finished>> {
  const { before, store } = given;
  const emit: Emit = (event) => {
    given.emit(event);
    // What is told here was before this resume began.
    before?.add({ ...event, seq: 0, time: "" });
  };
  const recovery = { ...given, emit };
  const finished = new Map<string, Finished>();
  for (const [owner, apply] of new Map(before?.applies)) {
    const { result = null, outputs = result } = apply;
    const closed = apply.closed ?? (await arrive(apply, owner, recovery));
    if (closed.status === "applied") finished.set(owner, { result: { outcome: "success", result, outputs }, closed });
  }
  const own = dirname(dirname(store.folderOf("x")));
  for (const worktree of before?.open ?? []) if (!finished.has(worktree.owner)) await keepLeft(worktree, recovery);
  for (const left of worktreesOfRuns(recovery.workspace)) {
    const known = left.run === own ? before?.named(basename(left.folder))?.closed : undefined;
    const isForPeople = known?.status === "lost" || readRecord(left.folder)?.isOnly === true;
    if (isForPeople && !isGone(left.folder)) continue;
    // One that the log does not know was made and not used yet.
    if (left.run === own) await remove(left);
    else await keepOfOther(left, recovery);
  }
  return finished;
}

async function arrive(apply: RecordedApply, owner: string, { store, before, emit }: Recovery): Promise<Closed> {
  const { name, from, to, patch } = apply;
  const files = filesOf(before?.last(owner)?.into, store);
  const applied =
    files === undefined ? err("what it goes into is gone") : await store.inTurn(() => finishApply(files, apply));
  const changes = await changesBetween(store.repository, from, to);
  const names = changes.ok ? changes.value.map((change) => change.name).slice(0, shownFiles) : [];
  const closed = { patch, files: names, ...outcomeOf(applied) };
  const step = before?.last(owner)?.step ?? owner;
  emit({ type: "worktree.closed", step, worktree: name, ...closed, duration: 0 });
  dropRecord(store.folderOf(name));
  return closed;
}

/** The files of the workspace, or of a worktree that is still there. */
function filesOf(into: string | undefined, store: WorktreeStore): Files | undefined {
  if (into === undefined) return store.files;
  const { repository } = store;
  const folder = store.folderOf(into);
  const admin = adminOf(repository, folder);
  if (admin === undefined || !isWhole(folder)) return undefined;
  return { repository, folder, admin, index: store.indexOf(`${into}.inner`), without: [] };
}

async function finishApply(files: Files, { from, to }: RecordedApply): Promise<Result<Applied, string>> {
  const { repository } = files;
  const healed = await healFiles(files, from, to);
  if (!healed.ok) return healed;
  const base = await commitOf(repository, from, { on: "HEAD", message: "flow: the workspace before a patch" });
  return base.ok ? applyChange(files, { base: base.value, tree: to }, () => undefined) : err(base.error);
}

/** Of the run that goes on: what was in a worktree is there for the execution that goes on with it. */
async function keepLeft(worktree: RecordedWorktree, { store, emit }: Recovery): Promise<void> {
  const { name, step, base } = worktree;
  const folder = store.folderOf(name);
  const closed = await keptOf({ folder, base, patch: store.patchOf(name) }, store);
  emit({
    type: "worktree.closed",
    step,
    worktree: name,
    ...closed,
    files: closed.files.slice(0, shownFiles),
    duration: 0,
  });
}

interface Place {
  readonly folder: string;
  readonly base: string;
  /** The file for what is in it. */
  readonly patch: string;
}

async function keptOf(
  { folder, base, patch }: Place,
  store: WorktreeStore,
): Promise<Closed & { readonly left?: string }> {
  const { repository } = store;
  const admin = adminOf(repository, folder);
  const name = basename(folder);
  const record = readRecord(folder);
  const leave = (why: string): Closed => {
    keepForPeople(folder, base);
    return lost(why, folder);
  };
  if (!isGone(folder) && admin === undefined) return leave("git has forgotten the worktree");
  const commit =
    !isGone(folder) && admin !== undefined
      ? await commitOfWorktree(repository, { name, folder, admin, base }, store.indexOf(`${name}.left`))
      : undefined;
  if (commit?.ok === false) return leave(commit.error);
  const left = commit?.value ?? record?.left;
  const kept = left === undefined ? undefined : await store.keep(patch, base, left);
  if (kept?.ok === false) return isGone(folder) ? lost(kept.error) : leave(kept.error);
  await removeWorktree(folder, admin);
  dropRecord(folder);
  if (kept?.value.patch !== undefined) return { status: "kept", ...kept.value, ...(left !== undefined && { left }) };
  if (kept === undefined && existsSync(patch)) return { status: "kept", patch, files: [] };
  if (kept === undefined) return lost("its folder is gone");
  return { status: "empty", files: [] };
}

async function remove({ folder, admin }: Left): Promise<void> {
  await removeWorktree(folder, admin);
  dropRecord(folder);
}

/** Of a run that died and that nobody goes on with now. One that lives, or lives on another machine, is left alone. */
async function keepOfOther(left: Left, { store, emit }: Recovery): Promise<void> {
  const { folder, admin, run } = left;
  if (!existsSync(join(run, "log.jsonl"))) {
    if (!existsSync(folder)) await remove(left);
    return;
  }
  const lock = isLocked(run) ? undefined : lockRun(run);
  if (lock?.ok !== true) return;
  try {
    const name = basename(folder);
    const base = readRecord(folder)?.base ?? headOf(admin);
    const closed = await keptOf({ folder, base, patch: join(run, "files", `${name}.patch`) }, store);
    const { patch } = closed;
    if (existsSync(folder)) return;
    emit({ type: "worktree.removed", run: basename(run), worktree: name, ...(patch !== undefined && { patch }) });
  } finally {
    lock.value.release();
  }
}

function headOf(admin: string): string {
  try {
    return readFileSync(join(admin, "HEAD"), "utf8").trim();
  } catch {
    return "HEAD";
  }
}
