import type { Execute } from "../model/ports.ts";
import { createRun, type RunOptions } from "./run.ts";
import { set } from "./set.ts";

export type StepsOptions = RunOptions;

/** The step kinds of this folder; adding one is a file and a line here. */
export function createSteps(options: StepsOptions): { readonly run: Execute; readonly set: Execute } {
  return { run: createRun(options), set };
}
