import { type Dirent } from "node:fs";
import { opendir } from "node:fs/promises";
import type { JsonObject } from "../model/json.ts";
import type { Tool, ToolCall, ToolOutput } from "../model/ports.ts";
import { type Result, err } from "../model/result.ts";
import { answer, fileName } from "./answer.ts";
import { textArgument } from "./arguments.ts";
import { isSecretFile } from "./secret-files.ts";
import { openInside } from "./workspace-path.ts";

/** Entries looked at, and entries shown of them. */
const seen = 20_000;
const listed = 1_000;

/** Lists one folder. */
export const lsTool: Tool = {
  name: "LS",
  description:
    "Lists the entries of one folder of the workspace, sorted: folders end in /, symbolic links in @. " +
    "For whole trees use Glob. At most 1000 entries.",
  readOnly: true,
  parameters: {
    type: "object",
    additionalProperties: false,
    properties: { path: { type: "string", description: "Path of the folder; the workspace by default" } },
  },
  aliases: { names: ["ls", "list", "list_directory"], parameters: { dir_path: "path", dirPath: "path" } },
  run: list,
};

async function list(args: JsonObject, call: ToolCall): Promise<Result<ToolOutput, string>> {
  const opened = await openInside(call.workspace, textArgument(args, "path") ?? ".", "folder");
  if (!opened.ok) return opened;
  const { handle, place, stable } = opened.value;
  try {
    const names: string[] = [];
    let more = false;
    for await (const entry of await opendir(stable, { bufferSize: 1_024 })) {
      if (call.signal.aborted) return err("cancelled");
      more = names.length === seen;
      if (more) break;
      const path = place.relative === "" ? entry.name : `${place.relative}/${entry.name}`;
      const isHidden = entry.name === ".flow" || isSecretFile(path) || call.mayRead?.(path) === false;
      if (!isHidden) names.push(`${fileName(entry.name)}${mark(entry)}`);
    }
    return present(names, more);
  } finally {
    await handle.close();
  }
}

function mark(entry: Dirent): string {
  if (entry.isDirectory()) return "/";
  if (entry.isSymbolicLink()) return "@";
  return entry.isFile() ? "" : " (not a regular file)";
}

function present(names: readonly string[], more: boolean): Result<ToolOutput, string> {
  if (names.length === 0) return answer("[the folder is empty]");
  const sorted = [...names].sort().slice(0, listed);
  const total = more ? `more than ${seen} entries` : `${names.length} entries`;
  if (sorted.length < names.length)
    sorted.push(
      `[${sorted.length} of ${total}${more ? ", not all of them were looked at" : ""}; use Glob with a narrower pattern]`,
    );
  return answer(sorted.join("\n"));
}
