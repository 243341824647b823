import { constants, type Stats } from "node:fs";
import { type FileHandle, lstat, open, readlink, realpath } from "node:fs/promises";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { type Result, err, ok } from "../model/result.ts";
import { isSecretFile } from "./secret-files.ts";

/** A path that lies in the workspace and may be read. */
export interface Place {
  /** Absolute, without any symbolic link. */
  readonly real: string;
  /** From the workspace, `/` as separator; empty for the workspace itself. */
  readonly relative: string;
}

export interface Opened {
  readonly handle: FileHandle;
  readonly stats: Stats;
  readonly place: Place;
  /** A path other calls can use that leads to exactly what was opened, also when its name is swapped meanwhile. */
  readonly stable: string;
}

/**
 * Where a path of a model leads, links followed. Refused with a sentence for the model: everything outside the
 * workspace, whether it exists or not, flow's own state, and files that hold credentials. A file that does not exist
 * yet has a place when its deepest existing parent has one.
 */
export async function placeOf(workspace: string, path: string): Promise<Result<Place, string>> {
  const spelling = refusedSpelling(path);
  if (spelling !== undefined) return err(`${shown(path)} ${spelling}`);
  const root = await realpath(workspace);
  const wanted = resolve(root, path);
  const asked = check(root, wanted, path);
  const known = isInside(root, wanted);
  // A link with the name of a secret is refused for its own name too.
  if (known && !asked.ok) return asked;
  try {
    const real = await realpathOfDeepest(wanted);
    return real === undefined ? err(`${shown(path)} is a symbolic link that leads nowhere`) : check(root, real, path);
  } catch (error) {
    // Outside, what exists and what does not must look the same.
    return known ? err(`${shown(path)} ${explain(error)}`) : asked;
  }
}

/** Opens a regular file for reading, or a folder for listing; what was opened is checked again, after the fact. */
export async function openInside(
  workspace: string,
  path: string,
  kind: "file" | "folder",
): Promise<Result<Opened, string>> {
  const place = await placeOf(workspace, path);
  if (!place.ok) return place;
  const wanted = kind === "folder" ? constants.O_DIRECTORY : 0;
  let handle: FileHandle | undefined;
  try {
    // Not blocking: a FIFO opens at once and is then refused for what it is.
    handle = await open(place.value.real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | wanted);
    const opened = await verify(await realpath(workspace), handle, path, place.value);
    const result = opened.ok ? ofKind(opened.value, kind, path) : opened;
    if (!result.ok) await handle.close();
    return result;
  } catch (error) {
    await handle?.close();
    return err(`${shown(path)} ${explain(error)}`);
  }
}

/** The path as it stands in a message: quoted, control characters spelled, a long one cut. */
export function shown(path: string): string {
  return JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path);
}

function refusedSpelling(path: string): string | undefined {
  if (path.includes("\0")) return "contains a NUL character";
  if (path.startsWith("~")) return "starts with ~, which is not expanded; write a path below the workspace";
  if (/^(?:file:|[a-z][a-z0-9+.-]*:\/\/)/i.test(path)) return "is a URL; write a path below the workspace";
  if (/^(?:[a-z]:[\\/]|\\\\)/i.test(path)) return "is a Windows path; write a path below the workspace";
  return undefined;
}

function check(root: string, absolute: string, path: string): Result<Place, string> {
  if (!isInside(root, absolute))
    return err(`${shown(path)} leads outside the workspace; only what lies below it can be reached`);
  const inside = relative(root, absolute).split(sep).join("/");
  if (inside.split("/").some((segment) => segment.toLowerCase() === ".flow"))
    return err(`${shown(path)} belongs to flow's own state, which tools cannot touch`);
  if (isSecretFile(inside)) return err(`${shown(path)} is a file that holds credentials; no tool touches it`);
  return ok({ real: absolute, relative: inside });
}

function isInside(root: string, absolute: string): boolean {
  return absolute === root || absolute.startsWith(root.endsWith(sep) ? root : root + sep);
}

/** The real path of the deepest parent that exists, and the rest; undefined where a link leads nowhere. */
async function realpathOfDeepest(absolute: string): Promise<string | undefined> {
  try {
    return await realpath(absolute);
  } catch (error) {
    if (codeOf(error) !== "ENOENT" || dirname(absolute) === absolute) throw error;
  }
  if (await isLink(absolute)) return undefined;
  const parent = await realpathOfDeepest(dirname(absolute));
  return parent === undefined ? undefined : join(parent, basename(absolute));
}

async function isLink(path: string): Promise<boolean> {
  try {
    return (await lstat(path)).isSymbolicLink();
  } catch (error) {
    if (codeOf(error) === "ENOENT") return false;
    throw error;
  }
}

/** Asks the system what the descriptor really is: between the check and the opening a name may have been swapped. */
async function verify(root: string, handle: FileHandle, path: string, place: Place): Promise<Result<Opened, string>> {
  const stats = await handle.stat();
  if (process.platform === "linux") {
    const stable = `/proc/${process.pid}/fd/${handle.fd}`;
    const target = await readlink(stable);
    const found = check(root, stats.nlink === 0 ? target.replace(/ \(deleted\)$/, "") : target, path);
    return found.ok ? ok({ handle, stats, place: found.value, stable }) : found;
  }
  const again = await lstat(await realpath(place.real));
  if ((await realpath(place.real)) !== place.real || again.ino !== stats.ino || again.dev !== stats.dev)
    return err(`${shown(path)} was replaced while it was being opened`);
  return ok({ handle, stats, place, stable: place.real });
}

function ofKind(opened: Opened, kind: "file" | "folder", path: string): Result<Opened, string> {
  const { stats } = opened;
  if (kind === "file" && stats.isDirectory()) return err(`${shown(path)} is a folder; use LS or Glob`);
  if (kind === "file" && !stats.isFile()) return err(`${shown(path)} is not a regular file`);
  return ok(opened);
}

export function explain(error: unknown): string {
  const code = codeOf(error);
  switch (code) {
    case "ENOENT":
      return "does not exist";
    case "ENOTDIR":
      return "is not a folder, or goes through a file";
    case "EACCES":
    case "EPERM":
      return "may not be read by this user";
    case "ELOOP":
      return "goes through too many symbolic links";
    case "ENAMETOOLONG":
      return "has a name that is too long";
    case "ENXIO":
      return "is not a regular file";
    case "EMFILE":
    case "ENFILE":
      return "cannot be opened: too many files are open";
    case undefined:
      throw error;
    default:
      return `cannot be read (${code})`;
  }
}

export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}
