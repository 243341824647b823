import type { JsonObject } from "../model/json.ts";
import type { Tool } from "../model/ports.ts";
import { Marks } from "../process/marks.ts";
import { bashTool } from "./bash.ts";
import { editTool } from "./edit.ts";
import { globTool } from "./glob.ts";
import { grepTool } from "./grep.ts";
import { lsTool } from "./ls.ts";
import type { Programs } from "./programs.ts";
import { readTool } from "./read.ts";
import { todoWriteTool } from "./todo-write.ts";
import { isPublic, type WebFetchOptions, webFetchTool } from "./web-fetch.ts";
import { writeTool } from "./write.ts";

export { customTools } from "./custom.ts";
export { canonicalToolName, toolNames } from "./names.ts";

export interface ToolsOptions extends Programs, Partial<WebFetchOptions> {}

/** The tools an agent may be offered. Each works in the workspace its call names and holds no state. */
export function createTools(options: ToolsOptions): readonly Tool[] {
  const { marks, spillFolder, reaches = isPublic } = options;
  const files = [readTool(spillFolder), globTool(marks), grepTool(marks), lsTool, writeTool, editTool];
  return [...files, bashTool(options), webFetchTool({ reaches }), todoWriteTool];
}

/** JSON Schema of a tool's arguments; undefined for one that is not on offer. */
export function parametersOf(name: string): JsonObject | undefined {
  return createTools({ marks: new Marks(""), environment: {} }).find((tool) => tool.name === name)?.parameters;
}
