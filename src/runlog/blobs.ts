import { createHash } from "node:crypto";
import { closeSync, existsSync, fdatasyncSync, mkdirSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import path from "node:path";
import type { Blob, LogLine } from "../model/event.ts";
import type { Json } from "../model/json.ts";
import { err, messageOf, ok, type Result } from "../model/result.ts";
import { blobBytes, blobFields, isBlob, type StoredLine } from "./fields.ts";
import { jsonPieces } from "./json-pieces.ts";

/** Writes a value's JSON as a blob of the run, on the disk before it returns. Throws what the file system throws. */
export function writeBlob(folder: string, value: Json): Blob {
  const hash = createHash("sha256");
  let size = 0;
  for (const piece of jsonPieces(value)) {
    hash.update(piece);
    size += Buffer.byteLength(piece);
  }
  if (size > blobBytes) throw new Error(`a value has ${size} bytes of JSON and may have at most ${blobBytes}`);
  const name = hash.digest("hex");
  const file = path.join(folder, "blobs", name);
  if (!existsSync(file)) writeWhole(file, jsonPieces(value));
  return { blob: name, size };
}

/** A new name first, so that a file is there whole or not at all. */
export function writeWhole(file: string, pieces: Iterable<string>): void {
  mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
  const unfinished = `${file}.unfinished`;
  try {
    const fd = openSync(unfinished, "w", 0o600);
    try {
      for (const piece of pieces) writeFileSync(fd, piece);
      fdatasyncSync(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(unfinished, file);
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw error;
  }
}

/** The value behind a reference; an error when the file is gone, or no longer what its name says. */
export async function readBlob(folder: string, blob: Blob): Promise<Result<Json, { readonly message: string }>> {
  if (!isBlob(blob)) return err({ message: "not a reference to a blob" });
  const file = path.join(folder, "blobs", blob.blob);
  try {
    await using handle = await open(file);
    const { size } = await handle.stat();
    if (size !== blob.size || size > blobBytes)
      return err({ message: `${file}: has ${size} bytes where the log says ${blob.size}` });
    const bytes = await handle.readFile();
    if (createHash("sha256").update(bytes).digest("hex") !== blob.blob)
      return err({ message: `${file}: its content does not match its name` });
    return ok(JSON.parse(bytes.toString()) as Json);
  } catch (error) {
    return err({ message: `${file}: ${messageOf(error)}` });
  }
}

/** The line with the values its references stand for. */
export async function resolveLine(
  folder: string,
  line: StoredLine,
): Promise<Result<LogLine, { readonly message: string }>> {
  const fields: { [key: string]: unknown } = { ...line };
  for (const field of blobFields) {
    const value = Object.hasOwn(fields, field) ? fields[field] : undefined;
    if (!isBlob(value)) continue;
    const read = await readBlob(folder, value);
    if (!read.ok) return read;
    fields[field] = read.value;
  }
  return ok(fields as unknown as LogLine);
}
