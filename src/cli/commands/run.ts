import { type Command, InvalidArgumentError, Option } from "commander";
import type { Given, Prepared, Profile, RunRequest } from "../../flow.ts";
import { exitCodes } from "../../model/outcome.ts";
import type { WorstCase } from "../../model/worst-case.ts";
import { parseInput, readJsonFile, readStdin } from "../input.ts";
import { print } from "../output.ts";
import { onSignals } from "../signals.ts";
import { printEnd, sayDiagnostics, sayRefusal, watcher, watches, type Watching } from "../watch.ts";

interface RunFlags extends Watching {
  readonly input?: Given["texts"];
  readonly inputs?: string;
  readonly script?: string;
  readonly replay?: string;
  readonly dryRun: boolean;
  readonly parallel?: number;
  readonly profile?: Profile;
  readonly allow?: readonly string[];
  readonly runsDir?: string;
  readonly approve?: readonly string[];
  readonly form?: readonly string[];
  readonly comment?: string;
  readonly cache: boolean;
  readonly logDeltas: boolean;
  readonly fsync: boolean;
}

export function defineRun(program: Command): void {
  watches(program.command("run"))
    .description("check a workflow and run it")
    .argument("<file>", "the workflow; - for standard input")
    .option("-i, --input <name=value>", "an input; repeat it for more", parseInput)
    .option("--inputs <file>", "inputs from a JSON file; --input goes before it")
    .option("--approve <path>", "say yes to an approval before it asks; repeat it for more", another)
    .option("--form <field=value>", "a field of the form of --approve; PATH.field=value for one of several", another)
    .option("--comment <text>", "what goes with --approve")
    .option("--script <file>", "replies from a file instead of any model")
    .option("--replay <run>", "replies from a run's log instead of any model: a run, or a log file")
    .addOption(profileOption())
    .option("--allow <rule>", "let agents do this, such as 'Bash(git push)'; repeat it for more", another)
    .option("--dry-run", "print what would run; call nothing, write nothing", false)
    .option("--parallel <n>", "steps at once where the workflow does not say (default 8)", parseParallel)
    .addOption(new Option("--runs-dir <folder>", "where runs are kept (default .flow/runs)").env("FLOW_RUNS_DIR"))
    .option("--no-cache", "run steps with `cache` whatever is kept; what they give is kept in its place")
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

export function profileOption(): Option {
  const names: readonly Profile[] = ["read", "edit", "full"];
  return new Option("--profile <name>", "what agents may do where no rule says otherwise").choices(names);
}

/** One value of an option that may be repeated. */
export function another(text: string, before: readonly string[] = []): string[] {
  return [...before, text];
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
    inputs: { texts: flags.input ?? [], values },
    ...(flags.script !== undefined && { script: flags.script }),
    ...(flags.replay !== undefined && { replay: flags.replay }),
    ...(flags.parallel !== undefined && { parallel: flags.parallel }),
    ...(flags.profile && { profile: flags.profile }),
    ...(flags.allow && { allow: flags.allow }),
    ...(flags.runsDir !== undefined && { runsDir: flags.runsDir }),
    cache: flags.cache,
    logDeltas: flags.logDeltas,
    fsync: flags.fsync,
    ...(flags.approve && { approve: flags.approve }),
    ...(flags.form && { form: flags.form }),
    ...(flags.comment !== undefined && { comment: flags.comment }),
    ...(watch.onEvent && { onEvent: watch.onEvent }),
    ...(watch.asker && { asker: watch.asker }),
    signal: signals.cancel,
    kill: signals.kill,
  };
  if (flags.dryRun) {
    const prepared = await flow.prepare(request);
    signals.stop();
    if ("kind" in prepared) return sayRefusal(prepared, flags, command);
    const worst = await flow.worstCase(request, prepared);
    if ("kind" in worst) return sayRefusal(worst, flags, command);
    return printDryRun({ ...prepared, worst }, flags, command);
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
