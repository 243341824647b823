import { statSync } from "node:fs";
import path from "node:path";
import type { LogLine } from "../model/event.ts";
import { err, ok, type Result } from "../model/result.ts";
import { isBlob, type StoredLine } from "./fields.ts";
import { readLog } from "./read.ts";
import { isWellFormed } from "./shape.ts";
import type { LogEnd } from "./write.ts";

/** The first line of a log and the place to go on. */
export interface Reopened {
  readonly first: Extract<LogLine, { type: "run.started" }>;
  readonly end: LogEnd;
  /** Bytes of a part of a line behind the end; 0 when the log is whole. */
  readonly torn: number;
}

/**
 * Reads the log of a run that is to go on, one line after the other: each is given to `each` as it stands in the file,
 * its large values as references. The error says why nobody can go on in it: it is damaged, empty, or of a version this
 * flow does not know. Writes nothing.
 */
export async function readForResume(folder: string, each: (line: LogLine) => void): Promise<Result<Reopened, string>> {
  const file = path.join(folder, "log.jsonl");
  let first: Reopened["first"] | undefined;
  let seq = 0;
  let whole: number | undefined;
  for await (const record of readLog(folder)) {
    switch (record.kind) {
      case "line":
      case "unknown": {
        const line = record.line as unknown as LogLine;
        const problem = first === undefined ? wrongStart(line, file) : undefined;
        if (problem !== undefined) return err(problem);
        if (record.kind === "line" && !isWhole(record.line))
          return err(`${file}:${record.number}: the line is damaged: it is not what a \`${line.type}\` event holds`);
        if (line.type === "run.started") first = line;
        seq = line.seq;
        each(line);
        break;
      }
      case "torn":
        whole = record.at;
        break;
      default:
        return err(record.message);
    }
  }
  if (first === undefined)
    return err(`${file} does not hold one whole line: nothing of the run is recorded, start it anew with \`flow run\``);
  const { size } = statSync(file);
  const bytes = whole ?? size;
  return ok({ first, end: { seq, bytes }, torn: size - bytes });
}

/** A large error lies beside the log like any other large value. */
function isWhole(line: StoredLine): boolean {
  if (!("error" in line) || !isBlob(line.error)) return isWellFormed(line);
  const { error: _, ...rest } = line;
  return isWellFormed(rest);
}

function wrongStart(line: LogLine, file: string): string | undefined {
  if (line.type !== "run.started")
    return `${file}:1: the first line is not \`run.started\`: this is not the log of a run`;
  const version: number = line.log;
  if (version === 1) return undefined;
  return `${file}: its format has version ${version}, and this flow knows version 1 (it was written by flow ${line.flow})`;
}
