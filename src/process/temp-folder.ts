import { accessSync, constants, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const memory = "/dev/shm";

/**
 * Makes an empty folder that only this user can enter, for what lives as long as a step: scripts, `$FLOW_OUTPUT`, pipes.
 * It lies in memory where the system has a place for that, since on a disk a FIFO can cost as much as a process.
 * Throws what making a folder throws.
 */
export function makeTempFolder(): string {
  return mkdtempSync(join(isWritable(memory) ? memory : tmpdir(), "flow-"));
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
