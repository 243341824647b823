import { type Command, Option } from "commander";
import { exitCodes } from "../../model/outcome.ts";
import { say } from "../output.ts";
import { onSignals } from "../signals.ts";
import { printEnd, sayRefusal, watcher, watches, type Watching } from "../watch.ts";
import { parseParallel } from "./run.ts";

interface ResumeFlags extends Watching {
  readonly from?: string;
  readonly set?: readonly string[];
  readonly workflow?: string;
  readonly script?: string;
  readonly parallel?: number;
  readonly runsDir?: string;
  readonly logDeltas: boolean;
  readonly fsync: boolean;
}

export function defineResume(program: Command): void {
  watches(program.command("resume"))
    .description("go on with a run that died, failed or was cancelled: what ended is reused, all else runs")
    .argument("<run>", "`latest`, the id of a run, the beginning of one, or its folder")
    .option("--from <path>", "run this step, item or iteration again, and everything after it")
    .option("--set <path.output=value>", "replace an output of a finished step; repeat it for more", another)
    .option("--workflow <file>", "go on with this workflow instead of the file the run was started with")
    .option("--script <file>", "replies from a file instead of any model (default: as the run was started)")
    .option("--parallel <n>", "steps at once where the workflow does not say (default 8)", parseParallel)
    .addOption(new Option("--runs-dir <folder>", "where runs are kept (default .flow/runs)").env("FLOW_RUNS_DIR"))
    .option("--log-deltas", "log the pieces of streamed messages too", false)
    .option("--fsync", "wait for the disk after every step", false)
    .action(resume);
}

function another(text: string, before: readonly string[] = []): string[] {
  return [...before, text];
}

async function resume(run: string, flags: ResumeFlags, command: Command): Promise<void> {
  const flow = await import("../../flow.ts");
  const watch = await watcher("-", flags);
  const signals = onSignals();
  const { from, set, workflow, script, parallel, runsDir, logDeltas, fsync } = flags;
  const result = await flow.resume({
    run,
    ...(from !== undefined && { from }),
    ...(set !== undefined && { set }),
    ...(workflow !== undefined && { workflow }),
    ...(script !== undefined && { script }),
    ...(parallel !== undefined && { parallel }),
    ...(runsDir !== undefined && { runsDir }),
    logDeltas,
    fsync,
    ...(watch.onEvent && { onEvent: watch.onEvent }),
    signal: signals.cancel,
    kill: signals.kill,
  });
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
