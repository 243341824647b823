import { readFileSync, readdirSync } from "node:fs";

/** Of a process: two streams to read, their other ends while it starts, and two files when they are long. */
const each = 6;
/** For the log, values beside it, and what tools and models open. */
const kept = 24;

/** How many processes may run at once by this process's limit on open files; at least one, endless where nobody says. */
export function placesHere(): number {
  try {
    const [, limit = ""] = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    const free = Number(limit) - readdirSync("/proc/self/fd").length - kept;
    return limit === "" ? Infinity : Math.max(1, Math.floor(free / each));
  } catch {
    return Infinity;
  }
}
