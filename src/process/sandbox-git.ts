import {
  existsSync,
  lstatSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  rmdirSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { dirname, join, relative } from "node:path";
import { isRealFolder, linkedWorktree, repositoriesBelow } from "./repositories.ts";

/** Below `.git`: what they hold is run, or says what is run, by whoever uses git outside. */
const fixed = ["config", "config.worktree", "commondir", "modules", "worktrees"];
/** Of them, what git takes for granted as soon as it is there. Nothing can be put in their place beforehand: git would read it. */
const unwanted = ["config.worktree", "commondir"];
/** What a commit writes. Each is held in its place: the sandbox of another worktree trusts these paths. */
const written = ["objects", "refs", "logs"];

/** How the repositories of a writable workspace are kept from being turned against whoever uses git outside. */
export interface GitHold {
  /**
   * bubblewrap's arguments. As a place something is mounted on, `.git` cannot be renamed and put together anew, nor can
   * a folder on the way to it. `closed`: nothing at all may be written there.
   */
  arguments(closed: boolean): string[];
  /** Watches over what cannot be mounted, from before a command starts until the function that is returned is called. */
  guard(): () => void;
}

/**
 * Repositories below the workspace are those that are there now. One that comes later may be of whoever is to be held,
 * and is as trustworthy; nobody in a sandbox can exchange a folder on the way to one that is known.
 */
export function holdGit(workspace: string): GitHold {
  const below = repositoriesBelow(workspace);
  const all = [workspace, ...below];
  let commands = 0;
  return {
    arguments: (closed) => [
      ...waysTo(below, workspace),
      ...below.filter((folder) => isRealFolder(folder)).flatMap((folder) => gitArguments(folder, { closed })),
      ...gitArguments(workspace, { closed, top: true }),
    ],
    guard() {
      commands += 1;
      const restore = all.map((folder) => watch(join(folder, ".git")));
      return () => {
        commands -= 1;
        for (const each of restore) each();
        const git = join(workspace, ".git");
        // To remove the folder uncovers it in every sandbox that has something mounted on it.
        if (commands === 0 && stateOf(git) === "none" && isThere(git)) removeEmpty(git);
      };
    },
  };
}

/** Every folder between the workspace and its repositories, mounted on itself. */
function waysTo(folders: readonly string[], workspace: string): string[] {
  const ways = new Set<string>();
  for (const folder of folders) {
    const steps = relative(workspace, folder).split("/");
    for (let length = 1; length <= steps.length; length++) ways.add(join(workspace, ...steps.slice(0, length)));
  }
  const inOrder = [...ways].toSorted((a, b) => a.split("/").length - b.split("/").length);
  return inOrder.filter((way) => isRealFolder(way)).flatMap((way) => ["--bind", way, way]);
}

interface Access {
  readonly closed: boolean;
  /** The workspace's own: where there is none, a read-only folder stands in for it, so that none can be made. */
  readonly top?: boolean;
}

function gitArguments(folder: string, { closed, top = false }: Access): string[] {
  const git = join(folder, ".git");
  switch (stateOf(git)) {
    case "none":
      return top ? ["--tmpfs", git, "--remount-ro", git] : [];
    case "folder":
      return closed ? ["--ro-bind", git, git] : folderArguments(git);
    case "link": {
      const real = targetOf(git, folder);
      if (real === undefined) return [];
      return [...waysTo([real], folder), ...(closed ? ["--ro-bind", real, real] : folderArguments(real))];
    }
    case "file":
      return ["--ro-bind", git, git, ...(top && !closed ? worktreeArguments(git) : [])];
    default:
      throw new Error(`${git} is of no kind`);
  }
}

function folderArguments(git: string): string[] {
  const hooks = join(git, "hooks");
  return [
    "--bind",
    git,
    git,
    ...held(git, written).flatMap((path) => ["--bind", path, path]),
    ...held(git, fixed).flatMap((path) => ["--ro-bind", path, path]),
    ...(existsSync(hooks) ? ["--ro-bind", hooks, hooks] : ["--tmpfs", hooks, "--remount-ro", hooks]),
  ];
}

/** The repository lies elsewhere and is read-only, but for what a commit in this worktree writes. */
function worktreeArguments(git: string): string[] {
  const worktree = linkedWorktree(git);
  if (worktree === undefined) return [];
  const { own, common } = worktree;
  return [own, ...held(common, written)]
    .flatMap((path) => ["--bind", path, path])
    .concat(held(own, ["commondir", "gitdir", "config.worktree"]).flatMap((path) => ["--ro-bind", path, path]));
}

/** Those of them that are there, and are what they are by no link. */
function held(folder: string, names: readonly string[]): string[] {
  return names.map((name) => join(folder, name)).filter((path) => isThere(path) && realpathSync(path) === path);
}

/** The function that is returned takes away what was planted meanwhile, and puts a link back that was exchanged. */
function watch(git: string): () => void {
  const state = stateOf(git);
  const target = state === "link" ? readlinkSync(git) : undefined;
  const folder = state === "folder" ? git : state === "link" ? targetOf(git, dirname(git)) : linkedWorktree(git)?.own;
  const names = state === "file" ? ["config.worktree"] : unwanted;
  const absent = folder === undefined ? [] : names.map((name) => join(folder, name)).filter((path) => !isThere(path));
  return () => {
    for (const path of absent) rmSync(path, { recursive: true, force: true });
    if (target === undefined || (stateOf(git) === "link" && readlinkSync(git) === target)) return;
    rmSync(git, { recursive: true, force: true });
    symlinkSync(target, git);
  };
}

/** An empty folder is no repository: a sandbox that was killed leaves one. */
function stateOf(git: string): "none" | "folder" | "file" | "link" {
  const stat = lstatSync(git, { throwIfNoEntry: false });
  if (stat === undefined) return "none";
  if (stat.isSymbolicLink()) return "link";
  if (!stat.isDirectory()) return "file";
  return readdirSync(git).length === 0 ? "none" : "folder";
}

/** The folder a link leads to, where it lies in the workspace: what lies outside is read-only anyway. */
function targetOf(link: string, workspace: string): string | undefined {
  if (!existsSync(link)) return undefined;
  const real = realpathSync(link);
  return real.startsWith(`${workspace}/`) && isRealFolder(real) ? real : undefined;
}

function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

function removeEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch (error) {
    // Somebody was quicker, and it is gone or in use.
    if (!(error instanceof Error && "code" in error)) throw error;
  }
}
