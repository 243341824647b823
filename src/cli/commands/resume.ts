import type { Command } from "commander";
import { exitCodes } from "../../model/outcome.ts";
import {
  another,
  type ConditionFlags,
  conditionsOf,
  type RunningFlags,
  runningOf,
  takesAnswers,
  takesConditions,
  takesPace,
} from "../conditions.ts";
import { say } from "../output.ts";
import { onSignals } from "../signals.ts";
import { untilEnd } from "../until-end.ts";
import { printEnd, sayRefusal, watcher, watches, type Watching } from "../watch.ts";

interface ResumeFlags extends Watching, ConditionFlags, RunningFlags {
  readonly from?: string;
  readonly set?: readonly string[];
  readonly workflow?: string;
}

export function defineResume(program: Command): void {
  const command = watches(program.command("resume"))
    .description("go on with a run that waits, died, failed or was cancelled: what ended is reused, all else runs")
    .argument("<run>", "`latest`, the id of a run, the beginning of one, or its folder")
    .option("--from <path>", "run this step, item or iteration again, and everything after it")
    .option("--set <path.output=value>", "replace an output of a finished step; repeat it for more", another);
  takesAnswers(command, "that is open").option(
    "--workflow <file>",
    "go on with this workflow instead of the file the run was started with",
  );
  takesConditions(
    takesPace(command),
    "replies from a file instead of any model (default: as the run was started)",
  ).action(resume);
}

async function resume(run: string, flags: ResumeFlags, command: Command): Promise<void> {
  const flow = await import("../../flow.ts");
  const watch = await watcher("-", flags);
  const signals = onSignals();
  const { from, set, workflow } = flags;
  const going = flow.resume({
    run,
    ...conditionsOf(flags, watch, signals),
    ...(from !== undefined && { from }),
    ...(set !== undefined && { set }),
    ...(workflow !== undefined && { workflow }),
    ...runningOf(flags),
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
