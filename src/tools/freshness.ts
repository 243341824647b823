import { lstat } from "node:fs/promises";
import type { Tool, ToolCall } from "../model/ports.ts";
import { textArgument } from "./arguments.ts";
import { markOf } from "./file-mark.ts";
import { codeOf, type Place, placeOf, shown } from "./workspace-path.ts";

export interface Freshness {
  readonly state: "missing" | "there";
  /** Why the agent may not change the file as it is; a sentence for the model. */
  readonly problem?: string;
}

/** The clock of a file system may be behind by one tick of the kernel. Milliseconds. */
const tick = 10;

/** A file that has not changed since `then`, when an agent knew it, is known again. */
async function recallSeen(path: string, { workspace, seen }: ToolCall, then: number): Promise<void> {
  const place = await placeOf(workspace, path);
  if (!place.ok) return;
  try {
    const stats = await lstat(place.value.real);
    if (stats.isFile() && Math.max(stats.ctimeMs, stats.mtimeMs) <= then) seen?.set(place.value.real, markOf(stats));
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
  }
}

/** Reading tells what a file was before it began. */
export const recallRead: NonNullable<Tool["recall"]> = (args, call, { started }) =>
  recallSeen(textArgument(args, "file_path") ?? "", call, started - tick);

/** Writing tells what it was at the end. */
export const recallWritten: NonNullable<Tool["recall"]> = (args, call, { finished }) =>
  recallSeen(textArgument(args, "file_path") ?? "", call, finished);

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
