import type { Mark, Marks } from "./marks.ts";
import { type Living, living, send } from "./proc.ts";
import { until } from "./until.ts";

export interface Tree {
  /** The process that leads the group, and so the group's id. */
  readonly pid: number;
  /** Carried by the members that left the group. */
  readonly mark: Mark;
  readonly marks: Marks;
  /** The leader is what keeps a pid namespace: it must not hear SIGTERM before those inside have. */
  readonly isNamespace: boolean;
  /** Whether the leader was reaped. */
  readonly hasExited: () => boolean;
}

/**
 * Ends a process group and what escaped from it: SIGTERM, `grace` milliseconds to tidy up, SIGKILL. What left the group
 * gets SIGKILL alone. Resolves at the latest about a second after the grace time, with nothing left that can be killed.
 */
export async function endTree(tree: Tree, grace: number): Promise<void> {
  const { pid, mark, marks, hasExited } = tree;
  // Taken while their parents live: by this alone is found what cleared its environment and left the group.
  const processes = await marks.processes();
  const kin = processes.withDescendants(processes.all.filter(({ group }) => group === pid));
  const ask = (signal: NodeJS.Signals): void => {
    if (tree.isNamespace) kin.forEach((member) => member.pid === pid || send(member.pid, signal));
    else send(-pid, signal);
  };
  if (tree.isNamespace && kin.length < begun) send(-pid, "SIGKILL");
  else {
    ask("SIGTERM");
    // A stopped process acts on SIGTERM only when it goes on.
    ask("SIGCONT");
  }
  await until(async () => hasExited() && !(await groupLives(pid, marks)), grace);
  send(-pid, "SIGKILL");
  for (const member of kin) if (isStill(member)) send(member.pid, "SIGKILL");
  await marks.kill(mark);
  await until(async () => hasExited() && !kin.some(isStill) && !(await groupLives(pid, marks)), 500);
}

/**
 * Processes of a namespace whose command has begun: who keeps it, its first, and the command. Before that nobody in it
 * hears SIGTERM, and there is nothing to tidy up.
 */
const begun = 3;

/**
 * Whether a process group has a member that still runs. Where PID 1 reaps nothing (a container's `tail -f`), dead
 * members stay in the group for ever, and the system's answer to signal 0 counts them.
 */
export async function groupLives(pid: number, marks: Marks): Promise<boolean> {
  if (!send(-pid, 0)) return false;
  if (process.platform !== "linux") return true;
  return (await marks.processes()).all.some(({ group }) => group === pid);
}

function isStill({ pid, started }: Living): boolean {
  return living(pid)?.started === started;
}
