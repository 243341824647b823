import {
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, sep } from "node:path";
import { err, ok, type Result } from "../model/result.ts";
import { createGit } from "../process/git.ts";
import type { Marks } from "../process/marks.ts";
import {
  changesBetween,
  type Files,
  filesOfPatch,
  findRepository,
  isIgnored,
  type Repository,
  writePatch,
} from "../worktree/repository.ts";
import type { Masking } from "./masking.ts";

export interface WorktreeStoreOptions {
  /** Absolute. */
  readonly workspace: string;
  readonly env: { readonly [name: string]: string | undefined };
  readonly marks: Marks;
  readonly masking: Masking;
  /** The run's; made when it is needed. */
  readonly folder: string;
  readonly tempFolder: string;
}

/** Where the worktrees of one run are made, and what is left of them is kept. */
export interface WorktreeStore {
  readonly repository: Repository;
  /** The files of the workspace. */
  readonly files: Files;
  /** The worktree of that name. */
  folderOf(name: string): string;
  /** An index of ours. */
  indexOf(name: string): string;
  /** A name like the given one that no worktree of the run has had. */
  newName(like: string): string;
  /** One after the other: of what reads and writes the files of the workspace. */
  inTurn<T>(work: () => Promise<T>): Promise<T>;
  /** Where what was changed in the worktree of that name is kept. */
  patchOf(name: string): string;
  /** The folder of the worktrees goes with the last of them. */
  leave(): void;
  /** Writes what was changed between two commits into a file; none is made where nothing was. */
  keep(file: string, from: string, to: string): Promise<Result<Kept, string>>;
}

export interface Kept {
  /** Absolute; absent where nothing was changed. */
  readonly patch?: string;
  /** Files that were changed. */
  readonly files: readonly string[];
}

/** The error is why there can be no worktrees here. */
export async function openWorktreeStore(options: WorktreeStoreOptions): Promise<Result<WorktreeStore, string>> {
  const { workspace, env, marks, tempFolder } = options;
  const git = createGit({ cwd: workspace, env, marks });
  const found = await findRepository(git, realpathSync(workspace));
  if (!found.ok) return found;
  const repository = found.value;
  mkdirSync(options.folder, { recursive: true, mode: 0o700 });
  const folder = realpathSync(options.folder);
  // Those that are ignored as they are cannot be named: git takes that for a wish to add them.
  const own = ownFolders(repository.top, [join(realpathSync(workspace), ".flow"), folder]);
  const ignored = await Promise.all(own.map((path) => isIgnored(repository, path)));
  const folderOf = (name: string): string => join(folder, "worktrees", name);
  const patchOf = (name: string): string => join(folder, "files", `${name}.patch`);
  const taken = new Set<string>();
  let queue: Promise<unknown> = Promise.resolve();
  return ok({
    repository,
    files: {
      repository,
      folder: repository.top,
      index: join(tempFolder, "workspace.index"),
      without: own.filter((_, index) => ignored[index] !== true),
    },
    folderOf,
    indexOf: (name) => join(tempFolder, `${name}.index`),
    newName(like) {
      const plain = like
        .replaceAll(/[^A-Za-z0-9_]+/g, "-")
        .replace(/-$/, "")
        .slice(0, 60);
      for (let count = 1; ; count++) {
        const name = `${plain}-${count}`;
        if (taken.has(name) || existsSync(patchOf(name)) || existsSync(folderOf(name))) continue;
        taken.add(name);
        return name;
      }
    },
    inTurn(work) {
      const turn = queue.then(work);
      queue = turn.catch(() => undefined);
      return turn;
    },
    keep: (file, from, to) => keepPatch(repository, { file, from, to, masking: options.masking }),
    patchOf,
    leave: () => removeEmpty(join(folder, "worktrees")),
  });
}

function removeEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch (error) {
    // It is not there, or something is left in it.
    if (!(error instanceof Error && "code" in error)) throw error;
  }
}

interface Keeping {
  readonly file: string;
  readonly from: string;
  readonly to: string;
  readonly masking: Masking;
}

async function keepPatch(repository: Repository, { file, from, to, masking }: Keeping): Promise<Result<Kept, string>> {
  const changes = await changesBetween(repository, from, to);
  if (!changes.ok) return changes;
  const files = changes.value.map(({ name }) => name);
  if (files.length === 0) return ok({ files });
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  // Under its name there is nothing but the whole of it.
  const part = `${file}.part`;
  const written = await writePatch(repository, { from, to, file: part });
  const there = written.ok ? await filesOfPatch(repository, part) : written;
  const isWhole = there.ok && there.value.length === files.length && isMasked(part, masking);
  if (isWhole) {
    renameSync(part, file);
    return ok({ patch: file, files });
  }
  rmSync(part, { force: true });
  return err(`the patch ${file} could not be written${there.ok ? "" : `: ${there.error}`}`);
}

/** What is flow's own is in no tree, wherever it lies. */
function ownFolders(top: string, folders: readonly string[]): string[] {
  return folders.filter((folder) => isInside(folder, top));
}

function isInside(path: string, folder: string): boolean {
  return path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

/**
 * A patch with a secret in it would be one more place to look for it; the commit it was made of has it as it is. False
 * when the disk does not take it.
 */
function isMasked(file: string, { hasSecrets, mask }: Masking): boolean {
  if (!hasSecrets) return true;
  const plain = readFileSync(file, "utf8");
  const masked = mask.mask(plain);
  if (masked === plain) return true;
  try {
    writeFileSync(file, masked);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error) return false;
    throw error;
  }
}
