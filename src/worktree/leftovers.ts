import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";

/** A worktree as git's own files have it. */
interface Admin {
  readonly admin: string;
  /** The file `.git` in its folder, absolute. */
  readonly gitFile: string;
}

/** A worktree that lies in the folder of a run: of this one, of one that goes on, or of one that died. */
export interface Left {
  readonly folder: string;
  readonly admin: string;
  /** The run's folder. */
  readonly run: string;
}

/** The worktrees of runs that the repository around a folder has. Starts no process: most runs have nothing to find. */
export function worktreesOfRuns(workspace: string): readonly Left[] {
  const common = commonFolder(workspace);
  if (common === undefined) return [];
  return listAdmins(common).flatMap(({ admin, gitFile }) => {
    const folder = dirname(gitFile);
    const run = dirname(dirname(folder));
    const isOfRun = basename(dirname(folder)) === "worktrees" && /^\d{8}-\d{6}-[a-z0-9]{5}$/.test(basename(run));
    return isOfRun ? [{ folder, admin, run }] : [];
  });
}

export function listAdmins(common: string): readonly Admin[] {
  const parent = join(common, "worktrees");
  return namesIn(parent).flatMap((name) => {
    const gitFile = readText(join(parent, name, "gitdir"));
    return gitFile === undefined ? [] : [{ admin: join(parent, name), gitFile: resolve(parent, name, gitFile) }];
  });
}

/** The nearest `.git` upwards: a folder, or in a worktree a file that names one, which names what it shares. */
function commonFolder(workspace: string): string | undefined {
  for (let folder = resolve(workspace); ; folder = dirname(folder)) {
    const git = join(folder, ".git");
    if (readText(join(git, "HEAD")) !== undefined) return git;
    const link = readText(git);
    if (link?.startsWith("gitdir: ") === true) {
      const own = resolve(folder, link.slice("gitdir: ".length));
      return resolve(own, readText(join(own, "commondir")) ?? ".");
    }
    if (folder === dirname(folder)) return undefined;
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8").trim();
  } catch {
    return undefined;
  }
}
