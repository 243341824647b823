import { createHash } from "node:crypto";
import { accessSync, constants, mkdtempSync, readFileSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { living, send } from "./proc.ts";

const memory = "/dev/shm";

/**
 * Makes an empty folder that only this user can enter, for what lives as long as a step: scripts, `$FLOW_OUTPUT`, pipes.
 * It lies in memory where the system has a place for that, since on a disk a FIFO can cost as much as a process.
 * Its name says whose it is; those of processes that are gone, killed before they could tidy up, are removed.
 * Throws what making a folder throws.
 */
export function makeTempFolder(): string {
  const parent = isWritable(memory) ? memory : tmpdir();
  const here = thisMachine();
  removeStale(parent, here);
  return mkdtempSync(join(parent, `flow-${here}-${process.pid}-${startOf(process.pid)}-`));
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Process ids mean something only since this boot and within one pid namespace: a container's are others. */
function thisMachine(): string {
  try {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8");
    return createHash("sha256")
      .update(`${boot}${readlinkSync("/proc/self/ns/pid")}`)
      .digest("hex")
      .slice(0, 12);
  } catch {
    return "";
  }
}

function startOf(pid: number): string {
  return living(pid)?.started ?? "";
}

/** Elsewhere than on Linux nothing says that a process id was not used again, and nothing is removed. */
function removeStale(parent: string, here: string): void {
  if (here === "") return;
  for (const name of readdirSync(parent)) {
    const [, machine, pid = "", started] = /^flow-([0-9a-f]{12})-(\d+)-(\d+)-\w{6}$/.exec(name) ?? [];
    if (machine !== here || (send(Number(pid), 0) && startOf(Number(pid)) === started)) continue;
    try {
      rmSync(join(parent, name), { recursive: true, force: true });
    } catch {
      // Another user's, or its own watchdog is at it: the next start looks again.
      continue;
    }
  }
}
