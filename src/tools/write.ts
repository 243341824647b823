import type { JsonObject } from "../model/json.ts";
import type { Tool, ToolCall, ToolOutput } from "../model/ports.ts";
import { type Result, err } from "../model/result.ts";
import { answer, plural } from "./answer.ts";
import { textArgument } from "./arguments.ts";
import { changedSince, recallWritten } from "./freshness.ts";
import { shown } from "./workspace-path.ts";
import { writablePlace, writeInside } from "./write-file.ts";

/** Writes a whole file. */
export const writeTool: Tool = {
  name: "Write",
  description:
    "Writes a whole text file of the workspace and makes the folders it needs. A file that exists has to be read first, " +
    "and again when it has changed since. For a part of a file use Edit.",
  readOnly: false,
  parameters: {
    type: "object",
    required: ["file_path", "content"],
    additionalProperties: false,
    properties: {
      file_path: { type: "string", minLength: 1, description: "Path of the file, absolute or from the workspace" },
      content: { type: "string", description: "All that is to be in the file" },
    },
  },
  aliases: {
    names: ["write", "write_file", "create_file"],
    parameters: { path: "file_path", filePath: "file_path", absolute_path: "file_path", contents: "content" },
  },
  run: write,
  recall: recallWritten,
};

async function write(args: JsonObject, call: ToolCall): Promise<Result<ToolOutput, string>> {
  const path = textArgument(args, "file_path") ?? "";
  const content = textArgument(args, "content") ?? "";
  const place = await writablePlace(call.workspace, path);
  if (!place.ok) return place;
  const { state, problem } = await changedSince(place.value, call);
  if (problem !== undefined) return err(problem);
  const written = await writeInside(call.workspace, place.value, Buffer.from(content));
  if (!written.ok) return written;
  call.seen?.set(place.value.real, written.value.mark);
  const lines = plural(content === "" ? 0 : content.replace(/\n$/, "").split("\n").length, "line");
  return answer(`${state === "missing" ? "Created" : "Replaced"} ${shown(place.value.relative)}: ${lines}.`);
}
