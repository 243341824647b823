import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, lstat, mkdir, open, realpath, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { type Result, err, ok } from "../model/result.ts";
import { markOf } from "./file-mark.ts";
import { codeOf, explain, type Place, placeOf, shown } from "./workspace-path.ts";

export interface Written {
  readonly place: Place;
  /** Its {@link markOf} from now on. */
  readonly mark: string;
}

/** Where a path of a model leads, if something may be written there. */
export async function writablePlace(workspace: string, path: string): Promise<Result<Place, string>> {
  const place = await placeOf(workspace, path);
  if (!place.ok) return place;
  if (place.value.relative === "") return err(`${shown(path)} is the workspace itself`);
  if (place.value.relative.split("/").some((segment) => segment.toLowerCase() === ".git"))
    return err(`${shown(path)} belongs to git, which tools cannot write`);
  return place;
}

/**
 * Writes a file of the workspace, whole or not at all: a new file takes the place of the old one and keeps its mode.
 * Folders that are missing are made. No symbolic link is followed on the way: each folder is opened from the one before.
 */
export async function writeInside(workspace: string, place: Place, content: Buffer): Promise<Result<Written, string>> {
  let folder: Folder | undefined;
  try {
    folder = await openFolder(await realpath(workspace), dirname(place.relative));
    const name = basename(place.relative);
    const mode = await modeOf(join(folder.path, name), place.relative);
    if (!mode.ok) return mode;
    const mark = await replace(folder.path, { name, content, mode: mode.value });
    return ok({ place, mark });
  } catch (error) {
    const code = codeOf(error);
    if (code === "ELOOP" || code === "ENOTDIR")
      return err(`${shown(place.relative)} was replaced while it was written`);
    if (code === "ENOSPC" || code === "EDQUOT")
      return err(`${shown(place.relative)} cannot be written: the disk is full`);
    if (code === "EROFS") return err(`${shown(place.relative)} cannot be written: the file system is read-only`);
    return err(`${shown(place.relative)} ${explain(error).replace("may not be read", "may not be written")}`);
  } finally {
    await folder?.handle.close();
  }
}

interface Folder {
  readonly handle: FileHandle;
  /** Leads to exactly what was opened, whatever happens to its name. */
  readonly path: string;
}

const openOptions = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

async function openFolder(root: string, relative: string): Promise<Folder> {
  let folder = await enter(root);
  try {
    for (const name of relative === "." ? [] : relative.split("/")) {
      const path = join(folder.path, name);
      const next = await enter(path).catch(async (error: unknown) => {
        if (codeOf(error) !== "ENOENT") throw error;
        await mkdir(path).catch(unlessThere);
        return enter(path);
      });
      await folder.handle.close();
      folder = next;
    }
    return folder;
  } catch (error) {
    await folder.handle.close();
    throw error;
  }
}

/** Elsewhere than on Linux a folder has no name but its own, and a swapped one is noticed only by `O_NOFOLLOW`. */
async function enter(path: string): Promise<Folder> {
  const handle = await open(path, openOptions);
  return { handle, path: process.platform === "linux" ? `/proc/${process.pid}/fd/${handle.fd}` : path };
}

function unlessThere(error: unknown): void {
  if (codeOf(error) !== "EEXIST") throw error;
}

/** The mode a new file takes over from the one it replaces; undefined where there is none. */
async function modeOf(path: string, name: string): Promise<Result<number | undefined, string>> {
  try {
    const stats = await lstat(path);
    if (stats.isDirectory()) return err(`${shown(name)} is a folder`);
    return stats.isFile() ? ok(stats.mode & 0o777) : err(`${shown(name)} is not a regular file`);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return ok(undefined);
    throw error;
  }
}

interface Replacement {
  readonly name: string;
  readonly content: Buffer;
  readonly mode: number | undefined;
}

async function replace(folder: string, { name, content, mode }: Replacement): Promise<string> {
  const draft = join(folder, `.${randomBytes(6).toString("hex")}.flow-draft`);
  const handle = await open(
    draft,
    constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW,
    0o666,
  );
  try {
    await handle.writeFile(content);
    if (mode !== undefined) await handle.chmod(mode);
    await rename(draft, join(folder, name));
    return markOf(await handle.stat());
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  } finally {
    await handle.close();
  }
}
