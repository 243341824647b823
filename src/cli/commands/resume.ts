import type { Command } from "commander";
import { exitCodes } from "../../model/outcome.ts";
import { another, type ConditionFlags, conditionsOf, takesConditions } from "../conditions.ts";
import { say } from "../output.ts";
import { onSignals } from "../signals.ts";
import { untilEnd } from "../until-end.ts";
import { printEnd, sayRefusal, watcher, watches, type Watching } from "../watch.ts";
import { parseParallel } from "./run.ts";

interface ResumeFlags extends Watching, ConditionFlags {
  readonly from?: string;
  readonly set?: readonly string[];
  readonly approve?: readonly string[];
  readonly deny?: readonly string[];
  readonly form?: readonly string[];
  readonly comment?: string;
  readonly by?: string;
  readonly workflow?: string;
  readonly parallel?: number;
  readonly cache: boolean;
}

export function defineResume(program: Command): void {
  const command = watches(program.command("resume"))
    .description("go on with a run that waits, died, failed or was cancelled: what ended is reused, all else runs")
    .argument("<run>", "`latest`, the id of a run, the beginning of one, or its folder")
    .option("--from <path>", "run this step, item or iteration again, and everything after it")
    .option("--set <path.output=value>", "replace an output of a finished step; repeat it for more", another)
    .option("--approve <path>", "say yes to an approval that is open; repeat it for more", another)
    .option("--deny <path>", "say no to an approval that is open; repeat it for more", another)
    .option("--form <field=value>", "a field of the form of --approve; PATH.field=value for one of several", another)
    .option("--comment <text>", "what goes with --approve and --deny")
    .option("--by <name>", "who answers (default: as CI, git or the system knows you)")
    .option("--workflow <file>", "go on with this workflow instead of the file the run was started with")
    .option("--parallel <n>", "steps at once where the workflow does not say (default 8)", parseParallel)
    .option("--no-cache", "run steps with `cache` whatever is kept; what they give is kept in its place");
  takesConditions(command, "replies from a file instead of any model (default: as the run was started)").action(resume);
}

async function resume(run: string, flags: ResumeFlags, command: Command): Promise<void> {
  const flow = await import("../../flow.ts");
  const watch = await watcher("-", flags);
  const signals = onSignals();
  const { from, set, workflow, parallel, cache } = flags;
  const going = flow.resume({
    run,
    ...conditionsOf(flags, watch, signals),
    ...(from !== undefined && { from }),
    ...(set !== undefined && { set }),
    ...(workflow !== undefined && { workflow }),
    ...(parallel !== undefined && { parallel }),
    cache,
    ...(flags.approve && { approve: flags.approve }),
    ...(flags.deny && { deny: flags.deny }),
    ...(flags.form && { form: flags.form }),
    ...(flags.comment !== undefined && { comment: flags.comment }),
    ...(flags.by !== undefined && { by: flags.by }),
  });
  const result = await untilEnd(going);
  signals.stop();
  if ("finished" in result) {
    process.exitCode = exitCodes.success;
    say(`flow: run ${result.finished.run} has succeeded already: there is nothing to do\n`);
    await printEnd(result.finished, flags);
    return;
  }
  if (!result.started) return sayRefusal(result.refusal, flags, command);
  process.exitCode = result.end.exitCode;
  await printEnd(result.end, flags);
  await watch.finish(result.end, result.prepared, command);
}
