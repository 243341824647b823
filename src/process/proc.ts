import { readFileSync, readdirSync } from "node:fs";

/** Every process there is; empty elsewhere than on Linux. */
export function processIds(): number[] {
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

/** Sends a signal to a process, or to a group by its negative id; 0 only asks. False: nobody is there. */
export function send(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
