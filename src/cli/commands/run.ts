import { type Command, InvalidArgumentError, Option } from "commander";
import type { Given, Prepared, Refusal, RunEnd, RunRequest } from "../../flow.ts";
import type { Diagnostic } from "../../model/diagnostic.ts";
import type { LogLine } from "../../model/event.ts";
import type { JsonObject } from "../../model/json.ts";
import { exitCodes } from "../../model/outcome.ts";
import { parseInput, readJsonFile, readStdin } from "../input.ts";
import { bugText, paletteOf, print, say } from "../output.ts";
import { onSignals } from "../signals.ts";

type Progress = "auto" | "plain" | "json" | "quiet";

interface RunFlags {
  readonly input?: Given["texts"];
  readonly inputs?: string;
  readonly script?: string;
  readonly json: boolean;
  readonly progress: Progress;
  readonly dryRun: boolean;
  readonly parallel?: number;
  readonly runsDir?: string;
  readonly logDeltas: boolean;
  readonly fsync: boolean;
  readonly verbose?: number;
  readonly quiet: boolean;
}

export function defineRun(program: Command): void {
  program
    .command("run")
    .description("check a workflow and run it")
    .argument("<file>", "the workflow; - for standard input")
    .option("-i, --input <name=value>", "an input; repeat it for more", parseInput)
    .option("--inputs <file>", "inputs from a JSON file; --input goes before it")
    .option("--script <file>", "replies from a file instead of any model")
    .option("--dry-run", "print what would run; call nothing, write nothing", false)
    .option("--json", "print the result as one JSON document", false)
    .addOption(
      new Option("--progress <how>", "what to print while it runs")
        .choices(["auto", "plain", "json", "quiet"])
        .default("auto")
        .env("FLOW_PROGRESS"),
    )
    .option("-q, --quiet", "the same as --progress quiet", false)
    .option(
      "-v, --verbose",
      "print turns and tool calls; twice: messages too",
      (_: string, before: number | undefined) => (before ?? 0) + 1,
    )
    .option("--parallel <n>", "steps at once where the workflow does not say (default 8)", parseParallel)
    .addOption(new Option("--runs-dir <folder>", "where runs are kept (default .flow/runs)").env("FLOW_RUNS_DIR"))
    .option("--log-deltas", "log the pieces of streamed messages too", false)
    .option("--fsync", "wait for the disk after every step", false)
    .action(run);
}

function parseParallel(text: string): number {
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
  if (flags.json) print(`${JSON.stringify({ schemaVersion: 1, ...end }, null, 2)}\n`);
  else if (Object.keys(end.outputs).length > 0)
    print((await import("../../render/outputs.ts")).renderOutputs(end.outputs));
  await watch.finish(end, prepared, command);
}

interface Watcher {
  readonly onEvent?: (line: LogLine) => void;
  readonly finish: (end: RunEnd, prepared: Prepared, command: Command) => Promise<void>;
}

/** What is said on stderr while a run goes on and at its end. */
async function watcher(file: string, flags: RunFlags): Promise<Watcher> {
  const how = flags.quiet ? "quiet" : flags.progress;
  if (how === "quiet") return { finish: sayFailure };
  if (how === "json") return { onEvent: (line) => say(`${JSON.stringify(line)}\n`), finish: async () => undefined };
  const [{ plainProgress }, { failedStep, noFacts, observe, runSummary }] = await Promise.all([
    import("../../render/progress.ts"),
    import("../../render/summary.ts"),
  ]);
  const verbose = Math.min(flags.verbose ?? 0, 2) as 0 | 1 | 2;
  const progress = plainProgress({ verbose, ...(process.stderr.isTTY && { width: process.stderr.columns }) });
  let facts = noFacts;
  return {
    onEvent: (line) => {
      facts = observe(facts, line);
      const lines = progress(line);
      if (lines.length > 0) say(`${lines.join("\n")}\n`);
    },
    finish: async (end, { plan }, command) => {
      const [{ shortPath }, { nextCommands }, { placeOf }] = await Promise.all([
        import("../paths.ts"),
        import("../next.ts"),
        import("../../render/place.ts"),
      ]);
      const log = shortPath(end.log);
      const next = nextCommands({ file, log, succeeded: end.outcome === "success", failed: failedStep(facts) });
      const place = (step: string) => placeOf(plan, step);
      say(
        `\n${runSummary(facts, { palette: await paletteOf(command, process.stderr), log, next, place, ...(end.error && { error: end.error }) })}`,
      );
      sayBug(end, command);
    },
  };
}

/** Even a quiet run says in one line why it failed. */
async function sayFailure(end: RunEnd, _: Prepared, command: Command): Promise<void> {
  if (end.outcome === "success") return;
  if (end.exitCode === exitCodes.internal) return sayBug(end, command);
  const { oneLine } = await import("../../render/words.ts");
  say(
    oneLine(
      `flow: ${end.outcome}${end.error ? `: ${end.error.step === undefined ? "" : `${end.error.step}: `}${end.error.message}` : ""}`,
    ) + "\n",
  );
}

/** A step that broke by a bug of ours; its stack is in the log, too. */
function sayBug({ exitCode, error }: RunEnd, command: Command): void {
  if (exitCode !== exitCodes.internal || !error) return;
  const { message, cause } = error;
  say(
    bugText(
      Object.assign(new Error(message), { stack: cause }),
      command.optsWithGlobals<{ debug?: boolean }>().debug === true,
    ),
  );
}

async function sayRefusal(refusal: Refusal, flags: RunFlags, command: Command): Promise<void> {
  process.exitCode = refusal.exitCode;
  if (flags.json) {
    const { diagnosticsJson } = await import("../../render/diagnostics.ts");
    const why = refusal.kind === "invalid" ? diagnosticsJson(refusal.diagnostics) : { message: refusal.message };
    print(
      `${JSON.stringify({ schemaVersion: 1, outcome: refusal.kind, exitCode: refusal.exitCode, ...(why as JsonObject) }, null, 2)}\n`,
    );
    return;
  }
  if (refusal.kind === "invalid") await sayDiagnostics(refusal.diagnostics, refusal.sources, command);
  else say(`flow: ${refusal.message}\n`);
}

async function sayDiagnostics(
  diagnostics: readonly Diagnostic[],
  sources: Prepared["sources"],
  command: Command,
): Promise<void> {
  if (diagnostics.length === 0) return;
  const { renderDiagnostics } = await import("../../render/diagnostics.ts");
  say(renderDiagnostics(diagnostics, sources, { palette: await paletteOf(command, process.stderr) }));
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
