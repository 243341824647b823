import { createGit } from "../process/git.ts";
import { Marks } from "../process/marks.ts";
import { findRepository, uncommitted } from "../worktree/repository.ts";

export interface Ground {
  readonly workspace: string;
  readonly env: { readonly [name: string]: string | undefined };
  /** The files are as the run has left them: its own changes are in there. */
  readonly isResumed: boolean;
}

/** Why there cannot be a worktree here for what `about` says, with what to do; undefined where nothing is in the way. */
export async function worktreeProblem(
  about: string,
  { workspace, env, isResumed }: Ground,
): Promise<string | undefined> {
  const git = createGit({ cwd: workspace, env, marks: new Marks("git") });
  const found = await findRepository(git, workspace);
  if (!found.ok) return `${about}, and ${found.error}. Or leave \`isolation\` out.`;
  if (isResumed) return undefined;
  const changed = await uncommitted(found.value);
  if (!changed.ok) return `${about}, and git says of ${workspace}: ${changed.error}`;
  const { length } = changed.value;
  if (length === 0) return undefined;
  const shown = changed.value.slice(0, 5).join(", ");
  const more = length > 5 ? ` and ${length - 5} more` : "";
  const count = length === 1 ? "one file is" : `${length} files are`;
  return `${about}, and ${count} changed and not committed: ${shown}${more}. What the run brings in could not be told from that: commit it, or put it away with \`git stash\`. New files that git does not know may stay.`;
}
