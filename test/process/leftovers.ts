import { readFileSync, readdirSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

/** Living processes whose command line holds `token`. */
export function processesWith(token: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && read(`/proc/${name}/cmdline`).includes(token))
    .map(Number);
}

/** Waits until `count` processes hold `token`: what a test starts needs a moment to be there. */
export async function untilRunning(token: string, count: number): Promise<void> {
  const deadline = performance.now() + 10_000;
  while (processesWith(token).length < count) {
    if (performance.now() > deadline) throw new Error(`only ${processesWith(token).length} of ${count} started`);
    await delay(10);
  }
}

/** Ends by id what a failed test would leave behind. */
export function killAll(token: string): void {
  for (const pid of processesWith(token)) {
    if (pid !== process.pid) process.kill(pid, "SIGKILL");
  }
}

/** A duration for `sleep` that no other process on the machine uses. */
export function uniqueSleep(): string {
  return `600.${process.pid}${Math.floor(Math.random() * 1e9)}`;
}

function read(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}
