import type { WorktreeEvent } from "../model/event.ts";
import { unreachable } from "../model/result.ts";
import { cut } from "./display.ts";
import { duration, oneLine } from "./words.ts";

const longest = 300;

/** What a line of progress says of a worktree; nothing of what only matters to those who look closely. */
export function worktreeText(event: WorktreeEvent, verbose: number): string[] {
  switch (event.type) {
    case "worktree.opened":
      return verbose < 1 ? [] : [`worktree ${event.worktree} ${duration(event.duration)}`];
    case "worktree.applying":
      return [];
    case "worktree.closed":
      return event.status === "empty" && verbose < 1 ? [] : [patchText(event)];
    case "worktree.removed": {
      const kept = event.patch === undefined ? "" : `; what was in it is kept in ${event.patch}`;
      return [`removed the worktree ${event.worktree}, which run ${event.run} had left behind${kept}`];
    }
    default:
      return unreachable(event);
  }
}

/** What became of the changes in a worktree. */
export function patchText({ status, files, patch, why }: Closed): string {
  const amount = files.length === 1 ? oneLine(files[0] ?? "") : `${files.length} files`;
  const kept = patch === undefined ? "" : `; kept in ${patch}`;
  const because = why === undefined ? "" : `: ${cut(oneLine(why.slice(0, longest * 4)), longest)}`;
  switch (status) {
    case "applied":
      return `patch applied: ${amount}`;
    case "empty":
      return "patch empty: nothing was changed";
    case "conflict":
      return `patch not applied (${amount})${because}${kept}`;
    case "kept":
      return `patch not applied (${amount}), because this did not succeed${kept}`;
    case "lost":
      return `changes not taken over${because}${kept}`;
    default:
      return unreachable(status);
  }
}

type Closed = Pick<Extract<WorktreeEvent, { type: "worktree.closed" }>, "status" | "files" | "patch" | "why">;
