import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { isJsonObject, parseJson } from "../model/json.ts";
import { err, ok, type Result } from "../model/result.ts";
import { listAdmins } from "./leftovers.ts";
import { call, changesBetween, commitOf, type Files, type Repository, repositoriesIn, treeOf } from "./repository.ts";

/** A worktree of ours. All paths are absolute. */
export interface Worktree {
  readonly name: string;
  readonly folder: string;
  /** What git has of it. */
  readonly admin: string;
  /** The commit it was made from. */
  readonly base: string;
}

/** What stands beside a worktree while it is there, for whoever finds it after a crash. */
export interface WorktreeRecord {
  readonly base: string;
  /** A commit of what was in it; absent until it was looked at. */
  readonly left?: string;
  /** What was done in it is nowhere else: nobody but a person removes it. */
  readonly isOnly?: true;
}

export interface Making {
  readonly repository: Repository;
  readonly folder: string;
  readonly base: string;
  /** What is in it at first, where that is something else than the base: a commit. */
  readonly left?: string;
}

/** Checks out a worktree without a branch. Its folder must not exist. What went wrong leaves nothing behind. */
export async function addWorktree(making: Making): Promise<Result<Worktree, string>> {
  const { repository, folder, base, left } = making;
  const { git, top } = repository;
  const name = basename(folder);
  mkdirSync(dirname(folder), { recursive: true, mode: 0o700 });
  writeRecord(folder, { base });
  const added = await call(git, ["worktree", "add", "--quiet", "--detach", folder, left ?? base], { cwd: top });
  if (!added.ok) {
    await removeWorktree(folder, adminOf(repository, folder));
    dropRecord(folder);
    return err(`git cannot make a worktree in ${folder}: ${added.error}`);
  }
  const admin = adminOf(repository, folder);
  if (admin === undefined) return err(`git has made a worktree in ${folder} and does not know it`);
  if (left !== undefined) {
    const moved = await call(git, ["update-ref", "--no-deref", "HEAD", base], { cwd: top, env: { GIT_DIR: admin } });
    if (!moved.ok) return moved;
  }
  return ok({ name, folder, admin, base });
}

/** A commit of everything that is in the worktree by now, on top of its base; the base itself when nothing has changed. */
export async function commitOfWorktree(
  repository: Repository,
  { name, folder, admin, base }: Worktree,
  index: string,
): Promise<Result<string, string>> {
  // Without its files everything would look deleted.
  if (isGone(folder)) return err(`the folder of the worktree ${folder} was removed or replaced while it was in use`);
  if (!isWhole(folder)) return err(`its \`.git\` was removed, and with it what says whose files these are`);
  const files: Files = { repository, folder, admin, index, without: [] };
  const tree = await treeOf(files);
  if (!tree.ok) {
    const [, empty] = /'([^'\n]+?)\/?' does not have a commit checked out/.exec(tree.error) ?? [];
    return empty === undefined ? tree : err(repositoryInside(empty));
  }
  const before = await call(repository.git, ["rev-parse", "--verify", `${base}^{tree}`], { cwd: repository.top });
  if (!before.ok) return before;
  const foreign = await foreignRepository(files, before.value, tree.value);
  if (!foreign.ok) return foreign;
  if (before.value === tree.value) return ok(base);
  const commit = await commitOf(repository, tree.value, { on: base, message: `flow: what was done in ${name}` });
  if (commit.ok) writeRecord(folder, { base, left: commit.value });
  return commit;
}

/** Git takes in no file of a repository inside another one: what was done in there would be gone. */
async function foreignRepository(
  { repository, folder }: Files,
  before: string,
  after: string,
): Promise<Result<void, string>> {
  const [changes, known] = [await changesBetween(repository, before, after), await repositoriesIn(repository, after)];
  if (!changes.ok) return changes;
  if (!known.ok) return known;
  const changed = changes.value.find(({ isRepository }) => isRepository)?.name;
  if (changed !== undefined) return err(repositoryInside(changed));
  const filled = known.value.find((name) => !isGone(join(folder, name)) && !isWhole(join(folder, name)));
  if (filled !== undefined)
    return err(`files were written into ${filled}, which is a repository of its own: git takes in none of them`);
  return ok(undefined);
}

function repositoryInside(name: string): string {
  return `${name} is a git repository of its own, and git takes in none of its files; remove \`${name}/.git\` if they belong to this one, or make it outside of the worktree`;
}

/** Removes the files, and what git knows of them. Cut off in the middle, it is never taken for work that deleted files. */
export async function removeWorktree(folder: string, admin: string | undefined): Promise<void> {
  const gone = `${folder}.gone`;
  if (existsSync(folder)) renameSync(folder, gone);
  await rm(gone, { recursive: true, force: true });
  if (admin !== undefined) rmSync(admin, { recursive: true, force: true });
}

/** What git has of the worktree in a folder: found by what git itself wrote, never by what lies in the folder. */
export function adminOf({ common }: Pick<Repository, "common">, folder: string): string | undefined {
  const at = join(folder, ".git");
  for (const { admin, gitFile } of listAdmins(common)) if (gitFile === at) return admin;
  return undefined;
}

/** Brings a patch into a fresh worktree. */
export function applyPatch(
  { git }: Repository,
  { folder, admin }: Worktree,
  patch: string,
): Promise<Result<string, string>> {
  const env = { GIT_DIR: admin, GIT_WORK_TREE: folder };
  return call(git, ["apply", "--3way", "--whitespace=nowarn", patch], { cwd: folder, env });
}

/** Whether the files are there: a folder that was removed or replaced meanwhile says nothing of what was done. */
export function isWhole(folder: string): boolean {
  const isFolder = lstatSync(folder, { throwIfNoEntry: false })?.isDirectory() === true;
  return isFolder && existsSync(join(folder, ".git"));
}

/** Whether nothing is left of a folder. */
export function isGone(folder: string): boolean {
  const there = lstatSync(folder, { throwIfNoEntry: false });
  if (there?.isDirectory() !== true) return there === undefined;
  try {
    return readdirSync(folder).length === 0;
  } catch {
    // It may not be read: who knows what is in it.
    return false;
  }
}

/** What was done in it could not be put elsewhere. */
export function keepForPeople(folder: string, base: string): void {
  writeRecord(folder, { base, ...readRecord(folder), isOnly: true });
}

/** What is known of a worktree is safe elsewhere. */
export function dropRecord(folder: string): void {
  rmSync(recordFile(folder), { force: true });
}

export function readRecord(folder: string): WorktreeRecord | undefined {
  const read = parseJson(readText(recordFile(folder)) ?? "");
  const { base, left, isOnly } = read.ok && isJsonObject(read.value) ? read.value : {};
  if (!isCommit(base)) return undefined;
  return { base, ...(isCommit(left) && { left }), ...(isOnly === true && { isOnly }) };
}

function writeRecord(folder: string, record: WorktreeRecord): void {
  writeFileSync(recordFile(folder), `${JSON.stringify(record)}\n`, { mode: 0o600 });
}

function recordFile(folder: string): string {
  return `${folder}.json`;
}

function isCommit(value: unknown): value is string {
  return typeof value === "string" && /^[0-9a-f]{40,64}$/.test(value);
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}
