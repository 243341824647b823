import { lstat, realpath } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";

/** Where rules and calls are at home; both absolute and without symbolic links. */
export interface Place {
  readonly workspace: string;
  readonly home: string;
  /** The workspace that this one stands for: what is written of its files, by their whole path, holds here as well. */
  readonly standsFor?: string;
}

/** A path as it was asked for and as the file system has it, both absolute. */
export interface Resolved {
  readonly asked: string;
  /** Links followed as far as the path exists; absent when a link leads nowhere or in circles. */
  readonly real?: string;
}

export async function resolvePath(path: string, { workspace, home }: Place): Promise<Resolved> {
  const asked = resolve(workspace, atHome(path, home));
  const real = path.includes("\0") ? undefined : await realpathOfDeepest(asked);
  return { asked, ...(real !== undefined && { real }) };
}

/** `~`, `$HOME` and `${HOME}` at the beginning of a path, spelled out. */
export function atHome(path: string, home: string): string {
  const begin = /^(?:~|\$HOME|\$\{HOME\})(?=\/|$)/.exec(path)?.[0];
  return begin === undefined ? path : home + path.slice(begin.length);
}

async function realpathOfDeepest(path: string): Promise<string | undefined> {
  try {
    return await realpath(path);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code !== "ENOENT" && code !== "ENOTDIR") return code === "ENAMETOOLONG" ? path : undefined;
  }
  if (await isLink(path)) return undefined;
  const parent = await realpathOfDeepest(dirname(path));
  return parent === undefined ? undefined : join(parent, basename(path));
}

async function isLink(path: string): Promise<boolean> {
  try {
    return (await lstat(path)).isSymbolicLink();
  } catch {
    return false;
  }
}
