import { closeSync, fdatasyncSync, fstatSync, ftruncateSync, writeSync } from "node:fs";
import { messageOf } from "../model/result.ts";
import { inlineBytes } from "./fields.ts";

/** Appends whole texts to an open descriptor, or leaves the file as it was. */
export interface Appender {
  /** Writes all of `text` before it returns; a reason when that failed. After a failure every call gives it again. */
  append(text: string): string | undefined;
  /** Asks the disk to hold everything appended so far. */
  sync(): string | undefined;
  /** Whether the file has no name any more: what is written would go with the descriptor. */
  isDeleted(): boolean;
  close(): void;
}

/** `fd` is open for appending and nobody else writes to the file. */
export function createAppender(fd: number): Appender {
  const scratch = Buffer.allocUnsafe(inlineBytes);
  let size = fstatSync(fd).size;
  let failure: string | undefined;

  const fail = (error: unknown): string => {
    failure = messageOf(error);
    return failure;
  };
  return {
    append(text) {
      if (failure !== undefined) return failure;
      // UTF-8 takes at most three bytes for one UTF-16 unit.
      const fits = text.length * 3 <= scratch.length;
      const bytes = fits ? scratch : Buffer.from(text);
      const length = fits ? scratch.write(text) : bytes.length;
      try {
        writeAll(fd, bytes, length);
        size += length;
        return undefined;
      } catch (error) {
        fail(error);
        return cutBack(fd, size) ?? failure;
      }
    },
    sync() {
      if (failure !== undefined) return failure;
      try {
        fdatasyncSync(fd);
        return undefined;
      } catch (error) {
        return fail(error);
      }
    },
    isDeleted: () => fstatSync(fd).nlink === 0,
    close: () => closeSync(fd),
  };
}

/** The kernel may take a part (a disk nearly full); the rest is tried once more to learn the reason. */
function writeAll(fd: number, bytes: Buffer, length: number): void {
  let written = 0;
  while (written < length) {
    const count = writeSync(fd, bytes, written, length - written);
    if (count === 0) throw new Error("the system took no bytes");
    written += count;
  }
}

/** Takes a half-written line away, so that nothing ever glues to it. */
function cutBack(fd: number, size: number): string | undefined {
  try {
    if (fstatSync(fd).size > size) ftruncateSync(fd, size);
    return undefined;
  } catch (error) {
    return `a half-written line could not be taken back: ${messageOf(error)}`;
  }
}
