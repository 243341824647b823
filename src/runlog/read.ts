import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import path from "node:path";
import type { Event, LogLine, Stamp } from "../model/event.ts";
import { isDeeperThan, isJsonObject, type Json, type JsonObject } from "../model/json.ts";
import { err, messageOf, ok, type Result } from "../model/result.ts";
import { irregular } from "../source/open.ts";
import { resolveLine } from "./blobs.ts";
import type { StoredLine } from "./fields.ts";

/** What a log holds, in order. `number` counts lines from 1; `torn`, `damaged` and `unreadable` are always the last. */
export type LogRecord =
  /** `end` is the byte offset behind the line. */
  | { readonly kind: "line"; readonly line: StoredLine; readonly number: number; readonly end: number }
  /** Some lines are missing before this one, which follows. */
  | { readonly kind: "gap"; readonly number: number; readonly message: string }
  /** An event of a type this version does not know. */
  | { readonly kind: "unknown"; readonly line: JsonObject & Stamp; readonly number: number; readonly message: string }
  /** The end of the file is a part of a line, as a crash leaves it: dropped. The log is whole up to byte `at`. */
  | { readonly kind: "torn"; readonly number: number; readonly at: number; readonly message: string }
  | { readonly kind: "damaged"; readonly number: number; readonly message: string }
  | { readonly kind: "unreadable"; readonly message: string };

const chunkBytes = 256 * 1024;
const longestLine = 16 * 1024 * 1024;
/** Twice as deep as any value of ours may be, with the event around it. */
const maxDepth = 2000;

const known: { readonly [Type in Event["type"]]: true } = {
  "run.started": true,
  "run.resumed": true,
  "run.waiting": true,
  "permissions.counted": true,
  "run.finished": true,
  "team.started": true,
  "team.member.added": true,
  "team.member.updated": true,
  "team.member.removed": true,
  "team.task.added": true,
  "team.task.updated": true,
  "team.message": true,
  "team.woken": true,
  "team.finished": true,
  "step.ready": true,
  "step.started": true,
  "step.attempt.started": true,
  "step.attempt.finished": true,
  "step.retrying": true,
  "step.reused": true,
  "step.cached": true,
  "step.uncached": true,
  "step.undo.started": true,
  "step.undone": true,
  "step.skipped": true,
  "step.finished": true,
  "approval.requested": true,
  "approval.given": true,
  "mcp.started": true,
  "mcp.warning": true,
  "worktree.opened": true,
  "worktree.applying": true,
  "worktree.closed": true,
  "worktree.removed": true,
  "agent.started": true,
  "agent.finished": true,
  "turn.started": true,
  message: true,
  "message.delta": true,
  "model.retry": true,
  "model.failed": true,
  "model.fallback": true,
  "model.warning": true,
  "turn.finished": true,
  "budget.reserved": true,
  "budget.settled": true,
  "budget.exceeded": true,
  "permission.judged": true,
  "tool.started": true,
  "tool.finished": true,
  "context.compressed": true,
  guard: true,
  "hook.finished": true,
  "check.started": true,
  "check.finished": true,
  diagnostic: true,
};

/** The types of events this version knows. */
export const eventTypes: readonly string[] = Object.keys(known);

/**
 * Reads a log (its file or its run's folder) line by line, in flat memory. At the end of the file `more` is asked, where
 * it is given, whether to look again; a part of a line waits for its rest. `start` is the byte at which a line begins:
 * lines are counted from there.
 */
export async function* readLog(fileOrFolder: string, more?: More, start = 0): AsyncGenerator<LogRecord> {
  const file = logFile(fileOrFolder);
  let handle: FileHandle;
  try {
    // A pipe in its place would let us wait for ever.
    handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    yield { kind: "unreadable", message: `cannot read ${file}: ${messageOf(error)}` };
    return;
  }
  try {
    const problem = irregular(await handle.stat());
    if (problem === undefined) yield* readRecords(rawLines(handle, more, start), file, start === 0 ? 1 : undefined);
    else yield { kind: "unreadable", message: `cannot read ${file}: ${problem}` };
  } finally {
    await handle.close();
  }
}

/** A whole log of moderate size with its blobs; `notes` says what was dropped. */
export async function readWholeLog(
  fileOrFolder: string,
): Promise<Result<{ readonly lines: readonly LogLine[]; readonly notes: readonly string[] }, { message: string }>> {
  const folder = path.dirname(logFile(fileOrFolder));
  const lines: LogLine[] = [];
  const notes: string[] = [];
  for await (const record of readLog(fileOrFolder)) {
    if (record.kind === "line") {
      const line = await resolveLine(folder, record.line);
      if (!line.ok) return line;
      lines.push(line.value);
    } else if (record.kind === "damaged" || record.kind === "unreadable") return err({ message: record.message });
    else notes.push(record.message);
  }
  return ok({ lines, notes });
}

function logFile(fileOrFolder: string): string {
  const resolved = path.resolve(fileOrFolder);
  return resolved.endsWith(".jsonl") ? resolved : path.join(resolved, "log.jsonl");
}

/** `first` is the `seq` that the first line must have; undefined where that is not known. */
async function* readRecords(
  lines: AsyncIterable<RawLine>,
  file: string,
  first: number | undefined,
): AsyncGenerator<LogRecord> {
  let number = 0;
  let expected = first;
  for await (const raw of lines) {
    number++;
    const place = `${file}:${number}`;
    if (raw.kind === "tail") {
      const message = `${place}: the last line is not complete (${raw.bytes} bytes); it is left out`;
      yield { kind: "torn", number, at: raw.at, message };
      return;
    }
    const parsed = raw.kind === "endless" ? err("the line is too long") : parseLine(raw.bytes, number);
    if (!parsed.ok) {
      yield { kind: "damaged", number, message: `${place}: the line is damaged: ${parsed.error}` };
      return;
    }
    const line = parsed.value;
    if (line === undefined) continue;
    if (line.seq !== (expected ?? line.seq))
      yield { kind: "gap", number, message: `${place}: expected seq ${expected}, found ${line.seq}` };
    expected = line.seq + 1;
    if (Object.hasOwn(known, line.type)) yield { kind: "line", line, number, end: raw.end };
    else yield unknown(line as unknown as JsonObject & Stamp, number, place);
  }
}

type More = (() => Promise<boolean>) | undefined;

function unknown(line: JsonObject & Stamp, number: number, place: string): LogRecord {
  return {
    kind: "unknown",
    line,
    number,
    message: `${place}: an event of the unknown type ${JSON.stringify(line["type"])}`,
  };
}

type RawLine =
  | { readonly kind: "whole"; readonly bytes: Buffer; readonly end: number }
  | { readonly kind: "tail"; readonly bytes: number; readonly at: number }
  | { readonly kind: "endless"; readonly end: number };

/** Splits at `\n`. What follows the last one is a tail. */
async function* rawLines(handle: FileHandle, more: More, start: number): AsyncGenerator<RawLine> {
  const chunk = Buffer.allocUnsafe(chunkBytes);
  let parts: Buffer[] = [];
  let open = 0;
  let end = start;
  for (;;) {
    const { bytesRead } = await handle.read(chunk, 0, chunkBytes, end + open);
    if (bytesRead === 0) {
      if (more !== undefined && (await more())) continue;
      break;
    }
    let from = 0;
    for (let at = chunk.indexOf(10); at >= 0 && at < bytesRead; at = chunk.indexOf(10, from)) {
      const piece = chunk.subarray(from, at);
      const bytes = parts.length === 0 ? piece : Buffer.concat([...parts, piece]);
      parts = [];
      open = 0;
      end += bytes.length + 1;
      from = at + 1;
      yield { kind: "whole", bytes, end };
    }
    if (from < bytesRead) parts.push(Buffer.from(chunk.subarray(from, bytesRead)));
    open += bytesRead - from;
    if (open > longestLine) {
      yield { kind: "endless", end };
      return;
    }
  }
  if (open > 0) yield { kind: "tail", bytes: open, at: end };
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Nothing for an empty line. */
function parseLine(bytes: Buffer, number: number): Result<StoredLine | undefined, string> {
  let value: Json;
  try {
    const text = utf8.decode(bytes);
    const json = number === 1 && text.startsWith("\uFEFF") ? text.slice(1) : text;
    if (json.trim() === "") return ok(undefined);
    if (isDeeperThan(json, maxDepth)) return err(`it is nested deeper than ${maxDepth} levels`);
    value = JSON.parse(json) as Json;
  } catch (error) {
    return err(messageOf(error));
  }
  if (!isJsonObject(value)) return err("not a JSON object");
  const { seq, time, type } = value;
  if (!Number.isSafeInteger(seq) || typeof time !== "string" || typeof type !== "string")
    return err("no `seq`, `time` and `type`");
  return ok(value as unknown as StoredLine);
}
