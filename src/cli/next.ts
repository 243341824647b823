import { basename, dirname } from "node:path";
import { shortPath } from "./paths.ts";

export interface Ended {
  /** As it was typed; `-` for standard input. */
  readonly file: string;
  /** Path of the log, for the working directory. */
  readonly log: string;
  readonly succeeded: boolean;
  /** The step behind the failure. */
  readonly failed: string | undefined;
}

/** Commands worth typing after a run, ready to be pasted into a shell in the working directory. */
export function nextCommands({ file, log, succeeded, failed }: Ended): string[] {
  const resume = `${ownCommand()} resume ${quoted(dirname(log))}`;
  if (failed !== undefined) return [`${ownCommand()} why ${quoted(dirname(log))} ${quoted(failed)}`, resume];
  if (!succeeded) return [resume, `cat ${quoted(log)}`];
  const graph = file === "-" ? [] : [`${ownCommand()} graph ${quoted(file)}`];
  return [...graph, `cat ${quoted(log)}`];
}

/** How this very command was called: `flow`, `npx flow`, `node dist/flow.cjs`. */
function ownCommand(): string {
  const program = process.argv[1] ?? "flow";
  if (process.env["npm_command"] !== undefined) return "npx flow";
  return basename(program) === "flow" ? "flow" : `node ${quoted(shortPath(program))}`;
}

/** One word for a POSIX shell. */
function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
