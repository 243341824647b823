import type { Mark, Marks } from "./marks.ts";
import { processIds, readProc, send } from "./proc.ts";
import { until } from "./until.ts";

export interface Tree {
  /** The process that leads the group, and so the group's id. */
  readonly pid: number;
  /** Carried by the members that left the group. */
  readonly mark: Mark;
  readonly marks: Marks;
  /** Whether the leader was reaped. */
  readonly hasExited: () => boolean;
}

/**
 * Ends a process group and what escaped from it: SIGTERM, `grace` milliseconds to tidy up, SIGKILL. What left the group
 * gets SIGKILL alone. Resolves at the latest about a second after the grace time, with nothing left that can be killed.
 */
export async function endTree({ pid, mark, marks, hasExited }: Tree, grace: number): Promise<void> {
  send(-pid, "SIGTERM");
  // A stopped process acts on SIGTERM only when it goes on.
  send(-pid, "SIGCONT");
  await until(() => hasExited() && !groupLives(pid), grace);
  send(-pid, "SIGKILL");
  await marks.kill(mark);
  await until(() => hasExited() && !groupLives(pid), 500);
}

/**
 * Whether a process group has a member that still runs. Where PID 1 reaps nothing (a container's `tail -f`), dead
 * members stay in the group for ever, and the system's answer to signal 0 counts them.
 */
export function groupLives(pid: number): boolean {
  if (!send(-pid, 0)) return false;
  if (process.platform !== "linux") return true;
  return processIds().some((id) => {
    const stat = readProc(id, "stat");
    // "pid (name) state ppid pgrp …"; the name may hold anything, also parentheses.
    const [state, , group] = stat.slice(stat.lastIndexOf(")") + 2).split(" ", 3);
    return Number(group) === pid && state !== "Z" && state !== "X";
  });
}
