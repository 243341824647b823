import { existsSync, type FSWatcher, watch } from "node:fs";
import path from "node:path";
import type { LogLine, Stamp } from "../model/event.ts";
import type { JsonObject } from "../model/json.ts";
import { nearest } from "../model/names.ts";
import { err, ok, type Result } from "../model/result.ts";
import { resolveLine } from "../runlog/blobs.ts";
import type { StoredLine } from "../runlog/fields.ts";
import { isLocked } from "../runlog/lock.ts";
import { type LogRecord, readLog } from "../runlog/read.ts";
import { findRun, listRuns, runsFolder, workspaceOf } from "../runlog/runs.ts";
import { isWellFormed } from "../runlog/shape.ts";
import { type RunBrief, skimRun } from "../runlog/skim.ts";

export { eventTypes } from "../runlog/read.ts";
export type { RunBrief } from "../runlog/skim.ts";
export { isLocked as isGoingOn } from "../runlog/lock.ts";

/** Where runs are kept: `runsDir` when it is given, else the workspace around the working directory. */
export interface RunsPlace {
  readonly runsDir?: string;
  /** The process's own when absent. */
  readonly cwd?: string;
}

/** How a run stands; `damaged` and `newer` are logs that cannot be read. */
export type RunRow = RunBrief & { readonly state: string };

/** All runs, the newest first. An error is a folder that was named and is not there. */
export function readRuns({
  runsDir,
  cwd = process.cwd(),
}: RunsPlace): Result<{ readonly folder: string; readonly runs: readonly RunRow[] }, string> {
  const folder = runsFolder(workspaceOf(cwd), runsDir);
  if (runsDir !== undefined && runsDir !== "" && !existsSync(folder)) return err(`there is no folder ${folder}`);
  const listed = listRuns(folder);
  if (!listed.ok) return listed;
  const runs = listed.value.map((run) => skimRun(path.join(folder, run)));
  return ok({
    folder,
    runs: runs.reverse().map((run) => ({ ...run, state: stateOf(path.join(folder, run.run), run) })),
  });
}

function stateOf(folder: string, { outcome, problem }: RunBrief): string {
  if (problem !== null) return problem.startsWith("the log has version") ? "newer" : "damaged";
  return outcome ?? (isLocked(folder) ? "running" : "interrupted");
}

/** The folder of the run that somebody means: `latest`, an id, its beginning, or the path of a run's folder or log. */
export function locateRun(name: string, { runsDir, cwd = process.cwd() }: RunsPlace): Result<string, string> {
  const isPath = name.includes("/") || name.includes(path.sep) || name.endsWith(".jsonl");
  if (!isPath) {
    const found = findRun(runsFolder(workspaceOf(cwd), runsDir), name);
    return found.ok ? found : err(found.error.message);
  }
  const place = path.resolve(cwd, name);
  const folder = name.endsWith(".jsonl") ? path.dirname(place) : place;
  if (!existsSync(path.join(folder, "log.jsonl")))
    return err(`${name} is not a run: there is no ${path.join(folder, "log.jsonl")}`);
  return ok(path.resolve(folder));
}

/** What to say of an agent run that is not among those of a run. */
export function noSuchAgent(agent: string, known: readonly string[]): string {
  const near = nearest(agent, known);
  const shown = known.length > 20 ? [...known.slice(0, 20), "…"] : known;
  const rest = known.length === 0 ? "no agent ran in it" : `there are ${shown.join(", ")}`;
  return `there is no agent run ${JSON.stringify(agent)}; ${near === undefined ? rest : `did you mean ${near}?`}`;
}

type Values = ReadOptions["values"];
type LineRecord = Extract<LogRecord, { kind: "line" }>;

/** What is read of a run. */
export type RunRecord =
  | { readonly kind: "event"; readonly line: LogLine }
  /** An event of a type this version does not know, or not the way it knows it. */
  | { readonly kind: "unknown"; readonly line: JsonObject & Stamp; readonly message: string }
  /** Something about the log that a reader should know: a torn end, a gap. */
  | { readonly kind: "note"; readonly message: string }
  /** The end of what can be read. */
  | { readonly kind: "broken"; readonly message: string };

export interface ReadOptions {
  /** Which values are fetched that lie beside the log: none, those that say why and how, all. */
  readonly values: "none" | "causes" | "all";
  /** Present: waits for more until the run has ended. Called before each wait; false gives up. */
  readonly follow?: () => Promise<boolean>;
}

/** Reads a run's log in flat memory. A first line that is no beginning of a run is `broken`. */
export async function* readRun(folder: string, { values, follow }: ReadOptions): AsyncGenerator<RunRecord> {
  let isFirst = true;
  let type = "";
  const more = follow && follower(folder, async () => (await follow()) && type !== "run.finished");
  for await (const record of readLog(folder, more)) {
    if (record.kind === "line") type = record.line.type;
    else if (record.kind === "unknown") type = "";
    const problem = isFirst ? notARun(record, folder) : undefined;
    if (problem !== undefined) {
      yield { kind: "broken", message: problem };
      return;
    }
    if (record.kind !== "gap") isFirst = false;
    yield* runRecords(folder, record, values);
  }
  if (isFirst) yield { kind: "broken", message: `${path.join(folder, "log.jsonl")} is empty` };
}

function notARun(record: LogRecord, folder: string): string | undefined {
  const file = path.join(folder, "log.jsonl");
  if (record.kind === "gap") return undefined;
  if (record.kind === "unreadable" || record.kind === "damaged") return record.message;
  if (record.kind === "torn") return `${file} has no whole line`;
  const line = record.line as unknown as JsonObject;
  if (line["type"] !== "run.started") return `${file} is not the log of a run: it does not begin with \`run.started\``;
  if (line["log"] === 1) return undefined;
  const found = JSON.stringify(line["log"]) ?? "none";
  return `${file} has log version ${found}, and this flow reads version 1; a newer flow wrote it`;
}

async function* runRecords(folder: string, record: LogRecord, values: Values): AsyncGenerator<RunRecord> {
  if (record.kind === "gap" || record.kind === "torn") yield { kind: "note", message: record.message };
  else if (record.kind === "unknown") yield { kind: "unknown", line: record.line, message: record.message };
  else if (record.kind === "line") yield* lineRecords(folder, record, values);
  else yield { kind: "broken", message: record.message };
}

async function* lineRecords(folder: string, { line, number }: LineRecord, values: Values): AsyncGenerator<RunRecord> {
  const isWanted = values === "all" || (values === "causes" && saysWhy(line));
  const resolved = isWanted ? await resolveLine(folder, line) : ok(line as LogLine);
  if (!resolved.ok) yield { kind: "note", message: `line ${number}: ${resolved.error.message}` };
  const event = resolved.ok ? resolved.value : (line as LogLine);
  const isUsable = values === "none" || ((resolved.ok || standsWithout.has(line.type)) && isWellFormed(event));
  if (isUsable) yield { kind: "event", line: event };
  else {
    const message = `line ${number}: not what a \`${line.type}\` event holds`;
    yield { kind: "unknown", line: line as unknown as JsonObject & Stamp, message };
  }
}

/** Events whose readers bear that the plan, outputs or a result cannot be fetched. */
const standsWithout: ReadonlySet<string> = new Set([
  "run.started",
  "run.resumed",
  "run.finished",
  "step.finished",
  "step.attempt.finished",
]);

/** Events whose large values tell how the run stands; what a step that succeeded gave is not among them. */
function saysWhy(line: StoredLine): boolean {
  if (line.type === "step.finished" || line.type === "step.attempt.finished") return line.outcome === "failure";
  return (
    line.type === "run.started" ||
    line.type === "run.resumed" ||
    line.type === "run.finished" ||
    line.type === "step.skipped" ||
    line.type === "step.retrying" ||
    line.type === "step.undone"
  );
}

const lookEvery = 250;

/** Asked at the end of the log: waits until it may have grown. False when nothing will come any more. */
function follower(folder: string, goOn: () => Promise<boolean>): () => Promise<boolean> {
  let isLastLook = false;
  return async () => {
    if (isLastLook || !(await goOn())) return false;
    // What was written between the last read and its writer's death is still read.
    if (!isLocked(folder)) isLastLook = true;
    else await change(path.join(folder, "log.jsonl"));
    return true;
  };
}

/** Resolves when the file was written to, or after a while: not every file system tells. */
function change(file: string): Promise<void> {
  return new Promise((resolve) => {
    let watcher: FSWatcher | undefined;
    const done = (): void => {
      clearTimeout(timer);
      watcher?.close();
      resolve();
    };
    const timer = setTimeout(done, lookEvery);
    try {
      watcher = watch(file, done).on("error", done);
    } catch {
      // No room for another watch: the timer looks.
    }
  });
}
