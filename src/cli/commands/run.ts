import { type Command, InvalidArgumentError, Option } from "commander";
import type { Given, Prepared, RunRequest } from "../../flow.ts";
import type { JsonObject } from "../../model/json.ts";
import { exitCodes } from "../../model/outcome.ts";
import { parseInput, readJsonFile, readStdin } from "../input.ts";
import { print } from "../output.ts";
import { onSignals } from "../signals.ts";
import { printEnd, sayDiagnostics, sayRefusal, watcher, watches, type Watching } from "../watch.ts";

interface RunFlags extends Watching {
  readonly input?: Given["texts"];
  readonly inputs?: string;
  readonly script?: string;
  readonly dryRun: boolean;
  readonly parallel?: number;
  readonly runsDir?: string;
  readonly logDeltas: boolean;
  readonly fsync: boolean;
}

export function defineRun(program: Command): void {
  watches(program.command("run"))
    .description("check a workflow and run it")
    .argument("<file>", "the workflow; - for standard input")
    .option("-i, --input <name=value>", "an input; repeat it for more", parseInput)
    .option("--inputs <file>", "inputs from a JSON file; --input goes before it")
    .option("--script <file>", "replies from a file instead of any model")
    .option("--dry-run", "print what would run; call nothing, write nothing", false)
    .option("--parallel <n>", "steps at once where the workflow does not say (default 8)", parseParallel)
    .addOption(new Option("--runs-dir <folder>", "where runs are kept (default .flow/runs)").env("FLOW_RUNS_DIR"))
    .option("--log-deltas", "log the pieces of streamed messages too", false)
    .option("--fsync", "wait for the disk after every step", false)
    .action(run);
}

export function parseParallel(text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < 1 || value > 10_000)
    throw new InvalidArgumentError("it is a whole number from 1 to 10000.");
  return value;
}

async function run(file: string, flags: RunFlags, command: Command): Promise<void> {
  const flow = await import("../../flow.ts");
  const values = flags.inputs === undefined ? {} : (readJsonFile(flags.inputs, "--inputs") as JsonObject);
  const stdin = await readStdin(file);
  const watch = await watcher(file, flags);
  const signals = onSignals();
  const request: RunRequest = {
    file,
    ...stdin,
    inputs: { texts: flags.input ?? [], values },
    ...(flags.script !== undefined && { script: flags.script }),
    ...(flags.parallel !== undefined && { parallel: flags.parallel }),
    ...(flags.runsDir !== undefined && { runsDir: flags.runsDir }),
    logDeltas: flags.logDeltas,
    fsync: flags.fsync,
    ...(watch.onEvent && { onEvent: watch.onEvent }),
    signal: signals.cancel,
    kill: signals.kill,
  };
  if (flags.dryRun) {
    const prepared = await flow.prepare(request);
    signals.stop();
    if ("kind" in prepared) await sayRefusal(prepared, flags, command);
    else await printDryRun(prepared, flags, command);
    return;
  }
  const result = await flow.run(request);
  signals.stop();
  if (!result.started) return sayRefusal(result.refusal, flags, command);
  const { end, prepared } = result;
  process.exitCode = end.exitCode;
  await printEnd(end, flags);
  await watch.finish(end, prepared, command);
}

async function printDryRun(
  { plan, inputs, warnings, sources }: Prepared,
  flags: RunFlags,
  command: Command,
): Promise<void> {
  await sayDiagnostics(warnings, sources, command);
  const { dryRunJson, renderDryRun } = await import("../../render/dry-run.ts");
  if (flags.json) print(`${JSON.stringify(dryRunJson(plan, inputs, flags.script), null, 2)}\n`);
  else print(renderDryRun(plan, inputs, flags.script));
  process.exitCode = exitCodes.success;
}
