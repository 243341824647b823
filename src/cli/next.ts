import { basename, dirname } from "node:path";
import type { OpenApproval } from "../model/ports.ts";
import { shortPath } from "./paths.ts";

export interface Ended {
  /** As it was typed; `-` for standard input. */
  readonly file: string;
  /** Path of the log, for the working directory. */
  readonly log: string;
  readonly succeeded: boolean;
  /** It has told already how to go on. */
  readonly waits: boolean;
  /** The step behind the failure, and what its error says, which may name the rules that would let it go on. */
  readonly failed: { readonly step: string; readonly reason: string } | undefined;
}

/** Commands worth typing after a run, ready to be pasted into a shell in the working directory. */
export function nextCommands({ file, log, succeeded, waits, failed }: Ended): string[] {
  const run = quoted(runName(log));
  const rules = /(?: --allow '(?:[^'\n]|'\\'')*')+/.exec(failed?.reason ?? "")?.[0] ?? "";
  const [resume, show] = [`${ownCommand()} resume ${run}${rules}`, `${ownCommand()} show ${run}`];
  if (waits) return [show];
  if (failed !== undefined) return [`${ownCommand()} why ${run} ${quoted(failed.step)}`, resume];
  if (!succeeded) return [resume, show];
  return [...(file === "-" ? [] : [`${ownCommand()} graph ${quoted(file)}`]), show];
}

/** The commands that answer an open approval. */
export function answerCommands({ step, fields }: OpenApproval, log: string): { approve: string; deny: string } {
  const resume = `${ownCommand()} resume ${quoted(runName(log))}`;
  const form = fields
    .filter((field) => field.default === undefined && field.required)
    .map(({ name, choices }) => ` --form ${quoted(`${name}=${choices?.[0] ?? "…"}`)}`);
  return { approve: `${resume} --approve ${quoted(step)}${form.join("")}`, deny: `${resume} --deny ${quoted(step)}` };
}

/** The run's id where runs lie below the working directory, else its folder: both are taken for a run. */
function runName(log: string): string {
  const folder = dirname(log);
  return dirname(folder) === ".flow/runs" ? basename(folder) : folder;
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
