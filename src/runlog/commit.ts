import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";

/** The commit a workspace has checked out, read from `.git` without starting git; null where there is none. */
export function gitCommit(workspace: string): string | null {
  const folder = gitFolder(workspace);
  const head = folder === undefined ? undefined : read(join(folder, "HEAD"));
  if (folder === undefined || head === undefined) return null;
  if (!head.startsWith("ref: ")) return head;
  const ref = head.slice(5);
  const shared = resolve(folder, read(join(folder, "commondir")) ?? ".");
  return read(join(folder, ref)) ?? read(join(shared, ref)) ?? packed(shared, ref) ?? null;
}

/** `.git` is a folder, or in a worktree a file that names one. */
function gitFolder(workspace: string): string | undefined {
  const path = join(workspace, ".git");
  const link = read(path);
  if (link === undefined) return read(join(path, "HEAD")) === undefined ? undefined : path;
  return link.startsWith("gitdir: ") ? resolve(workspace, link.slice(8)) : undefined;
}

function packed(folder: string, ref: string): string | undefined {
  const line = read(join(folder, "packed-refs"))
    ?.split("\n")
    .find((it) => it.endsWith(` ${ref}`));
  return line?.slice(0, line.indexOf(" "));
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return undefined;
  }
}
