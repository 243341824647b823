import { hash, randomUUID } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import path from "node:path";
import { isJsonObject, type Json } from "../model/json.ts";
import { err, messageOf, ok, type Result } from "../model/result.ts";
import { format, type Part } from "./parts.ts";

/** The outputs of one execution as they are kept. */
export interface Entry {
  readonly format: typeof format;
  /** Also the name of the file. */
  readonly key: string;
  /** The workflow and the path of the execution: what `last` finds it by. */
  readonly step: string;
  readonly run: string;
  /** RFC 3339. */
  readonly stored: string;
  readonly parts: readonly Part[];
  readonly outputs: Json;
}

/**
 * The entries in a folder, one file each, and in `last/` for every step the key of the one that was kept last. Files
 * appear whole or not at all, so any number of runs may share it; whoever writes the same key writes the same.
 */
export interface Store {
  /** Undefined where there is none. The error names the file and says what is wrong with it. */
  get(key: string): Result<Entry | undefined, string>;
  last(step: string): Entry | undefined;
  /** The error is why it could not be kept. */
  put(entry: Entry): Result<undefined, string>;
}

export function openStore(folder: string): Store {
  const fileOf = (key: string): string => path.join(folder, `${key}.json`);
  const lastOf = (step: string): string => path.join(folder, "last", `${hash("sha256", step)}.json`);
  return {
    get: (key) => {
      const entry = readEntry(fileOf(key), key);
      if (entry.ok && entry.value !== undefined) markUsed(fileOf(key));
      return entry;
    },
    last: (step) => {
      const read = readJson(lastOf(step));
      const key = read.ok && isJsonObject(read.value) ? read.value["key"] : undefined;
      const entry = typeof key === "string" && keyPattern.test(key) ? readEntry(fileOf(key), key) : undefined;
      return entry?.ok === true ? entry.value : undefined;
    },
    put: (entry) => {
      try {
        mkdirSync(path.join(folder, "last"), { recursive: true, mode: 0o700 });
        ignoreFolder(path.dirname(folder));
        writeWhole(fileOf(entry.key), entry);
        writeWhole(lastOf(entry.step), { key: entry.key });
        return ok(undefined);
      } catch (error) {
        return err(messageOf(error));
      }
    },
  };
}

const keyPattern = /^[0-9a-f]{64}$/;

function readEntry(file: string, key: string): Result<Entry | undefined, string> {
  const read = readJson(file);
  if (!read.ok) return read;
  if (read.value === undefined) return ok(undefined);
  return isEntry(read.value, key) ? ok(read.value) : err(`${file} is not what flow keeps there`);
}

function readJson(file: string): Result<unknown, string> {
  try {
    return ok(JSON.parse(readFileSync(file, "utf8")));
  } catch (error) {
    if (codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR") return ok(undefined);
    return err(error instanceof SyntaxError ? `${file} is damaged: it is no JSON` : messageOf(error));
  }
}

function isEntry(value: unknown, key: string): value is Entry {
  if (!isJsonObject(value)) return false;
  const { parts, outputs, run, stored, step } = value;
  const isPart = (part: unknown): boolean =>
    isJsonObject(part) && typeof part["name"] === "string" && typeof part["hash"] === "string";
  const texts = [run, stored, step].every((text) => typeof text === "string");
  const isOurs = value["format"] === format && value["key"] === key && texts;
  return isOurs && outputs !== undefined && Array.isArray(parts) && parts.every(isPart);
}

/** `prune` goes by the time of the file. Where it may only be read, the time it was kept counts. */
function markUsed(file: string): void {
  try {
    const now = new Date();
    utimesSync(file, now, now);
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
  }
}

function writeWhole(file: string, value: object): void {
  const draft = `${file}.${randomUUID()}.tmp`;
  try {
    writeFileSync(draft, `${JSON.stringify(value)}\n`, { mode: 0o600, flag: "wx" });
    renameSync(draft, file);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}

/** As for runs: nothing below `.flow` belongs into a repository. */
function ignoreFolder(folder: string): void {
  try {
    writeFileSync(path.join(folder, ".gitignore"), "*\n", { flag: "wx" });
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error;
  }
}

export interface Pruned {
  /** What was removed; `step` is absent where it could not be read. */
  readonly removed: readonly { readonly key: string; readonly step?: string; readonly bytes: number }[];
  readonly kept: { readonly entries: number; readonly bytes: number };
}

/**
 * Removes the entries that were neither kept nor used since `before` (milliseconds since 1970), and whatever cannot be
 * used: damaged ones, those of another format, remains of a crash.
 */
export function prune(folder: string, before: number): Result<Pruned, string> {
  const removed: { key: string; step?: string; bytes: number }[] = [];
  const kept = new Set<string>();
  let bytes = 0;
  try {
    for (const name of namesIn(folder)) {
      const file = path.join(folder, name);
      const key = name.replace(/\.json$/, "");
      const { size, mtimeMs } = statSync(file);
      if (name.endsWith(".tmp")) {
        if (mtimeMs < Math.min(before, Date.now() - longestWrite)) rmSync(file, { force: true });
        continue;
      }
      if (!keyPattern.test(key) || !name.endsWith(".json")) continue;
      const read = readEntry(file, key);
      const entry = read.ok ? read.value : undefined;
      if (entry !== undefined && mtimeMs >= before) {
        kept.add(key);
        bytes += size;
        continue;
      }
      rmSync(file, { force: true });
      removed.push({ key, ...(entry !== undefined && { step: entry.step }), bytes: size });
    }
    forgetLast(path.join(folder, "last"), kept);
  } catch (error) {
    return err(messageOf(error));
  }
  return ok({ removed, kept: { entries: kept.size, bytes } });
}

const longestWrite = 60 * 60 * 1000;

function forgetLast(folder: string, kept: ReadonlySet<string>): void {
  for (const name of namesIn(folder)) {
    const file = path.join(folder, name);
    const read = readJson(file);
    const key = read.ok && isJsonObject(read.value) ? read.value["key"] : undefined;
    if (typeof key !== "string" || !kept.has(key)) rmSync(file, { force: true });
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => entry.name)
      .sort();
  } catch (error) {
    if (codeOf(error) === "ENOENT") return [];
    throw error;
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
