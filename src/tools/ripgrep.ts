import type { ToolCall } from "../model/ports.ts";
import { type Result, err, ok } from "../model/result.ts";
import type { Marks } from "../process/marks.ts";
import { runProcess } from "../process/run.ts";

/** A tool call that may start processes; they carry the marks of its run. */
export interface SearchCall extends ToolCall {
  readonly marks: Marks;
}

export interface Found {
  /** What ripgrep printed, from the beginning, up to a cap; then it ends anywhere. */
  readonly text: string;
  readonly complete: boolean;
}

/** Milliseconds a search may take. */
const searchTime = 20_000;
const kept = 4 * 1024 * 1024;

/** Folders no search enters unless its start or its pattern names them. */
const skippedFolders = [".git", "node_modules"];

/** Arguments that keep a search out of what nobody asks for; `named` are the texts that may name such a folder. */
export function exclusions(named: readonly string[]): string[] {
  const segments = new Set(named.flatMap((text) => text.split("/")));
  return [...skippedFolders.filter((name) => !segments.has(name)), ".flow"].map((name) => `--glob=!**/${name}`);
}

/**
 * Runs ripgrep, which matches in linear time whatever the pattern and is killed by the signal. It gets no environment,
 * reads no configuration and follows no link. Nothing found is an empty text; a bad pattern is ripgrep's own message.
 */
export async function ripgrep(args: readonly string[], cwd: string, call: SearchCall): Promise<Result<Found, string>> {
  const program = await programPath();
  if (program === undefined) return err("search is not available: ripgrep has no binary for this platform");
  const timer = AbortSignal.timeout(searchTime);
  const argv = [program, "--no-config", "--no-follow", "--color=never", ...args];
  const signal = AbortSignal.any([call.signal, timer]);
  const result = await runProcess({ argv, cwd, env: {}, marks: call.marks, signal, grace: 200, maxBytes: 2 * kept });
  switch (result.kind) {
    case "spawn_failed":
      return err(`the search could not start: ${result.message}`);
    case "aborted":
      return err(call.signal.aborted ? "cancelled" : `the search took longer than ${searchTime / 1000} s; narrow it`);
    case "signalled":
      return err(`the search was ended by ${result.signal}`);
    case "exited": {
      const { stdout, stderr, code } = result;
      // 2 with output: only some files could not be read.
      if (code > 1 && stdout.bytes === 0) return err(`the search failed: ${stderr.text.trim().slice(0, 2_000)}`);
      // A truncated capture has its beginning in the first half of what it may keep.
      const text = stdout.truncated ? stdout.text.slice(0, Math.floor(kept / 4)) : stdout.text;
      return ok({ text, complete: !stdout.truncated });
    }
    default:
      return result satisfies never;
  }
}

/** The binary ships with a package of its own for each platform, which may be missing. */
export async function programPath(): Promise<string | undefined> {
  try {
    return (await import("@vscode/ripgrep")).rgPath;
  } catch {
    return undefined;
  }
}
