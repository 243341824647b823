import { closeSync, constants, fstatSync, openSync, readSync, statSync } from "node:fs";
import type { Code } from "../model/codes.ts";
import { err, ok } from "../model/result.ts";
import type { Result } from "../model/result.ts";
import { maxBytes, tooLarge } from "./text.ts";

export interface Unreadable {
  readonly code: Extract<Code, "FLOW1001" | "FLOW1002" | "FLOW1003">;
  readonly message: string;
}

/**
 * The bytes of a regular file of at most 8 MiB. What is hashed and compiled is what this returned; nothing reads the file
 * again. Never waits for a pipe or a device.
 */
export async function readSource(path: string): Promise<Result<Uint8Array, Unreadable>> {
  // Nothing else goes on while a workflow is compiled: reading at once saves starting Node's pool of threads.
  let file: number | undefined;
  try {
    const before = refusal(statSync(path));
    if (before !== undefined) return err(before);
    // Non-blocking, and checked again on the descriptor: the path may have become a pipe since.
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stats = fstatSync(file);
    const refused = refusal(stats);
    return refused === undefined ? readAll(file, stats.size) : err(refused);
  } catch (error) {
    return err({ code: "FLOW1001", message: reason(error) });
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

function refusal(stats: { isFile(): boolean; isDirectory(): boolean; readonly size: number }): Unreadable | undefined {
  if (stats.isDirectory()) return { code: "FLOW1002", message: "it is a directory, not a file" };
  if (!stats.isFile()) return { code: "FLOW1002", message: "it is a pipe, socket or device, not a regular file" };
  return stats.size > maxBytes ? { code: "FLOW1003", message: tooLarge(stats.size) } : undefined;
}

/** Reads to the end of the file, which may have grown since its size was taken, and gives up beyond the limit. */
function readAll(file: number, size: number): Result<Uint8Array, Unreadable> {
  let buffer = Buffer.alloc(size + 1);
  let length = 0;
  for (;;) {
    const bytesRead = readSync(file, buffer, length, buffer.length - length, null);
    if (bytesRead === 0) return ok(buffer.subarray(0, length));
    length += bytesRead;
    if (length > maxBytes) return err({ code: "FLOW1003", message: tooLarge(length) });
    if (length === buffer.length) buffer = Buffer.concat([buffer, Buffer.alloc(buffer.length)]);
  }
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

function reason(error: unknown): string {
  const code = error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
  return reasons.get(code) ?? `it cannot be read${code === "" ? "" : ` (${code})`}`;
}
