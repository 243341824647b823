import { closeSync, constants, fstatSync, openSync, statSync } from "node:fs";
import { err, ok, type Result } from "../model/result.ts";

/** An open file; whoever asked for it closes it. */
export interface Opened {
  readonly descriptor: number;
  /** Bytes, when it was opened. */
  readonly size: number;
}

export interface NotOpened {
  /** `irregular`: something is there, and it is no regular file. */
  readonly kind: "unreadable" | "irregular";
  readonly message: string;
}

/** Opens a regular file to be read. Never waits for a pipe or a device. */
export function openRegular(path: string): Result<Opened, NotOpened> {
  let descriptor: number | undefined;
  try {
    const before = irregular(statSync(path));
    if (before !== undefined) return err({ kind: "irregular", message: before });
    // Non-blocking, and checked again on the descriptor: the path may have become a pipe since.
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stats = fstatSync(descriptor);
    const after = irregular(stats);
    if (after === undefined) return ok({ descriptor, size: stats.size });
    closeSync(descriptor);
    return err({ kind: "irregular", message: after });
  } catch (error) {
    if (descriptor !== undefined) closeSync(descriptor);
    return err({ kind: "unreadable", message: reason(error) });
  }
}

/** What is there in place of a regular file. */
export function irregular(stats: { isFile(): boolean; isDirectory(): boolean }): string | undefined {
  if (stats.isDirectory()) return "it is a directory, not a file";
  return stats.isFile() ? undefined : "it is a pipe, socket or device, not a regular file";
}

const reasons: ReadonlyMap<string, string> = new Map([
  ["ENOENT", "there is no such file"],
  ["ENOTDIR", "a part of the path is not a directory"],
  ["EACCES", "reading it is not permitted"],
  ["EPERM", "reading it is not permitted"],
  ["ELOOP", "its symbolic links go in a circle"],
  ["ENAMETOOLONG", "the path is too long"],
  ["ERR_INVALID_ARG_VALUE", "the path holds a NUL character"],
]);

/** Why a file cannot be read, by the error of the system. */
export function reason(error: unknown): string {
  const code = error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
  return reasons.get(code) ?? `it cannot be read${code === "" ? "" : ` (${code})`}`;
}
