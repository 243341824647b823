import type { Execute } from "../model/ports.ts";
import { createRun, type RunOptions } from "./run.ts";
import { set } from "./set.ts";
import { createTool, type ToolOptions } from "./tool.ts";

export type StepsOptions = RunOptions & Omit<ToolOptions, "checkValue">;

export interface Steps {
  readonly run: Execute;
  readonly set: Execute;
  readonly tool: Execute;
}

/** The step kinds of this folder; adding one is a file and a line here. */
export function createSteps(options: StepsOptions): Steps {
  return { run: createRun(options), set, tool: createTool({ ...options, checkValue: options.checkOutput }) };
}
