import { lstatSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { err, ok, type Result } from "../model/result.ts";
import {
  call,
  type Changed,
  changesBetween,
  type Files,
  ignoredOf,
  loadIndex,
  mergeTrees,
  type Repository,
  restoreFiles,
  treeOf,
  updateFiles,
} from "./repository.ts";

export interface Change {
  /** The commit it begins with, and one of what became of it. */
  readonly base: string;
  readonly tree: string;
}

/** What became of a change; a conflict has touched no file. */
export type Applied =
  | { readonly kind: "applied" }
  | { readonly kind: "conflict"; readonly files: readonly string[]; readonly why: string };

/** Told before the first file is written: the trees of the files before and after. */
export type BeforeWriting = (from: string, to: string) => void;

/** Others may write to the same files; then it is tried on what they have made of them. */
const tries = 3;

/** Brings a change into files that others may have changed since: all of it, or nothing. The error is a broken git or disk. */
export async function applyChange(
  files: Files,
  { base, tree }: Change,
  before: BeforeWriting,
): Promise<Result<Applied, string>> {
  const { repository } = files;
  for (let attempt = 1; ; attempt++) {
    const ours = await treeOf(files);
    if (!ours.ok) return ours;
    const merged = await mergeTrees(repository, { base, ours: ours.value, theirs: tree });
    if (!merged.ok) return merged;
    if ("conflicts" in merged.value)
      return conflict(
        merged.value.conflicts,
        "the workspace has changed meanwhile in a way that does not go together with it",
      );
    const to = merged.value.tree;
    if (to === ours.value) return ok({ kind: "applied" });
    const changes = await changesBetween(repository, ours.value, to);
    if (!changes.ok) return changes;
    const covered = coveredFiles(files.folder, changes.value);
    if (covered.length > 0) {
      const ignored = await ignoredOf(files, covered);
      if (ignored.length > 0) return conflict(ignored, "the workspace has a file there that git ignores");
      // One that has come since they were read: the next time it is among them.
      if (attempt < tries) continue;
      return conflict(covered, "the workspace has a file there that git does not know");
    }
    before(ours.value, to);
    const updated = await updateFiles(files, ours.value, to);
    if (updated.ok) return ok({ kind: "applied" });
    if (!isRefusal(updated.error)) return takeBack(files, changes.value, updated.error);
    if (attempt === tries)
      return conflict(namesOf(changes.value), "the workspace changes all the time while it is applied");
  }
}

/** Undoes what a crash left half-written of a change from one tree to another: such files are as before again. */
export async function healFiles(files: Files, from: string, to: string): Promise<Result<void, string>> {
  const { repository, folder } = files;
  const now = await treeOf(files);
  if (!now.ok) return now;
  const [changes, sinceFrom, untilTo] = [
    await changesBetween(repository, from, to),
    await changesBetween(repository, from, now.value),
    await changesBetween(repository, now.value, to),
  ];
  if (!changes.ok) return changes;
  if (!sinceFrom.ok) return sinceFrom;
  if (!untilTo.ok) return untilTo;
  const [moved, missing] = [new Set(namesOf(sinceFrom.value)), new Set(namesOf(untilTo.value))];
  const cut: Changed[] = [];
  for (const change of changes.value) {
    if (!moved.has(change.name) || !missing.has(change.name)) continue;
    if (await isBeginning(repository, join(folder, change.name), `${to}:${change.name}`)) cut.push(change);
  }
  if (cut.length === 0) return ok(undefined);
  const past: Files = { ...files, index: `${files.index}.before` };
  const loaded = await loadIndex(past, from);
  if (!loaded.ok) return loaded;
  const back = await putBack(past, cut);
  rmSync(past.index, { force: true });
  return back.ok ? ok(undefined) : back;
}

function conflict(files: readonly string[], why: string): Result<Applied, never> {
  return ok({ kind: "conflict", files, why });
}

/** Git says so before it writes anything. */
function isRefusal(message: string): boolean {
  return /not uptodate|would be overwritten|would be removed|would lose untracked/.test(message);
}

async function takeBack(files: Files, changes: readonly Changed[], why: string): Promise<Result<never, string>> {
  const back = await putBack(files, changes);
  return err(back.ok ? why : `${why}; and what had been written could not be taken back: ${back.error}`);
}

async function putBack(files: Files, changes: readonly Changed[]): Promise<Result<string, string>> {
  for (const { name, status } of changes) {
    const there = status === "A" ? obstacleAt(files.folder, name) : undefined;
    if (there?.name === name && !there.isFolder) rmSync(join(files.folder, name), { force: true });
  }
  return restoreFiles(files, namesOf(changes.filter(({ status }) => status !== "A")));
}

/** What new files would lie over and git does not know: it would be gone without a trace. */
function coveredFiles(folder: string, changes: readonly Changed[]): string[] {
  const known = new Set(namesOf(changes.filter(({ status }) => status !== "A")));
  const covered = changes.flatMap(({ name, status }) => {
    const there = status === "A" ? obstacleAt(folder, name) : undefined;
    if (there === undefined) return [];
    // A folder whose files all go away makes room for a file of its name.
    return (there.isFolder ? filesBelow(folder, there.name) : [there.name]).filter((path) => !known.has(path));
  });
  return [...new Set(covered)];
}

/** What lies at a name, or lies in its way: something else than a folder above it. No link is followed. */
function obstacleAt(folder: string, name: string): { readonly name: string; readonly isFolder: boolean } | undefined {
  let path = "";
  for (const part of name.split("/")) {
    path = path === "" ? part : `${path}/${part}`;
    const there = lstatSync(join(folder, path), { throwIfNoEntry: false });
    if (there === undefined) return undefined;
    if (!there.isDirectory() || path === name) return { name: path, isFolder: there.isDirectory() };
  }
  return undefined;
}

function filesBelow(folder: string, name: string): string[] {
  try {
    return readdirSync(join(folder, name), { withFileTypes: true }).flatMap((entry) => {
      const path = `${name}/${entry.name}`;
      return entry.isDirectory() ? filesBelow(folder, path) : [path];
    });
  } catch {
    // It may not be read: who knows what is in it.
    return [name];
  }
}

async function isBeginning({ git, top }: Repository, file: string, object: string): Promise<boolean> {
  const whole = await call(git, ["cat-file", "blob", object], { cwd: top });
  if (!whole.ok) return false;
  try {
    // A cut may lie inside of a character.
    return whole.value.startsWith(readFileSync(file, "utf8").replace(/\uFFFD+$/, ""));
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "ENOENT";
  }
}

function namesOf(changes: readonly Changed[]): string[] {
  return changes.map(({ name }) => name);
}
