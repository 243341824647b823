import { isUtf8 } from "node:buffer";
import type { FileHandle } from "node:fs/promises";
import type { JsonObject } from "../model/json.ts";
import type { Tool, ToolCall, ToolOutput } from "../model/ports.ts";
import { type Result, err } from "../model/result.ts";
import { answer, plural } from "./answer.ts";
import { textArgument, wholeArgument } from "./arguments.ts";
import { markOf } from "./file-mark.ts";
import { type LinesRead, readLines } from "./line-reader.ts";
import { openInside, shown } from "./workspace-path.ts";

const defaultLines = 2_000;
const lineWidth = 2_000;
/** What one call looks at to find its lines. Beyond it Grep is the better tool. */
const scanned = 256 * 1024 * 1024;
const sniffed = 8 * 1024;

/** Reads a range of lines of a text file, numbered as by `cat -n`. */
export const readTool: Tool = {
  name: "Read",
  description:
    "Reads a text file of the workspace and returns its lines numbered as by `cat -n`. Reads the first 2000 lines " +
    "unless offset and limit say otherwise; longer lines are cut at 2000 characters. Not for folders (LS) or binary files.",
  readOnly: true,
  parameters: {
    type: "object",
    required: ["file_path"],
    additionalProperties: false,
    properties: {
      file_path: { type: "string", description: "Path of the file, absolute or from the workspace" },
      offset: { type: "integer", minimum: 0, description: "Number of the first line, from 1" },
      limit: { type: "integer", minimum: 1, maximum: 100_000, description: "Number of lines; 2000 by default" },
    },
  },
  aliases: {
    names: ["read", "read_file"],
    parameters: { path: "file_path", filePath: "file_path", absolute_path: "file_path" },
  },
  run: read,
};

async function read(args: JsonObject, call: ToolCall): Promise<Result<ToolOutput, string>> {
  const path = textArgument(args, "file_path") ?? "";
  const first = Math.max(1, wholeArgument(args, "offset") ?? 1);
  const count = wholeArgument(args, "limit") ?? defaultLines;
  const opened = await openInside(call.workspace, path, "file");
  if (!opened.ok) return opened;
  const { handle, stats, place } = opened.value;
  try {
    if (call.mayRead?.(place.relative) === false)
      return err(`${shown(path)} may not be read under the rules of this run`);
    const binary = await whyBinary(handle);
    if (binary !== undefined)
      return err(`${shown(path)} ${binary} (${plural(stats.size, "byte")}); Read shows UTF-8 text only`);
    const found = await readLines(handle, { first, count, width: lineWidth, bytes: scanned }, call.signal);
    if (found.end !== "cancelled") call.seen?.set(place.real, markOf(stats));
    return present(found, { path, first });
  } finally {
    await handle.close();
  }
}

/** Why the beginning of a file is no text, if it is none. */
async function whyBinary(handle: FileHandle): Promise<string | undefined> {
  const head = Buffer.alloc(sniffed);
  const { bytesRead } = await handle.read(head, 0, sniffed, 0);
  const bytes = head.subarray(0, bytesRead);
  const mark = bytes.subarray(0, 2).toString("hex");
  if (mark === "fffe" || mark === "feff") return "is UTF-16 text";
  if (mark === "8950" || mark === "ffd8" || bytes.subarray(0, 4).toString("latin1") === "GIF8") return "is an image";
  return bytes.includes(0) ? "is a binary file" : undefined;
}

function present(found: LinesRead, { path, first }: { path: string; first: number }): Result<ToolOutput, string> {
  const { lines, skipped, end } = found;
  if (end === "cancelled") return err("cancelled");
  if (lines.length === 0 && end === "bytes")
    return err(
      `line ${first} of ${shown(path)} lies beyond the first ${scanned / 1024 / 1024} MiB; use Grep to find the place`,
    );
  if (lines.length === 0 && skipped === 0) return answer("[the file is empty]");
  if (lines.length === 0) return err(`${shown(path)} has only ${plural(skipped, "line")}`);
  const numbered = lines.map((line, index) => `${String(first + index).padStart(6)}\t${lineText(line, first + index)}`);
  const notes = [
    ...(lines.every((line) => line.length >= lineWidth * 4 || isUtf8(line))
      ? []
      : ["some bytes are not UTF-8 and are shown as \ufffd"]),
    ...(end === "file" ? [] : [`the file goes on; continue with offset ${first + lines.length}`]),
  ];
  return answer([...numbered, ...notes.map((note) => `[${note}]`)].join("\n"));
}

function lineText(line: Buffer, number: number): string {
  const text = line.toString("utf8").replace(/\r$/, "");
  const bare = number === 1 && text.startsWith("\ufeff") ? text.slice(1) : text;
  if (bare.length <= lineWidth) return bare;
  return `${bare.slice(0, lineWidth).replace(/[\ud800-\udbff]$/, "")}… [line cut]`;
}
