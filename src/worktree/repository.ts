import { existsSync } from "node:fs";
import { copyFile, stat, utimes } from "node:fs/promises";
import { join, relative } from "node:path";
import { err, ok, type Result } from "../model/result.ts";
import type { Git, GitCall } from "../process/git.ts";

/** The repository around a workspace. All paths are absolute and without symbolic links. */
export interface Repository {
  readonly git: Git;
  /** The top of the checked out files. */
  readonly top: string;
  /** What all worktrees of it share: `.git`, for most. */
  readonly common: string;
  /** The index of the user. It is read and never written. */
  readonly index: string;
  /** The workspace as seen from `top`; empty where they are the same. */
  readonly inside: string;
}

/** The oldest git that merges without touching any file (`git merge-tree --write-tree`). */
const oldest: readonly [number, number] = [2, 38];

/** The error is why there can be no worktree, as the end of a sentence, with what to do. */
export async function findRepository(git: Git, workspace: string): Promise<Result<Repository, string>> {
  const version = await call(git, ["version"]);
  if (!version.ok) return err(`git cannot be used: ${version.error}`);
  const [, major = "0", minor = "0"] = /(\d+)\.(\d+)/.exec(version.value) ?? [];
  if (Number(major) < oldest[0] || (Number(major) === oldest[0] && Number(minor) < oldest[1]))
    return err(`it takes git ${oldest.join(".")} or newer, and here is ${version.value.replace("git version ", "")}`);
  const isBare = await call(git, ["rev-parse", "--is-bare-repository"]);
  if (!isBare.ok && isBare.error.includes("not a git repository"))
    return err(`${workspace} is in no git repository; make one with \`git init\`, and commit what is there`);
  if (!isBare.ok) return err(`git says of ${workspace}: ${isBare.error}`);
  if (isBare.value === "true") return err("the repository is bare: it has no files; start flow in a clone of it");
  const places = ["--show-toplevel", "--git-common-dir", "--git-path", "index"];
  const found = await call(git, ["rev-parse", "--path-format=absolute", ...places]);
  if (!found.ok) return err(`git says of ${workspace}: ${found.error}`);
  const [top = "", common = "", index = ""] = found.value.split("\n");
  if (!(await call(git, ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])).ok)
    return err("the repository has no commit yet, so there is nothing to start from; commit what is there");
  const inside = relative(top, workspace);
  return ok({ git, top, common, index, inside });
}

/** Changed files that git knows, as `git status` has them: what would be mixed with a run's own changes. */
export async function uncommitted({ git, top }: Repository): Promise<Result<readonly string[], string>> {
  const status = [
    "status",
    "--porcelain=v1",
    "-z",
    "--no-renames",
    "--untracked-files=no",
    "--ignore-submodules=dirty",
  ];
  const said = await call(git, status, { cwd: top });
  if (!said.ok) return said;
  return ok(paths(said.value).map((entry) => entry.slice(3)));
}

/** A list of files with an index of its own, so that the user's stays as it is. */
export interface Files {
  readonly repository: Repository;
  /** The folder the files lie in. */
  readonly folder: string;
  /** The index, a file of ours. Its folder exists. */
  readonly index: string;
  /** What git has of this worktree, where `folder` is not the user's own. */
  readonly admin?: string;
  /** Below `folder`, left out. */
  readonly without: readonly string[];
}

/** The tree of the files as they are now: all that git knows, and what is new and not ignored. */
export async function treeOf(files: Files): Promise<Result<string, string>> {
  const { repository, folder, index, without } = files;
  const known = files.admin === undefined ? repository.index : join(files.admin, "index");
  if (!existsSync(index) && existsSync(known)) await copyIndex(known, index);
  const left = without.map((path) => `:(exclude,literal)${relative(folder, path)}`);
  const added = await call(repository.git, ["add", "--all", "--", ".", ...left], place(files));
  if (!added.ok) return err(`git cannot read the files in ${folder}: ${added.error}`);
  return call(repository.git, ["write-tree"], place(files));
}

/**
 * With its time: git takes a file for unchanged that is as old as the index, or older, and has its size. A younger copy
 * would hide what was written in the very moment in which the index was.
 */
async function copyIndex(from: string, to: string): Promise<void> {
  const { atimeMs, mtimeMs } = await stat(from);
  await copyFile(from, to);
  await utimes(to, atimeMs / 1000, Math.floor(mtimeMs) / 1000);
}

/** A commit of a tree that no branch names, on top of another. */
export function commitOf(
  { git, top }: Repository,
  tree: string,
  { on, message }: Commit,
): Promise<Result<string, string>> {
  return call(git, ["commit-tree", "-p", on, "-m", message, tree], { cwd: top });
}

interface Commit {
  readonly on: string;
  readonly message: string;
}

/** A file in which two trees differ, by its name from the top; `status` is the letter that git has for it. */
export interface Changed {
  readonly name: string;
  readonly status: string;
  /** What it becomes is a repository of its own, of which a tree holds the commit and no file. */
  readonly isRepository: boolean;
}

const repositoryMode = "160000";

export async function changesBetween(
  { git, top }: Repository,
  from: string,
  to: string,
): Promise<Result<Changed[], string>> {
  const said = await call(git, ["diff-tree", "-r", "-z", "--raw", "--no-renames", from, to], { cwd: top });
  if (!said.ok) return said;
  const words = paths(said.value);
  const changes: Changed[] = [];
  for (let at = 0; at < words.length; at += 2) {
    const [, mode, , , status = ""] = (words[at] ?? "").split(" ");
    changes.push({ name: words[at + 1] ?? "", status, isRepository: mode === repositoryMode });
  }
  return ok(changes);
}

/** The repositories of their own that a tree has, submodules for example. */
export async function repositoriesIn({ git, top }: Repository, tree: string): Promise<Result<string[], string>> {
  const said = await call(git, ["ls-tree", "-r", "-z", "--format=%(objectmode) %(path)", tree], { cwd: top });
  if (!said.ok) return said;
  const [mark, lines] = [`${repositoryMode} `, paths(said.value)];
  return ok(lines.filter((line) => line.startsWith(mark)).map((line) => line.slice(mark.length)));
}

/** Writes a patch that `git apply` takes, binary files included. Git itself does not say when the disk was full. */
export async function writePatch(
  { git, top }: Repository,
  { from, to, file }: { readonly from: string; readonly to: string; readonly file: string },
): Promise<Result<string, string>> {
  const plain = ["--no-ext-diff", "--no-textconv", "--no-renames", "--src-prefix=a/", "--dst-prefix=b/", "--no-color"];
  const how = ["-r", "-p", "--binary", "--full-index", ...plain, `--output=${file}`];
  return call(git, ["diff-tree", ...how, from, to], { cwd: top });
}

/** The files that a patch changes; the error is one that was cut off. */
export async function filesOfPatch({ git, top }: Repository, file: string): Promise<Result<string[], string>> {
  const said = await call(git, ["apply", "--numstat", "-z", "--whitespace=nowarn", file], { cwd: top });
  if (!said.ok) return said;
  return ok([...new Set(paths(said.value).map((line) => line.slice(line.indexOf("\t", line.indexOf("\t") + 1) + 1)))]);
}

export interface Merge {
  /** The commit both began with. */
  readonly base: string;
  readonly ours: string;
  readonly theirs: string;
}

/** What a merge of two trees gives; `conflicts` are the files that both have changed in a way that does not go together. */
export type Merged = { readonly tree: string } | { readonly conflicts: readonly string[] };

/** Merges two trees in the repository alone: no file is touched. */
export async function mergeTrees(
  repository: Repository,
  { base, ours, theirs }: Merge,
): Promise<Result<Merged, string>> {
  const { git, top } = repository;
  if (ours === theirs) return ok({ tree: ours });
  const on = { on: base, message: "flow: one side of a merge" };
  const sides = [await commitOf(repository, ours, on), await commitOf(repository, theirs, on)];
  const commits = sides.flatMap((side) => (side.ok ? [side.value] : []));
  const failed = sides.find((side) => !side.ok);
  if (failed?.ok === false) return failed;
  const answer = await git(["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", ...commits], {
    cwd: top,
  });
  if (answer.kind === "broken") return err(answer.message);
  if (answer.code > 1) return err(said(answer.stderr));
  const [tree = "", ...conflicts] = paths(answer.stdout);
  if (answer.code === 0) return ok({ tree });
  // A file that is a folder on the other side goes by a name with the commit in it.
  const marks = new RegExp(`~(?:${commits.join("|")})(?:_\\d+)?`, "g");
  return ok({ conflicts: [...new Set(conflicts.map((name) => name.replace(marks, "")))] });
}

/** Brings files from one tree to another. All of them are looked at before the first is written. */
export async function updateFiles(files: Files, from: string, to: string): Promise<Result<string, string>> {
  return call(files.repository.git, ["read-tree", "-m", "-u", from, to], place(files));
}

/** Puts these files back as the index has them; what it has not is left to the caller. */
export async function restoreFiles(files: Files, names: readonly string[]): Promise<Result<string, string>> {
  const stdin = names.map((name) => `${name}\0`).join("");
  return call(files.repository.git, ["checkout-index", "--force", "-z", "--stdin"], { ...place(files), stdin });
}

export async function isIgnored({ git, top }: Repository, path: string): Promise<boolean> {
  return (await call(git, ["check-ignore", "--quiet", path], { cwd: top })).ok;
}

/** Those of some files that git ignores. */
export async function ignoredOf(files: Files, names: readonly string[]): Promise<readonly string[]> {
  const stdin = names.map((name) => `${name}\0`).join("");
  const said = await call(files.repository.git, ["check-ignore", "-z", "--stdin"], { ...place(files), stdin });
  return said.ok ? paths(said.value) : [];
}

/** Fills the index of some files with a tree; the files stay as they are. */
export async function loadIndex(files: Files, tree: string): Promise<Result<string, string>> {
  return call(files.repository.git, ["read-tree", tree], place(files));
}

/** What git says on stdout; the error is what it says on stderr, or why it did not start. */
export async function call(git: Git, args: readonly string[], how: GitCall = {}): Promise<Result<string, string>> {
  const answer = await git(args, how);
  if (answer.kind === "broken") return err(answer.message);
  return answer.code === 0 ? ok(answer.stdout.replace(/\n$/, "")) : err(said(answer.stderr));
}

function place({ repository, folder, index, admin }: Files): GitCall {
  const git = admin === undefined ? {} : { GIT_DIR: admin, GIT_WORK_TREE: folder };
  return { cwd: admin === undefined ? repository.top : folder, env: { ...git, GIT_INDEX_FILE: index } };
}

function paths(text: string): string[] {
  return text.split("\0").filter((path) => path !== "");
}

/** As one line. */
function said(stderr: string): string {
  const lines = stderr.split("\n").filter((line) => line.trim() !== "" && !line.startsWith("hint:"));
  const text = lines.map((line) => line.replace(/^(?:fatal|error): /, "").trim()).join("; ");
  return text === "" ? "git failed and did not say why" : text.slice(0, 500);
}
