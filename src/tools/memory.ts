import type { JsonObject } from "../model/json.ts";
import { rm } from "node:fs/promises";
import type { Tool, ToolCall, ToolOutput } from "../model/ports.ts";
import { err, type Result } from "../model/result.ts";
import { answer } from "./answer.ts";
import { textArgument } from "./arguments.ts";
import { lsTool } from "./ls.ts";
import { readTool } from "./read.ts";
import { explain, shown } from "./workspace-path.ts";
import { writablePlace, writeInside } from "./write-file.ts";

/** Bytes of one file of a memory. */
const largest = 256 * 1024;

/** A folder of an agent's own, wherever it lies. Nothing else can be reached through it. */
export function memoryTool(folder: string): Tool {
  return {
    name: "Memory",
    description: "Lists, reads, writes or deletes files of your memory, a folder that stays from run to run.",
    readOnly: false,
    parameters: {
      type: "object",
      required: ["command"],
      additionalProperties: false,
      properties: {
        command: { type: "string", enum: ["list", "read", "write", "delete"] },
        path: { type: "string", description: "From the folder, such as MEMORY.md; not for `list` of everything" },
        content: { type: "string", maxLength: largest, description: "For `write`: the whole new text" },
      },
    },
    run: (args, call) => act(folder, args, call),
  };
}

function act(folder: string, args: JsonObject, { signal }: ToolCall): Promise<Result<ToolOutput, string>> {
  const path = textArgument(args, "path") ?? "";
  const inside: ToolCall = { workspace: folder, signal };
  switch (textArgument(args, "command")) {
    case "list":
      return lsTool.run({ path: path === "" ? "." : path }, inside);
    case "read":
      return readTool(undefined).run({ file_path: path }, inside);
    case "write":
      return write(folder, path, textArgument(args, "content"));
    default:
      return forget(folder, path);
  }
}

async function write(folder: string, path: string, content: string | undefined): Promise<Result<ToolOutput, string>> {
  if (content === undefined) return err("`write` needs the `content`");
  const place = await writablePlace(folder, path);
  if (!place.ok) return place;
  const written = await writeInside(folder, place.value, Buffer.from(content));
  return written.ok ? answer(`${shown(path)} is written.`) : written;
}

async function forget(folder: string, path: string): Promise<Result<ToolOutput, string>> {
  const place = await writablePlace(folder, path);
  if (!place.ok) return place;
  try {
    await rm(place.value.real);
  } catch (error) {
    return err(`${shown(path)} ${explain(error)}`);
  }
  return answer(`${shown(path)} is deleted.`);
}
