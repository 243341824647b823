import { isUtf8 } from "node:buffer";
import type { JsonObject } from "../model/json.ts";
import type { Tool, ToolCall, ToolOutput } from "../model/ports.ts";
import { type Result, err, ok } from "../model/result.ts";
import { answer, plural } from "./answer.ts";
import { flagArgument, textArgument } from "./arguments.ts";
import { markOf } from "./file-mark.ts";
import { recallWritten } from "./freshness.ts";
import { openInside, shown } from "./workspace-path.ts";
import { writablePlace, writeInside } from "./write-file.ts";

const largest = 16 * 1024 * 1024;
const byteOrderMark = "\ufeff";
/** Lines shown around a change. */
const around = 3;
const shownLines = 40;

/** Replaces text in a file. */
export const editTool: Tool = {
  name: "Edit",
  description:
    "Replaces old_string in a text file of the workspace by new_string. old_string has to be exactly what is in the file, " +
    "without the line numbers of Read, and to stand there once, unless replace_all is set. The file has to be read first, " +
    "and again when it has changed since. Line endings and a byte order mark are kept.",
  readOnly: false,
  parameters: {
    type: "object",
    required: ["file_path", "old_string", "new_string"],
    additionalProperties: false,
    properties: {
      file_path: { type: "string", minLength: 1, description: "Path of the file, absolute or from the workspace" },
      old_string: {
        type: "string",
        minLength: 1,
        description: "The text to replace, with lines around that make it unique",
      },
      new_string: { type: "string", description: "The text to put in its place" },
      replace_all: { type: "boolean", description: "Replace every occurrence" },
    },
  },
  aliases: {
    names: ["edit", "replace", "edit_file"],
    parameters: {
      path: "file_path",
      filePath: "file_path",
      absolute_path: "file_path",
      oldString: "old_string",
      oldText: "old_string",
      newString: "new_string",
      newText: "new_string",
      replaceAll: "replace_all",
    },
  },
  run: edit,
  recall: recallWritten,
};

async function edit(args: JsonObject, call: ToolCall): Promise<Result<ToolOutput, string>> {
  const path = textArgument(args, "file_path") ?? "";
  const wanted = { old: textArgument(args, "old_string") ?? "", new: textArgument(args, "new_string") ?? "" };
  const place = await writablePlace(call.workspace, path);
  if (!place.ok) return place;
  const file = await readWhole(path, call);
  if (!file.ok) return file;
  const changed = change(file.value, wanted, flagArgument(args, "replace_all") === true);
  if (!changed.ok) return err(`${shown(place.value.relative)}: ${changed.error}`);
  const { text, count, at } = changed.value;
  const written = await writeInside(call.workspace, place.value, Buffer.from(file.value.mark + text));
  if (!written.ok) return written;
  call.seen?.set(place.value.real, written.value.mark);
  const times = count === 1 ? "" : ` in ${plural(count, "place")}`;
  return answer(`Changed ${shown(place.value.relative)}${times}.\n${excerpt(text, at, wanted.new)}`);
}

interface TextFile {
  /** The byte order mark, if it begins with one. */
  readonly mark: string;
  readonly text: string;
}

async function readWhole(path: string, call: ToolCall): Promise<Result<TextFile, string>> {
  const opened = await openInside(call.workspace, path, "file");
  if (!opened.ok) return opened;
  const { handle, stats, place } = opened.value;
  try {
    const seen = call.seen?.get(place.real);
    if (call.seen !== undefined && seen === undefined) return err(`${shown(path)} was not read yet: Read it first`);
    if (seen !== undefined && seen !== markOf(stats))
      return err(`${shown(path)} has changed since it was read: Read it again`);
    if (stats.size > largest) return err(`${shown(path)} is larger than ${largest / 1024 / 1024} MiB`);
    const bytes = await handle.readFile();
    if (!isUtf8(bytes) || bytes.includes(0)) return err(`${shown(path)} is no UTF-8 text`);
    const whole = bytes.toString("utf8");
    const mark = whole.startsWith(byteOrderMark) ? byteOrderMark : "";
    return ok({ mark, text: whole.slice(mark.length) });
  } finally {
    await handle.close();
  }
}

interface Changed {
  readonly text: string;
  readonly count: number;
  /** Where the first change is, in the new text. */
  readonly at: number;
}

function change({ text }: TextFile, wanted: { old: string; new: string }, all: boolean): Result<Changed, string> {
  if (wanted.old === wanted.new) return err("old_string and new_string are the same");
  const isCrlf = text.includes("\r\n") && !/(?:^|[^\r])\n/.test(text);
  const inStyle = (part: string): string => (isCrlf ? part.replaceAll(/\r?\n/g, "\r\n") : part);
  const old = text.includes(wanted.old) ? wanted.old : inStyle(wanted.old);
  const parts = text.split(old);
  const count = parts.length - 1;
  if (count === 0) return err(notFound(text, wanted.old));
  if (count > 1 && !all)
    return err(`old_string stands there ${count} times; add lines around it until it is unique, or set replace_all`);
  return ok({ text: parts.join(inStyle(wanted.new)), count, at: parts[0]?.length ?? 0 });
}

/** The two mistakes models make most: line numbers taken along from Read, and other white space. */
function notFound(text: string, old: string): string {
  const bare = old.replaceAll(/^ *\d+\t/gm, "");
  if (bare !== old && text.includes(bare)) return "old_string begins lines with the numbers of Read; leave them out";
  const lines = new Set(text.split("\n").map((line) => line.trim()));
  const wanted = old.split("\n").map((line) => line.trim());
  if (wanted.every((line) => lines.has(line)))
    return "old_string is not there exactly as written; its lines are, with other white space: Read the place again";
  return "old_string is not there; Read the file again and take it from there";
}

/** The changed lines with some around them, numbered as Read does. */
function excerpt(text: string, at: number, inserted: string): string {
  const first = text.slice(0, at).split("\n").length - 1;
  const start = Math.max(0, first - around);
  const end = first + inserted.split("\n").length + around;
  const lines = text.split("\n").slice(start, Math.min(end, start + shownLines));
  return lines.map((line, index) => `${String(start + index + 1).padStart(6)}\t${line.replace(/\r$/, "")}`).join("\n");
}
