import { closeSync, readSync } from "node:fs";
import type { Code } from "../model/codes.ts";
import { err, ok } from "../model/result.ts";
import type { Result } from "../model/result.ts";
import { openRegular, reason } from "./open.ts";
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
  const opened = openRegular(path);
  if (!opened.ok) {
    const { kind, message } = opened.error;
    // What stands for bytes that Node could not read: the path it then looked for is another one.
    if (path.includes("\uFFFD"))
      return err({
        code: "FLOW1001",
        message: "a name in its path has bytes that are not UTF-8, and cannot be opened: rename it",
      });
    return err({ code: kind === "irregular" ? "FLOW1002" : "FLOW1001", message });
  }
  const { descriptor, size } = opened.value;
  try {
    return size > maxBytes ? err({ code: "FLOW1003", message: tooLarge(size) }) : readAll(descriptor, size);
  } catch (error) {
    return err({ code: "FLOW1001", message: reason(error) });
  } finally {
    closeSync(descriptor);
  }
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
