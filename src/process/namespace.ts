import { spawnSync } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";

/** What starts a command in a pid namespace of its own: all that is in it ends with the process that keeps it. */
export interface Launch {
  /** Goes before the command's own argv. */
  readonly prefix: readonly string[];
  /** Called before a command starts; what it returns, when the command and all it started are over. */
  readonly guard?: () => () => void;
}

/**
 * Commands in pid namespaces by bubblewrap: same files, user, network and environment; `/proc` and process ids are their
 * own, and no program in there can gain rights (`sudo`). The namespace ends with the command, with this process, or with
 * the process that keeps it. Undefined where the machine has no bubblewrap, or does not let it make namespaces; to know
 * costs one process.
 */
export function namespaceLaunch(path: string): Launch | undefined {
  const program = findBubblewrap(path);
  if (program === undefined) return undefined;
  const prefix = [program, "--dev-bind", "/", "/", "--proc", "/proc", "--unshare-pid", "--die-with-parent", "--"];
  const probe = spawnSync(program, [...prefix.slice(1), "true"], { env: { PATH: path }, stdio: "ignore" });
  return probe.status === 0 ? { prefix } : undefined;
}

/** Looked for in flow's own `PATH`: a step's may name anything. */
export function findBubblewrap(path: string): string | undefined {
  const candidates = path.split(delimiter).filter(isAbsolute);
  return candidates.map((folder) => join(folder, "bwrap")).find(isExecutable);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
