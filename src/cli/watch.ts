import { type Command, Option } from "commander";
import type { Prepared, Refusal, RunEnd } from "../flow.ts";
import type { Diagnostic } from "../model/diagnostic.ts";
import type { LogLine } from "../model/event.ts";
import type { JsonObject } from "../model/json.ts";
import type { Asker } from "../model/ports.ts";
import type { Prompting } from "./ask.ts";
import { exitCodes } from "../model/outcome.ts";
import { bugText, paletteOf, print, say } from "./output.ts";

type Progress = "auto" | "plain" | "json" | "quiet";

/** How somebody wants to hear of a run that goes on. */
export interface Watching {
  readonly json: boolean;
  readonly progress: Progress;
  readonly verbose?: number;
  readonly quiet: boolean;
  /** Nobody is asked, even in a terminal. */
  readonly noInput?: boolean;
}

/** Adds the options of {@link Watching} to a command. */
export function watches(command: Command): Command {
  return command
    .option("--json", "print the result as one JSON document", false)
    .addOption(
      new Option("--progress <how>", "what to print while it runs")
        .choices(["auto", "plain", "json", "quiet"])
        .default("auto")
        .env("FLOW_PROGRESS"),
    )
    .addOption(noInput())
    .option("-q, --quiet", "the same as --progress quiet", false)
    .option(
      "-v, --verbose",
      "print turns and tool calls; twice: messages too",
      (_: string, before: number | undefined) => (before ?? 0) + 1,
    );
}

/** `--input` is another option, of which this one is not the opposite. */
function noInput(): Option {
  const option = new Option("--no-input", "never ask in the terminal: approvals wait for `flow resume`");
  option.negate = false;
  option.attributeName = () => "noInput";
  return option;
}

/** The outputs of a run that ended, on standard output. */
export async function printEnd(end: RunEnd, { json }: Pick<Watching, "json">): Promise<void> {
  if (json) print(`${JSON.stringify({ schemaVersion: 1, ...end }, null, 2)}\n`);
  else if (Object.keys(end.outputs).length > 0)
    print((await import("../render/outputs.ts")).renderOutputs(end.outputs));
}

export interface Watcher {
  readonly onEvent?: (line: LogLine) => void;
  /** Whom approvals ask. */
  readonly asker?: Asker;
  readonly finish: (end: RunEnd, prepared: Prepared, command: Command) => Promise<void>;
}

/** What is said on stderr while a run goes on and at its end. */
export async function watcher(file: string, flags: Watching): Promise<Watcher> {
  const how = flags.quiet ? "quiet" : flags.progress;
  const prompting = await openPrompting(flags);
  const asker = prompting && { asker: prompting };
  if (how === "quiet") return { ...asker, finish: sayFailure };
  if (how === "json") return { onEvent: (line) => say(`${JSON.stringify(line)}\n`), finish: async () => undefined };
  const [{ plainProgress }, { failedStep, noFacts, observe, runSummary }] = await Promise.all([
    import("../render/progress.ts"),
    import("../render/summary.ts"),
  ]);
  const verbose = Math.min(flags.verbose ?? 0, 2) as 0 | 1 | 2;
  // A terminal that does not know its width says 0.
  const width = process.stderr.isTTY ? process.stderr.columns : 0;
  const progress = plainProgress({ verbose, ...(width > 0 && { width }) });
  let facts = noFacts;
  const tell = prompting === undefined ? say : (text: string) => prompting.say(text);
  return {
    ...asker,
    onEvent: (line) => {
      facts = observe(facts, line);
      const lines = progress(line);
      if (lines.length > 0) tell(`${lines.join("\n")}\n`);
    },
    finish: async (end, { plan }, command) => {
      const [{ shortPath }, { nextCommands }, { placeOf }] = await Promise.all([
        import("./paths.ts"),
        import("./next.ts"),
        import("../render/place.ts"),
      ]);
      const log = shortPath(end.log);
      const next = nextCommands({ file, log, ...endedHow(end), failed: failedStep(facts) });
      const place = (step: string) => placeOf(plan, step);
      say(
        `\n${runSummary(facts, { palette: await paletteOf(command, process.stderr), log, next, place, ...(end.error && { error: end.error }), ...(end.budget && { budget: end.budget }) })}`,
      );
      sayBug(end, command);
      await sayApprovals(end, command);
    },
  };
}

function endedHow({ outcome }: RunEnd): { succeeded: boolean; waits: boolean } {
  return { succeeded: outcome === "success", waits: outcome === "waiting" };
}

/** Somebody to ask, where there is a terminal. */
async function openPrompting(flags: Watching): Promise<Prompting | undefined> {
  const { canAsk, createPrompting } = await import("./ask.ts");
  return canAsk(flags) ? createPrompting() : undefined;
}

/** What the run waits for, and what to type. */
async function sayApprovals({ waiting = [], log }: RunEnd, command: Command): Promise<void> {
  if (waiting.length === 0) return;
  const [{ approvalsText }, { answerCommands }, { shortPath }] = await Promise.all([
    import("../render/approvals.ts"),
    import("./next.ts"),
    import("./paths.ts"),
  ]);
  const open = waiting.map((request) => ({ ...request, ...answerCommands(request, shortPath(log)) }));
  say(approvalsText(open, await paletteOf(command, process.stderr)));
}

/** Even a quiet run says in one line why it failed. */
async function sayFailure(end: RunEnd, _: Prepared, command: Command): Promise<void> {
  if (end.outcome === "success") return;
  if (end.exitCode === exitCodes.internal) return sayBug(end, command);
  if (end.outcome === "waiting") return sayApprovals(end, command);
  const { oneLine } = await import("../render/words.ts");
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

export async function sayRefusal(refusal: Refusal, flags: Pick<Watching, "json">, command: Command): Promise<void> {
  process.exitCode = refusal.exitCode;
  if (flags.json) {
    const { diagnosticsJson } = await import("../render/diagnostics.ts");
    const why = refusal.kind === "invalid" ? diagnosticsJson(refusal.diagnostics) : { message: refusal.message };
    print(
      `${JSON.stringify({ schemaVersion: 1, outcome: refusal.kind, exitCode: refusal.exitCode, ...(why as JsonObject) }, null, 2)}\n`,
    );
    return;
  }
  if (refusal.kind === "invalid") await sayDiagnostics(refusal.diagnostics, refusal.sources, command);
  else say(`flow: ${refusal.message}\n`);
}

export async function sayDiagnostics(
  diagnostics: readonly Diagnostic[],
  sources: Prepared["sources"],
  command: Command,
): Promise<void> {
  if (diagnostics.length === 0) return;
  const { renderDiagnostics } = await import("../render/diagnostics.ts");
  say(renderDiagnostics(diagnostics, sources, { palette: await paletteOf(command, process.stderr) }));
}
