import { lstat } from "node:fs/promises";
import type { ToolCall } from "../model/ports.ts";
import { markOf } from "./file-mark.ts";
import { codeOf, type Place, shown } from "./workspace-path.ts";

export interface Freshness {
  readonly state: "missing" | "there";
  /** Why the agent may not change the file as it is; a sentence for the model. */
  readonly problem?: string;
}

/** Whether an agent knows a file as it is now. Where no agent calls, every file counts as known. */
export async function changedSince({ real, relative }: Place, { seen }: ToolCall): Promise<Freshness> {
  try {
    const stats = await lstat(real);
    if (seen === undefined) return { state: "there" };
    const mark = seen.get(real);
    if (mark === undefined)
      return { state: "there", problem: `${shown(relative)} exists and was not read yet: Read it first` };
    if (mark === markOf(stats)) return { state: "there" };
    return { state: "there", problem: `${shown(relative)} has changed since it was read: Read it again` };
  } catch (error) {
    if (codeOf(error) === "ENOENT") return { state: "missing" };
    throw error;
  }
}
