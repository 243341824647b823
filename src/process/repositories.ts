import { lstatSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";

/** Folders that are looked into for repositories; a workspace with more of them has those beyond it unguarded. */
const mostFolders = 5_000;
const skipped = new Set([".git", ".flow", "node_modules"]);

/** The folders below this one that hold a `.git`, nearest first. No symbolic link is followed. */
export function repositoriesBelow(workspace: string): string[] {
  const found: string[] = [];
  const queue = [workspace];
  for (let at = 0; at < queue.length && at < mostFolders; at++) {
    const folder = queue[at] ?? workspace;
    const entries = foldersAndFiles(folder);
    if (folder !== workspace && entries.some((entry) => entry.name === ".git" && !entry.isSymbolicLink()))
      found.push(folder);
    for (const entry of entries)
      if (entry.isDirectory() && !skipped.has(entry.name)) queue.push(join(folder, entry.name));
  }
  return found;
}

function foldersAndFiles(folder: string): ReturnType<typeof readEntries> {
  try {
    return readEntries(folder);
  } catch {
    // Gone meanwhile, or not for this user: then nobody in the sandbox gets further either.
    return [];
  }
}

function readEntries(folder: string) {
  return readdirSync(folder, { withFileTypes: true });
}

/** Where git keeps what belongs to a worktree that is not the main one; absolute, without symbolic links. */
export interface LinkedWorktree {
  /** Of this worktree alone: its index, its HEAD. */
  readonly own: string;
  /** What it shares with all others: objects, branches, configuration. */
  readonly common: string;
}

/** What a `.git` file leads to, if both sides say so: a file alone could lead anywhere. */
export function linkedWorktree(file: string): LinkedWorktree | undefined {
  try {
    const [, target] = /^gitdir: (.+)\n?$/.exec(readFileSync(file, "utf8")) ?? [];
    if (target === undefined) return undefined;
    const own = realpathSync(resolve(dirname(file), target));
    const common = realpathSync(resolve(own, readFileSync(join(own, "commondir"), "utf8").trim()));
    const back = resolve(own, readFileSync(join(own, "gitdir"), "utf8").trim());
    const isItsOwn = dirname(own) === join(common, "worktrees") && basename(back) === ".git";
    return isItsOwn && realpathSync(dirname(back)) === realpathSync(dirname(file)) ? { own, common } : undefined;
  } catch {
    // Not there, or not readable: no worktree that git itself could use.
    return undefined;
  }
}

/** Whether a folder is one, and no link on the way to it leads elsewhere. */
export function isRealFolder(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true && realpathSync(path) === path;
}
