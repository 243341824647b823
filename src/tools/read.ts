import { isUtf8 } from "node:buffer";
import { existsSync } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { basename, dirname, join, normalize, resolve } from "node:path";
import type { JsonObject } from "../model/json.ts";
import type { Tool, ToolCall, ToolOutput } from "../model/ports.ts";
import { type Result, err, ok } from "../model/result.ts";
import { answer, plural } from "./answer.ts";
import { textArgument, wholeArgument } from "./arguments.ts";
import { markOf } from "./file-mark.ts";
import { recallRead } from "./freshness.ts";
import { imageType, readImage } from "./image.ts";
import { type LinesRead, readLines } from "./line-reader.ts";
import { type Opened, openInside, shown } from "./workspace-path.ts";

const defaultLines = 2_000;
const lineWidth = 2_000;
/** What one call looks at to find its lines. Beyond it Grep is the better tool. */
const scanned = 256 * 1024 * 1024;
const sniffed = 8 * 1024;
/** Bytes of a picture, 5 MiB in base64, and pixels of a side: providers take no more. */
const largestImage = 3.75 * 1024 * 1024;
const longestSide = 8_000;

/**
 * Reads a range of lines of a text file, numbered as by `cat -n`, or shows a picture. `kept` is the folder of what was
 * too long to be shown in the same run.
 */
export function readTool(kept: string | undefined): Tool {
  return { ...spec, run: (args, call) => read(args, call, kept) };
}

const spec: Omit<Tool, "run"> = {
  name: "Read",
  description:
    "Reads a text file of the workspace and returns its lines numbered as by `cat -n`. Reads the first 2000 lines " +
    "unless offset and limit say otherwise; longer lines are cut at 2000 characters. Shows PNG, JPEG, GIF and WebP " +
    "pictures, and the files of results that were cut. Not for folders (LS) or other binary files.",
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
  recall: recallRead,
};

async function read(args: JsonObject, call: ToolCall, kept: string | undefined): Promise<Result<ToolOutput, string>> {
  const path = textArgument(args, "file_path") ?? "";
  const first = Math.max(1, wholeArgument(args, "offset") ?? 1);
  const count = wholeArgument(args, "limit") ?? defaultLines;
  const own = keptName(path, kept, call);
  const opened = await openInside(own === undefined ? call.workspace : dirname(own), own ?? path, "file");
  if (!opened.ok) return opened;
  const { handle, stats, place } = opened.value;
  try {
    if (own === undefined && call.mayRead?.(place.relative) === false)
      return err(`${shown(path)} may not be read under the rules of this run`);
    const head = await headOf(handle);
    if (imageType(head) !== undefined) return await showImage(opened.value, path, call);
    const binary = whyBinary(head);
    if (binary !== undefined)
      return err(`${shown(path)} ${binary} (${plural(stats.size, "byte")}); Read shows UTF-8 text only`);
    const found = await readLines(handle, { first, count, width: lineWidth, bytes: scanned }, call.signal);
    if (found.end !== "cancelled") call.seen?.set(place.real, markOf(stats));
    return present(found, { path, first });
  } finally {
    await handle.close();
  }
}

/** The file of this run that a cut result names as `files/NAME`, or that is meant by its path; undefined for others. */
function keptName(path: string, kept: string | undefined, { workspace }: ToolCall): string | undefined {
  if (kept === undefined || path.includes("\0")) return undefined;
  const name = basename(path);
  const file = join(kept, name);
  const isNamed = normalize(path) === join("files", name) || resolve(workspace, path) === file;
  return isNamed && existsSync(file) ? file : undefined;
}

async function headOf(handle: FileHandle): Promise<Buffer> {
  const head = Buffer.alloc(sniffed);
  const { bytesRead } = await handle.read(head, 0, sniffed, 0);
  return head.subarray(0, bytesRead);
}

async function showImage(
  { handle, stats, place }: Opened,
  path: string,
  { seen }: ToolCall,
): Promise<Result<ToolOutput, string>> {
  const size = plural(stats.size, "byte");
  if (stats.size > largestImage)
    return err(`${shown(path)} is an image of ${size}; only those up to ${largestImage} can be shown: make it smaller`);
  const bytes = await handle.readFile();
  const image = readImage(bytes);
  if (image === undefined) return err(`${shown(path)} is a damaged image (${size})`);
  const { mediaType, width, height } = image;
  const words = `${mediaType}, ${width} x ${height} pixels, ${size}`;
  if (Math.max(width, height) > longestSide)
    return err(`${shown(path)} (${words}) is over ${longestSide} pixels long: make it smaller`);
  seen?.set(place.real, markOf(stats));
  return ok({
    blocks: [
      { type: "text", text: `[${words}]` },
      { type: "image", mediaType, data: bytes.toString("base64") },
    ],
  });
}

/** Why the beginning of a file is no text, if it is none. */
function whyBinary(head: Buffer): string | undefined {
  const mark = head.subarray(0, 2).toString("hex");
  if (mark === "fffe" || mark === "feff") return "is UTF-16 text";
  return head.includes(0) ? "is a binary file" : undefined;
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
