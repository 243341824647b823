import type { Event } from "../model/event.ts";
import type { StepResult } from "../model/outcome.ts";
import type { Result } from "../model/result.ts";
import type { Applied } from "../worktree/apply.ts";

/** What became of what was changed in a worktree. */
export type Closed = Pick<
  Extract<Event, { type: "worktree.closed" }>,
  "status" | "patch" | "files" | "conflicts" | "why"
>;

/** What an execution gave, and that its changes have arrived. */
export interface Finished {
  readonly result: Extract<StepResult, { outcome: "success" }>;
  readonly closed: Closed;
}

/** Names that an event lists. */
export const shownFiles = 1000;

/** What is said of a change that was to come into other files. */
export function outcomeOf(applied: Result<Applied, string>): Pick<Closed, "status" | "conflicts" | "why"> {
  if (!applied.ok) return { status: "conflict", conflicts: [], why: applied.error };
  if (applied.value.kind === "applied") return { status: "applied" };
  return { status: "conflict", conflicts: applied.value.files.slice(0, shownFiles), why: applied.value.why };
}

/** `folder`: where it still is, for somebody to look at. */
export function lost(why: string, folder?: string): Closed {
  if (folder === undefined) return { status: "lost", files: [], why };
  return {
    status: "lost",
    files: [],
    why: `${why}; it is left in ${folder}: take out what you need, then \`rm -r\` it`,
  };
}
