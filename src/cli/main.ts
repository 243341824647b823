import { Command, CommanderError, InvalidArgumentError } from "commander";
import { exitCodes } from "../model/outcome.ts";
import { defineAgent } from "./commands/agent.ts";
import { defineAgents } from "./commands/agents.ts";
import { defineCache } from "./commands/cache.ts";
import { defineCancel } from "./commands/cancel.ts";
import { defineDoctor } from "./commands/doctor.ts";
import { defineEval } from "./commands/eval.ts";
import { defineGraph } from "./commands/graph.ts";
import { defineLogs } from "./commands/logs.ts";
import { defineMcp } from "./commands/mcp.ts";
import { definePermit } from "./commands/permit.ts";
import { defineResume } from "./commands/resume.ts";
import { defineRun } from "./commands/run.ts";
import { defineRuns } from "./commands/runs.ts";
import { defineSchema } from "./commands/schema.ts";
import { defineShow } from "./commands/show.ts";
import { defineValidate } from "./commands/validate.ts";
import { defineWhy } from "./commands/why.ts";
import { another } from "./conditions.ts";
import { parseInput } from "./input.ts";
import { takesOnce } from "./once.ts";
import { bugText, say, watchStreams } from "./output.ts";

const exitCodeHelp = `
Exit codes:
  0 success                 5 waiting for a person
  1 a step failed           6 denied by permissions
  2 wrong usage or file     70 a bug of flow
  3 could not run           130 interrupted, 143 terminated
  4 a limit was hit`;

/** The `flow` command. Sets the process's exit code and lets it end by itself, so that no output is lost. */
export async function start(argv: readonly string[] = process.argv): Promise<void> {
  const debug = argv.includes("--debug");
  watchStreams();
  endOnBug(debug);
  const program = defineProgram();
  try {
    await program.parseAsync([...argv]);
  } catch (error) {
    process.exitCode = report(error, debug);
  }
}

function defineProgram(): Command {
  const program = new Command("flow")
    .description("Runs agent workflows from YAML files: checked before anything runs, with one readable log.")
    .version(process.env["FLOW_VERSION"] ?? "0.0.0-source", "-V, --version", "print the version")
    .option("--color", "colour, also in a pipe")
    .option("--no-color", "no colour")
    .option("--debug", "show the stack of a bug")
    .showSuggestionAfterError()
    .addHelpText("after", exitCodeHelp)
    .exitOverride();
  const running = [
    defineRun,
    defineAgent,
    defineResume,
    defineCancel,
    defineRuns,
    defineShow,
    defineLogs,
    defineWhy,
    defineCache,
  ];
  const writing = [
    defineValidate,
    defineAgents,
    definePermit,
    defineGraph,
    defineEval,
    defineSchema,
    defineMcp,
    defineDoctor,
  ];
  for (const define of [...running, ...writing]) define(program);
  for (const command of program.commands) takesOnce(command, [another, parseInput]);
  for (const command of program.commands)
    command.exitOverride().showHelpAfterError("(see `flow " + command.name() + " --help`)");
  return program;
}

/** What is thrown outside every promise we wait for. Nothing can be relied on after it, least of all that the process ends. */
function endOnBug(debug: boolean): void {
  process.on("uncaughtException", (error) => {
    say(bugText(error, debug));
    process.exit(exitCodes.internal);
  });
}

/** The exit code of what was thrown: wrong usage, which commander has printed unless a command found it, or a bug of ours. */
function report(error: unknown, debug: boolean): number {
  if (error instanceof InvalidArgumentError) say(`error: ${error.message}\n`);
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.success : exitCodes.usage;
  if (error instanceof Error && "code" in error && (error.code === "EMFILE" || error.code === "ENFILE")) {
    say(`flow: too many files are open (${error.code}); raise the limit (ulimit -n)\n`);
    return exitCodes.unavailable;
  }
  if (error instanceof Error && "syscall" in error && error.syscall === "uv_cwd") {
    say("flow: the working directory is not there any more; go to one that is\n");
    return exitCodes.usage;
  }
  say(bugText(error, debug));
  return exitCodes.internal;
}
