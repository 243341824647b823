import { git, Place } from "./flow.ts";

/** A place that is a repository of git with everything committed. */
export class Repository extends Place {
  constructor(files: Readonly<Record<string, string>>) {
    super(files);
    this.git("init", "--quiet", "--initial-branch=main");
    this.commit("start");
  }

  commit(message: string): void {
    this.git("add", "--all");
    this.git("commit", "--quiet", "--allow-empty", "--message", message);
  }

  /** What git says of the files: two letters and a name each. */
  get status(): readonly string[] {
    return git(this.folder, "status", "--porcelain", "--untracked-files=all")
      .split("\n")
      .filter((line) => line !== "");
  }

  /** What runs must not leave behind: other worktrees, branches, a changed index, stashes. */
  get traces(): readonly string[] {
    const worktrees = this.git("worktree", "list", "--porcelain").match(/^worktree /gm)?.length ?? 0;
    const branches = this.git("branch", "--list", "--all", "--format=%(refname:short)").trim().split("\n");
    const staged = this.git("diff", "--cached", "--name-only").trim();
    const left = this.git("for-each-ref").trim().split("\n").length;
    return [`${worktrees} worktree`, ...branches, staged, this.git("stash", "list").trim(), `${left} ref`].filter(
      (it) => it !== "",
    );
  }
}

/** The traces of a repository that nobody has touched. */
export const untouched: readonly string[] = ["1 worktree", "main", "1 ref"];
