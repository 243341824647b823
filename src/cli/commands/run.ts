import type { Command } from "commander";
import type { Given, Prepared, RunRequest } from "../../flow.ts";
import { exitCodes } from "../../model/outcome.ts";
import type { WorstCase } from "../../model/worst-case.ts";
import {
  type ConditionFlags,
  conditionsOf,
  type RunningFlags,
  runningOf,
  takesAnswers,
  takesConditions,
  takesPace,
} from "../conditions.ts";
import { parseInput, readJsonFile, readStdin } from "../input.ts";
import { print } from "../output.ts";
import { onSignals } from "../signals.ts";
import { untilEnd } from "../until-end.ts";
import { printEnd, sayDiagnostics, sayRefusal, watcher, watches, type Watching } from "../watch.ts";

interface RunFlags extends Watching, ConditionFlags, RunningFlags {
  readonly input?: Given["texts"];
  readonly inputs?: string;
  readonly dryRun: boolean;
}

export function defineRun(program: Command): void {
  const command = watches(program.command("run"))
    .description("check a workflow and run it")
    .argument("<file>", "the workflow; - for standard input")
    .option("-i, --input <name=value>", "an input; repeat it for more", parseInput)
    .option("--inputs <file>", "inputs from a JSON file; --input goes before it");
  takesAnswers(command, "before it asks").option(
    "--dry-run",
    "print what would run; call nothing, write nothing",
    false,
  );
  takesConditions(takesPace(command)).action(run);
}

async function run(file: string, flags: RunFlags, command: Command): Promise<void> {
  const flow = await import("../../flow.ts");
  const values = flags.inputs === undefined ? {} : await readJsonFile(flags.inputs, "--inputs");
  const stdin = await readStdin(file);
  const watch = await watcher(file, flags);
  const signals = onSignals();
  const request: RunRequest = {
    file,
    ...stdin,
    inputs: values,
    ...(flags.input && { inputTexts: flags.input }),
    ...conditionsOf(flags, watch, signals),
    ...runningOf(flags),
  };
  if (flags.dryRun) {
    const prepared = await flow.prepare(request);
    signals.stop();
    if ("kind" in prepared) return sayRefusal(prepared, flags, command);
    const worst = await flow.worstCase(request, prepared);
    if ("kind" in worst) return sayRefusal(worst, flags, command);
    return printDryRun({ ...prepared, worst }, flags, command);
  }
  const result = await untilEnd(flow.run(request));
  signals.stop();
  if (!result.started) return sayRefusal(result.refusal, flags, command);
  const { end, prepared } = result;
  process.exitCode = end.exitCode;
  await printEnd(end, flags);
  await watch.finish(end, prepared, command);
}

async function printDryRun(
  { plan, inputs, warnings, sources, worst }: Prepared & { readonly worst: WorstCase },
  flags: RunFlags,
  command: Command,
): Promise<void> {
  await sayDiagnostics(warnings, sources, command);
  const { dryRunJson, renderDryRun } = await import("../../render/dry-run.ts");
  const dry = { plan, inputs, script: flags.script, worst };
  if (flags.json) print(`${JSON.stringify(dryRunJson(dry), null, 2)}\n`);
  else print(renderDryRun(dry));
  process.exitCode = exitCodes.success;
}
