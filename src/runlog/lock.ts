import { randomUUID } from "node:crypto";
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import path from "node:path";
import { isJsonObject, type Json } from "../model/json.ts";
import { err, messageOf, ok, type Result } from "../model/result.ts";
import { readProc, send } from "../process/proc.ts";
import { makeFolders } from "./write.ts";

/** The right to write to a run. */
export interface Lock {
  /** Gives it back; a second time does nothing. */
  release(): void;
}

export interface LockProblem {
  /** `held`: somebody else has it; `failed`: the folder cannot be written. */
  readonly kind: "held" | "failed";
  readonly message: string;
}

interface Owner {
  readonly pid: number;
  readonly host: string;
  /** When the process began, by the machine's boot: a process id is used again, this pair is not. */
  readonly started: string;
  /** Different for every lock there ever was. */
  readonly id: string;
}

/**
 * Takes the lock of a run folder: the file `lock`, which exactly one process makes. A dead owner's is taken over: whoever
 * alone makes the file `lock.after-ID`, named after the dead lock, is its heir, and puts its own in the place of it. A
 * lock of another machine is never taken over, because nobody here can know whether its owner lives.
 */
export function lockRun(folder: string): Result<Lock, LockProblem> {
  const own: Owner = { pid: process.pid, host: hostname(), started: startOf(process.pid), id: randomUUID() };
  const draft = path.join(folder, `lock.${own.id}`);
  try {
    makeFolders(path.resolve(folder));
    writeFileSync(draft, JSON.stringify(own), { mode: 0o600, flag: "wx" });
    try {
      return take(folder, own, draft);
    } finally {
      rmSync(draft, { force: true });
    }
  } catch (error) {
    return err({ kind: "failed", message: `cannot lock the run ${folder}: ${messageOf(error)}` });
  }
}

/** Whether somebody who lives holds the lock of a run folder, for those who only read. */
export function isLocked(folder: string): boolean {
  try {
    const last = readChain(folder).at(-1);
    return last !== undefined && isAlive(last);
  } catch {
    return false;
  }
}

function take(folder: string, own: Owner, draft: string): Result<Lock, LockProblem> {
  const file = path.join(folder, "lock");
  for (;;) {
    const chain = readChain(folder);
    const last = chain.at(-1);
    if (last !== undefined && isAlive(last)) return err({ kind: "held", message: heldBy(last, file) });
    const claim = last === undefined ? file : heirOf(folder, last);
    if (!makeLink(draft, claim)) continue;
    if (readChain(folder).at(-1)?.id === own.id) {
      if (last !== undefined) renameSync(draft, file);
      for (const dead of chain) rmSync(heirOf(folder, dead), { force: true });
      return ok({ release: () => release(folder, own) });
    }
    // The dead lock went away while it was claimed: somebody else has replaced it.
    rmSync(claim, { force: true });
  }
}

/** The lock and its heirs that have not come into its place, the one in force last. */
function readChain(folder: string): Owner[] {
  const chain: Owner[] = [];
  let file = path.join(folder, "lock");
  for (;;) {
    const owner = readOwner(file);
    if (owner === undefined || chain.some(({ id }) => id === owner.id)) return chain;
    chain.push(owner);
    file = heirOf(folder, owner);
  }
}

function heirOf(folder: string, { id }: Owner): string {
  return path.join(folder, `lock.after-${id}`);
}

function readOwner(file: string): Owner | undefined {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
  const value = parse(text);
  const { pid, host, started, id } = isJsonObject(value) ? value : {};
  if (Number.isSafeInteger(pid) && typeof host === "string" && typeof started === "string" && isId(id))
    return { pid: Number(pid), host, started, id };
  throw new Error(`${file} is not a lock of flow; delete it if no flow is running here`);
}

/** It becomes part of a file's name. */
function isId(id: Json | undefined): id is string {
  return typeof id === "string" && /^[0-9a-f-]{36}$/.test(id);
}

function parse(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return null;
  }
}

function isAlive({ pid, host, started }: Owner): boolean {
  if (host !== hostname()) return true;
  return send(pid, 0) && startOf(pid) === started;
}

/** Empty where the system does not tell; then the process id alone counts. */
function startOf(pid: number): string {
  const stat = readProc(pid, "stat");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  if (fields[0] === "Z" || fields[19] === undefined) return "";
  return `${bootId()}:${fields[19]}`;
}

function bootId(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    return "";
  }
}

function heldBy({ pid, host }: Owner, file: string): string {
  const where = host === hostname() ? "" : `; if that machine is gone, delete ${file}`;
  return `the run is being written by process ${pid} on ${host}${where}`;
}

function makeLink(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw error;
  }
}

function release(folder: string, own: Owner): void {
  const file = path.join(folder, "lock");
  try {
    if (readChain(folder)[0]?.id === own.id) rmSync(file, { force: true });
  } catch {
    // Without a descriptor left, or a disk that can be written: it is a dead owner's when this process has ended.
    return;
  }
}
