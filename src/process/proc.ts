import { readFileSync, readdirSync } from "node:fs";

/** Every process there is; empty elsewhere than on Linux. */
function processIds(): number[] {
  if (process.platform !== "linux") return [];
  return readdirSync("/proc")
    .map(Number)
    .filter((id) => Number.isInteger(id));
}

/** Empty for a process that is gone, dead, or somebody else's. */
export function readProc(pid: number, file: "environ" | "stat"): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "latin1");
  } catch {
    return "";
  }
}

/** What the system says of a process that runs, or is stopped. */
export interface Living {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  /** When it began, in ticks since the machine did: a process id is used again, the two together are not. */
  readonly started: string;
}

/** Undefined for a process that is gone or dead. */
export function living(pid: number): Living | undefined {
  const stat = readProc(pid, "stat");
  // "pid (name) state parent group …"; the name may hold anything, also parentheses.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ", 20);
  const [state, parent, group] = fields;
  if (parent === undefined || state === "Z" || state === "X") return undefined;
  return { pid, parent: Number(parent), group: Number(group), started: fields[19] ?? "" };
}

/** What runs at one moment, without this process. */
export class Processes {
  readonly all: readonly Living[] = processIds().flatMap((pid) => (pid === process.pid ? [] : (living(pid) ?? [])));
  #children: Map<number, Living[]> | undefined;

  /** These and all that descend from them. A process whose parents are gone is nobody's descendant any more. */
  withDescendants(these: readonly Living[]): Living[] {
    this.#children ??= Map.groupBy(this.all, ({ parent }) => parent);
    const found = new Set(these);
    for (const { pid } of found) for (const child of this.#children.get(pid) ?? []) found.add(child);
    return [...found];
  }
}

/** Sends a signal to a process, or to a group by its negative id; 0 only asks. False: nobody is there. */
export function send(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
