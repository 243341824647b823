import type { Blob, LogLine } from "../model/event.ts";
import type { Json } from "../model/json.ts";
import { isJsonObject } from "../model/json.ts";

/** The fields of an event whose value goes to a blob when its JSON is longer than {@link inlineBytes}. */
export const blobFields = [
  "args",
  "delta",
  "diagnostic",
  "error",
  "inputs",
  "message",
  "output",
  "outputs",
  "plan",
  "reason",
  "result",
  "text",
  "tools",
] as const;
export type BlobField = (typeof blobFields)[number];

/** Bytes of JSON text a field may have inside a line, and a blob may have at most. */
export const inlineBytes: number = 64 * 1024;
export const blobBytes: number = 64 * 1024 * 1024;

/** A line as it stands in the file: a large field is a reference. */
export type StoredLine = Stored<LogLine>;
type Stored<Line> = Line extends unknown
  ? { readonly [Field in keyof Line]: Field extends BlobField ? Line[Field] | Blob : Line[Field] }
  : never;

export function isBlob(value: unknown): value is Blob & { [key: string]: Json } {
  return (
    isJsonObject(value) &&
    Object.keys(value).length === 2 &&
    typeof value["blob"] === "string" &&
    /^[0-9a-f]{64}$/.test(value["blob"]) &&
    Number.isSafeInteger(value["size"])
  );
}
