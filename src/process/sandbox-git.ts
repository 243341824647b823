import { existsSync, lstatSync, readdirSync, rmdirSync, rmSync } from "node:fs";
import { join } from "node:path";

/** Below `.git`: what they hold is run, or says what is run, by whoever uses git outside. */
const fixed = ["config", "config.worktree", "commondir", "modules", "worktrees"];
/** Of them, what git takes for granted as soon as it is there. Nothing can be put in their place beforehand: git would read it. */
const unwanted = ["config.worktree", "commondir"];

/**
 * bubblewrap's arguments for the `.git` of a writable workspace. As a place something is mounted on it cannot be renamed
 * and put together anew. Where there is none, a read-only folder stands in for it, so that none can be made.
 */
export function gitArguments(workspace: string): string[] {
  const git = join(workspace, ".git");
  const hooks = join(git, "hooks");
  switch (stateOf(git)) {
    case "none":
      return ["--tmpfs", git, "--remount-ro", git];
    case "folder":
      return [
        "--bind",
        git,
        git,
        ...fixed.flatMap((name) => ["--ro-bind-try", join(git, name), join(git, name)]),
        ...(existsSync(hooks) ? ["--ro-bind", hooks, hooks] : ["--tmpfs", hooks, "--remount-ro", hooks]),
      ];
    default:
      return ["--ro-bind", git, git];
  }
}

/** Watches over what cannot be mounted, from before a command starts until the function that is returned is called. */
export function createGitGuard(workspace: string): () => () => void {
  const git = join(workspace, ".git");
  let commands = 0;
  return () => {
    commands += 1;
    const absent = stateOf(git) === "folder" ? unwanted.filter((name) => !isThere(join(git, name))) : [];
    return () => {
      commands -= 1;
      for (const name of absent) rmSync(join(git, name), { recursive: true, force: true });
      // To remove the folder uncovers it in every sandbox that has something mounted on it.
      if (commands === 0 && isThere(git) && stateOf(git) === "none") removeEmpty(git);
    };
  };
}

/** An empty folder is no repository: a sandbox that was killed leaves one. */
function stateOf(git: string): "none" | "folder" | "file" {
  const stat = lstatSync(git, { throwIfNoEntry: false });
  if (stat === undefined) return "none";
  if (!stat.isDirectory()) return "file";
  return readdirSync(git).length === 0 ? "none" : "folder";
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
