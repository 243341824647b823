import type { JsonObject } from "../model/json.ts";
import type { Tool } from "../model/ports.ts";
import { Marks } from "../process/marks.ts";
import { globTool } from "./glob.ts";
import { grepTool } from "./grep.ts";
import { lsTool } from "./ls.ts";
import { readTool } from "./read.ts";

export { canonicalToolName, toolNames } from "./names.ts";

export interface ToolsOptions {
  /** Those of the run: a search that outlives its call is found by them. */
  readonly marks: Marks;
}

/** The tools an agent may be offered. Each works in the workspace its call names and holds no state. */
export function createTools({ marks }: ToolsOptions): readonly Tool[] {
  return [readTool, globTool(marks), grepTool(marks), lsTool];
}

/** JSON Schema of a tool's arguments; undefined for one that is not on offer. */
export function parametersOf(name: string): JsonObject | undefined {
  return createTools({ marks: new Marks("") }).find((tool) => tool.name === name)?.parameters;
}
