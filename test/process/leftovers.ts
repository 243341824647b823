import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { send } from "../../src/process/proc.ts";

/** How often what depends on timing is tried: a few times in the normal suite, fifty times in `npm run torture`. */
export const rounds: number = process.env["FLOW_TORTURE"] === undefined ? 5 : 50;

/** Whether bubblewrap works here; a test that needs it is skipped otherwise, with a line that says so. */
export const hasNamespaces: boolean = bubblewrapWorks();
if (!hasNamespaces && process.platform === "linux")
  process.stdout.write("skipped, for they need a bubblewrap that works: what is said of pid namespaces\n");

function bubblewrapWorks(): boolean {
  try {
    execFileSync("bwrap", ["--dev-bind", "/", "/", "--proc", "/proc", "--unshare-pid", "true"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** Background, nohup, own session, double fork, deaf to TERM; each is one process named by `time`. */
export function stubborn(time: string): string {
  return [
    `sleep ${time} &`,
    `nohup sleep ${time} >/dev/null 2>&1 &`,
    `setsid sleep ${time} >/dev/null 2>&1 &`,
    `( ( setsid sleep ${time} >/dev/null 2>&1 & ) & )`,
    `( trap '' TERM; exec sleep ${time} ) &`,
  ].join("\n");
}

/** Living processes whose command line holds `token`. */
export function processesWith(token: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && read(`/proc/${name}/cmdline`).includes(token))
    .map(Number);
}

/** Waits until `count` processes hold `token`: what a test starts needs a moment to be there. */
export async function untilRunning(token: string, count: number): Promise<void> {
  const deadline = performance.now() + 60_000;
  while (processesWith(token).length < count) {
    if (performance.now() > deadline) throw new Error(`only ${processesWith(token).length} of ${count} started`);
    await delay(20);
  }
}

/** How many processes still hold `token` when at most `count` do, or `ms` have passed. */
export async function leftAfter(token: string, ms: number, count = 0): Promise<number> {
  const deadline = performance.now() + ms;
  while (processesWith(token).length > count && performance.now() < deadline) await delay(10);
  return processesWith(token).length;
}

/** Ends by id what a failed test would leave behind. */
export function killAll(token: string): void {
  for (const pid of processesWith(token)) {
    if (pid !== process.pid) send(pid, "SIGKILL");
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
