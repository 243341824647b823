import type { Execute } from "../model/ports.ts";
import { type Approve, type ApproveOptions, createApprove } from "./approve.ts";
import { createRun, type RunOptions } from "./run.ts";
import { set } from "./set.ts";
import { createTool, type ToolOptions } from "./tool.ts";

export type StepsOptions = RunOptions & Omit<ToolOptions, "checkValue"> & ApproveOptions;

export interface Steps {
  readonly run: Execute;
  readonly set: Execute;
  readonly tool: Execute;
  readonly approve: Approve;
}

/** The step kinds of this folder; adding one is a file and a line here. */
export function createSteps(options: StepsOptions): Steps {
  const tool = createTool({ ...options, checkValue: options.checkOutput });
  return { run: createRun(options), set, tool, approve: createApprove(options) };
}
