import { Command, CommanderError } from "commander";
import { exitCodes } from "../model/outcome.ts";
import { defineEval } from "./commands/eval.ts";
import { defineGraph } from "./commands/graph.ts";
import { defineRun } from "./commands/run.ts";
import { defineSchema } from "./commands/schema.ts";
import { defineValidate } from "./commands/validate.ts";
import { silenceClosedPipes } from "./output.ts";

const exitCodeHelp = `
Exit codes:
  0 success                 5 waiting for a person
  1 a step failed           6 denied by permissions
  2 wrong usage or file     70 a bug of flow
  3 could not run           130 interrupted, 143 terminated
  4 a limit was hit`;

/** The `flow` command. Sets the process's exit code and lets it end by itself, so that no output is lost. */
export async function start(argv: readonly string[] = process.argv): Promise<void> {
  silenceClosedPipes();
  const program = defineProgram();
  try {
    await program.parseAsync([...argv]);
  } catch (error) {
    process.exitCode = report(error, argv.includes("--debug"));
  }
}

function defineProgram(): Command {
  const program = new Command("flow")
    .description("Runs agent workflows from YAML files: checked first, resumable, with one readable log.")
    .version(process.env["FLOW_VERSION"] ?? "0.0.0-source", "-V, --version", "print the version")
    .option("--color", "colour, also in a pipe")
    .option("--no-color", "no colour")
    .option("--debug", "show the stack of a bug")
    .showSuggestionAfterError()
    .addHelpText("after", exitCodeHelp)
    .exitOverride();
  for (const define of [defineRun, defineValidate, defineGraph, defineEval, defineSchema]) define(program);
  for (const command of program.commands) command.exitOverride().showHelpAfterError("(see `flow " + command.name() + " --help`)");
  return program;
}

/** Usage errors have been printed by then; anything else that is thrown is a bug of ours. */
function report(error: unknown, debug: boolean): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.success : exitCodes.usage;
  const message = error instanceof Error ? error.message : String(error);
  const stack = error instanceof Error && debug ? `\n${error.stack ?? ""}` : "";
  const hint = debug ? "" : " (--debug shows where)";
  process.stderr.write(`flow: this is a bug of flow: ${message.split("\n")[0]}${hint}${stack}\n`);
  return exitCodes.internal;
}
