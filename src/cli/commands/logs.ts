import type { Command } from "commander";
import type { RunRecord } from "../../flow/read-run.ts";
import { nearest } from "../../model/names.ts";
import { findRunFolder, openRun, readsRun, refuse, refuseStep, type RunFlags } from "../open-run.ts";
import { say } from "../output.ts";

interface LogsFlags extends RunFlags {
  readonly follow: boolean;
  readonly step?: string;
  readonly agent?: string;
  readonly tree: boolean;
  readonly type?: readonly string[];
  readonly json: boolean;
  readonly verbose: boolean;
}

type Shown = Extract<RunRecord, { kind: "event" | "unknown" }>;

export function defineLogs(program: Command): void {
  readsRun(program.command("logs"))
    .description("print the log of a run")
    .option("-f, --follow", "go on until the run has ended", false)
    .option("--step <path>", "only this step, item or iteration and what is inside it, with all that commands wrote")
    .option("--agent <id>", "only this agent run, such as `build@1.2`: its transcript")
    .option("--tree", "with --agent: and everything that it spawned", false)
    .option("--type <types>", "only these events, with commas between; `tool` is all of `tool.…`", splitTypes)
    .option("--json", "print the lines of the log as they are", false)
    .option("-v, --verbose", "messages of agents too", false)
    .action(logs);
}

function splitTypes(text: string): string[] {
  return text.split(",").map((type) => type.trim());
}

async function logs(run: string, flags: LogsFlags): Promise<void> {
  const [{ eventTypes, noSuchAgent, readRun }, { isInside }, { visible }] = await Promise.all([
    import("../../flow/read-run.ts"),
    import("../../render/log-lines.ts"),
    import("../../render/display.ts"),
  ]);
  const wrong = flags.type?.find((type) => !eventTypes.some((known) => isOfType(known, type)));
  if (wrong !== undefined) return refuse(visible(wrongType(wrong, eventTypes)));
  if (flags.tree && flags.agent === undefined) return refuse("--tree goes with --agent");
  const folder = await findRunFolder(run, flags);
  if (folder === undefined) return;
  const linesOf = flags.json ? rawLines : await plainLines(flags);
  const out = new Output();
  const follow = flags.follow && { follow: () => out.flush() };
  let isFound = flags.step === undefined;
  const agents = new Set<string>();
  for await (const record of readRun(folder, { values: flags.json ? "none" : "all", ...follow })) {
    if (record.kind === "note") say(`flow: ${visible(record.message)}\n`);
    else if (record.kind === "broken") refuse(visible(record.message));
    else {
      // Every event is put into words, wanted or not: the clock starts at the first one.
      const lines = linesOf(record);
      const { type, step } = record.line as { readonly type?: unknown; readonly step?: unknown };
      const agent = agentOf(record.line as { readonly agent?: unknown });
      if (agent !== undefined) agents.add(agent);
      const isHere = (flags.step === undefined || isInside(flags.step, step)) && isAgent(agent, flags);
      isFound ||= isHere;
      const isWanted = isHere && (flags.type?.some((wanted) => isOfType(String(type), wanted)) ?? true);
      if (isWanted && !(await out.write(lines))) return;
    }
  }
  await out.flush();
  if (flags.agent !== undefined && process.exitCode === undefined && ![...agents].some((id) => isAgent(id, flags)))
    return refuse(visible(noSuchAgent(flags.agent, [...agents])));
  if (!isFound && process.exitCode === undefined) await checkStep(run, flags);
}

/** The agent run an event belongs to. */
function agentOf({ agent, agentRun }: { readonly agent?: unknown; readonly agentRun?: unknown }): string | undefined {
  const id = agent ?? agentRun;
  return typeof id === "string" ? id : undefined;
}

/** What an agent run spawned has its id, a dot and a number. */
function isAgent(id: string | undefined, { agent, tree }: LogsFlags): boolean {
  if (agent === undefined || id === agent) return true;
  return tree && id?.startsWith(`${agent}.`) === true;
}

function isOfType(type: string, wanted: string): boolean {
  return type === wanted || type.startsWith(`${wanted}.`);
}

function wrongType(type: string, known: readonly string[]): string {
  const near = nearest(type, known);
  return `there are no events of the type ${JSON.stringify(type)}; ${near === undefined ? `there are ${known.join(", ")}` : `did you mean ${near}?`}`;
}

function rawLines({ line }: Shown): string[] {
  return [JSON.stringify(line)];
}

async function plainLines({ step, agent, type, verbose }: LogsFlags): Promise<(record: Shown) => string[]> {
  const { logLines } = await import("../../render/log-lines.ts");
  const lines = logLines({
    verbose: verbose || agent !== undefined ? 2 : 1,
    output: step === undefined ? "failed" : "all",
    everyEvent: type !== undefined,
    ...(process.stdout.isTTY && { width: process.stdout.columns }),
  });
  return (record) => (record.kind === "event" ? lines.event(record.line) : lines.unknown(record.line));
}

/** No line for a step: it has not begun, or there is none such. */
async function checkStep(run: string, { step = "", runsDir }: LogsFlags): Promise<void> {
  const view = await openRun(run, { ...(runsDir !== undefined && { runsDir }) }, () => undefined);
  if (view !== undefined) await refuseStep(view, step);
}

const batch = 64 * 1024;

/** Standard output that waits for its reader, in pieces worth a write, and notices when the reader has gone. */
class Output {
  #text = "";
  #isGone = false;
  readonly #gone: Promise<void>;

  constructor() {
    this.#gone = new Promise((resolve) => {
      process.stdout.once("error", () => {
        this.#isGone = true;
        resolve();
      });
    });
  }

  /** False: nobody reads any more. */
  async write(lines: readonly string[]): Promise<boolean> {
    for (const line of lines) this.#text += `${line}\n`;
    return this.#text.length < batch || this.flush();
  }

  async flush(): Promise<boolean> {
    const text = this.#text;
    this.#text = "";
    if (text === "" || this.#isGone) return !this.#isGone;
    if (!process.stdout.write(text)) await Promise.race([drained(), this.#gone]);
    return !this.#isGone;
  }
}

function drained(): Promise<void> {
  return new Promise((resolve) => process.stdout.once("drain", resolve));
}
