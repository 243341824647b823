import { type Command, InvalidArgumentError } from "commander";
import type { Given, Prepared, RunRequest } from "../../flow.ts";
import { exitCodes } from "../../model/outcome.ts";
import type { WorstCase } from "../../model/worst-case.ts";
import { another, type ConditionFlags, conditionsOf, takesConditions } from "../conditions.ts";
import { parseInput, readJsonFile, readStdin } from "../input.ts";
import { print } from "../output.ts";
import { onSignals } from "../signals.ts";
import { untilEnd } from "../until-end.ts";
import { printEnd, sayDiagnostics, sayRefusal, watcher, watches, type Watching } from "../watch.ts";

interface RunFlags extends Watching, ConditionFlags {
  readonly input?: Given["texts"];
  readonly inputs?: string;
  readonly dryRun: boolean;
  readonly parallel?: number;
  readonly approve?: readonly string[];
  readonly form?: readonly string[];
  readonly comment?: string;
  readonly deny?: readonly string[];
  readonly by?: string;
  readonly cache: boolean;
}

export function defineRun(program: Command): void {
  const command = watches(program.command("run"))
    .description("check a workflow and run it")
    .argument("<file>", "the workflow; - for standard input")
    .option("-i, --input <name=value>", "an input; repeat it for more", parseInput)
    .option("--inputs <file>", "inputs from a JSON file; --input goes before it")
    .option("--approve <path>", "say yes to an approval before it asks; repeat it for more", another)
    .option("--deny <path>", "say no to an approval before it asks; repeat it for more", another)
    .option("--form <field=value>", "a field of the form of --approve; PATH.field=value for one of several", another)
    .option("--comment <text>", "what goes with --approve and --deny")
    .option("--by <name>", "who answers (default: as CI, git or the system knows you)")
    .option("--dry-run", "print what would run; call nothing, write nothing", false)
    .option("--parallel <n>", "steps at once where the workflow does not say (default 8)", parseParallel)
    .option("--no-cache", "run steps with `cache` whatever is kept; what they give is kept in its place");
  takesConditions(command).action(run);
}

export function parseParallel(text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < 1 || value > 10_000)
    throw new InvalidArgumentError("it is a whole number from 1 to 10000.");
  return value;
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
    ...(flags.parallel !== undefined && { parallel: flags.parallel }),
    cache: flags.cache,
    ...(flags.approve && { approve: flags.approve }),
    ...(flags.deny && { deny: flags.deny }),
    ...(flags.form && { form: flags.form }),
    ...(flags.comment !== undefined && { comment: flags.comment }),
    ...(flags.by !== undefined && { by: flags.by }),
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
