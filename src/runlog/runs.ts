import { existsSync, readdirSync } from "node:fs";
import path from "node:path";
import { err, ok, type Result } from "../model/result.ts";

/** Without letters and digits that look alike; in the order in which they sort. */
const alphabet = "23456789abcdefghjkmnpqrstuvwxyz";
const runIdPattern = /^\d{8}-\d{6}-[a-z0-9]{5}$/;

/**
 * `20261121-215546-4qk3f`: the time in UTC, so that ids sort by it: two characters for the part of a second (about a
 * millisecond each), then three from `random` (0 ≤ x < 1).
 */
export function newRunId(now: Date, random: () => number): string {
  const [day, time] = now.toISOString().slice(0, 19).replaceAll(/[-:]/g, "").split("T");
  const part = (now.getMilliseconds() / 1000) * alphabet.length;
  const digits = [part, (part % 1) * alphabet.length, ...Array.from({ length: 3 }, () => random() * alphabet.length)];
  return `${day}-${time}-${digits.map((digit) => alphabet[Math.floor(digit)]).join("")}`;
}

/** The nearest folder upwards that holds `.git` (a folder, or the file of a worktree), else `cwd`. */
export function workspaceOf(cwd: string): string {
  const start = path.resolve(cwd);
  for (let folder = start; ; folder = path.dirname(folder)) {
    if (existsSync(path.join(folder, ".git"))) return folder;
    if (folder === path.dirname(folder)) return start;
  }
}

/** Where runs lie. `override` (an option or a variable) is relative to the working directory. */
export function runsFolder(workspace: string, override?: string): string {
  return override === undefined || override === "" ? path.join(workspace, ".flow", "runs") : path.resolve(override);
}

/** Ids of the runs in a folder, oldest first; none when the folder is not there. The error is one that cannot be listed. */
export function listRuns(folder: string): Result<readonly string[], string> {
  if (!existsSync(folder)) return ok([]);
  let names: string[];
  try {
    names = readdirSync(folder);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : error;
    const why = code === "ENOTDIR" ? "it is not a folder" : code === "EACCES" ? "it may not be read" : String(code);
    return err(`there can be no runs in ${folder}: ${why}`);
  }
  return ok(names.filter((name) => runIdPattern.test(name) && existsSync(path.join(folder, name, "log.jsonl"))).sort());
}

/** The folder of the run that `name` means: `latest`, an id, or the beginning of exactly one. */
export function findRun(folder: string, name: string): Result<string, { readonly message: string }> {
  const found = listRuns(folder);
  return found.ok ? findAmong(folder, found.value, name) : err({ message: found.error });
}

function findAmong(
  folder: string,
  runs: readonly string[],
  name: string,
): Result<string, { readonly message: string }> {
  const newest = runs.at(-1);
  if (newest === undefined) return err({ message: `there are no runs in ${folder}` });
  if (name === "latest") return ok(path.join(folder, newest));
  const found = name === "" ? [] : runs.filter((run) => run.startsWith(name));
  const [only] = found;
  if (only === undefined)
    return err({ message: `no run in ${folder} begins with "${name}"; the newest are ${listed(runs)}` });
  if (found.length > 1) return err({ message: `"${name}" is the beginning of ${found.length} runs: ${listed(found)}` });
  return ok(path.join(folder, only));
}

/** The newest first, ten at most. */
function listed(runs: readonly string[]): string {
  const shown = runs.slice(-10).reverse();
  const more = runs.length - shown.length;
  return shown.join(", ") + (more > 0 ? ` and ${more} more` : "");
}
