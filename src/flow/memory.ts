import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isJsonObject, own } from "../model/json.ts";
import type { Agent } from "../model/plan.ts";
import type { Emit, Tool } from "../model/ports.ts";
import { messageOf } from "../model/result.ts";
import { memoryTool } from "../tools/memory.ts";
import { userFolder } from "./config-files.ts";
import type { StartOptions } from "./run-options.ts";

/** The folder an agent keeps across runs. */
export interface Memory {
  readonly tool: Tool;
  /** What it is told of it up front: the beginning of its `MEMORY.md`. */
  readonly told: () => string;
}

/** Characters of `MEMORY.md` that an agent is given. */
const longest = 8 * 1024;

/**
 * The memory of an agent that asks for one. In CI there is none, because what one run learns would decide the next, unless
 * `FLOW_MEMORY` is `on`; the log says so.
 */
export function memoryOf({ name, settings }: Agent, { workspace, env }: StartOptions, emit: Emit): Memory | undefined {
  const scope = isJsonObject(settings.json) ? own(settings.json, "memory") : undefined;
  if (scope !== "project" && scope !== "user") return undefined;
  const wish = env["FLOW_MEMORY"] ?? "";
  const isCi = !["", "0", "false"].includes(env["CI"] ?? "");
  if (wish === "off" || (isCi && wish !== "on")) return undefined;
  const home = scope === "project" ? join(workspace, ".agents") : userFolder(env);
  const folder = home === undefined ? undefined : join(home, "memory", name);
  const problem =
    folder === undefined ? "there is no home folder: HOME is not set, or not absolute" : problemOf(folder);
  if (folder === undefined || problem !== undefined) {
    const message = `the memory of agent \`${name}\` cannot be used: ${problem ?? ""}`;
    const at = { file: folder ?? "HOME", line: 1, column: 1, endLine: 1, endColumn: 1 };
    emit({ type: "diagnostic", diagnostic: { code: "FLOW8008", severity: "warning", message, at } });
    return undefined;
  }
  return { tool: memoryTool(folder), told: () => textOf(folder) };
}

/** Makes the folder where there is none. */
function problemOf(folder: string): string | undefined {
  try {
    mkdirSync(folder, { recursive: true });
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

function textOf(folder: string): string {
  const about =
    "You have a memory: a folder that stays from run to run. The tool `Memory` lists, reads, writes and deletes its files. " +
    "Keep `MEMORY.md` as a short list of what is worth knowing next time.";
  let index: string;
  try {
    index = readFileSync(join(folder, "MEMORY.md"), "utf8").trim();
  } catch {
    return `${about} It is empty.`;
  }
  const shown = index.length > longest ? `${index.slice(0, longest)}\n[cut: the file is longer]` : index;
  return `${about}\n\nMEMORY.md says:\n\n${shown}`;
}
