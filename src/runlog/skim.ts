import { closeSync, readSync } from "node:fs";
import path from "node:path";
import { isJsonObject, type Json, type JsonObject, own } from "../model/json.ts";
import { messageOf } from "../model/result.ts";
import { type Opened, openRegular } from "../source/open.ts";

/** What a list of runs says of one, without folding its log. Times are as in the log, durations milliseconds. */
export interface RunBrief {
  readonly run: string;
  readonly workflow: string | null;
  readonly name: string | null;
  /** As the log says; null while it says nothing, or nothing that can be read. */
  readonly outcome: string | null;
  readonly started: string | null;
  readonly last: string | null;
  readonly duration: number | null;
  /** Steps of the workflow itself by their conclusion; null in a log too long to be counted. */
  readonly steps: StepCounts | null;
  /** Null in a long log without an end. */
  readonly tokens: number | null;
  /** US dollars; null when unknown. */
  readonly cost: number | null;
  /** Why the log cannot be trusted. */
  readonly problem: string | null;
}

export interface StepCounts {
  readonly ok: number;
  readonly failed: number;
  readonly skipped: number;
  readonly cancelled: number;
}

/** Logs up to this many bytes are counted; of longer ones only the first line and the end are read. */
const countedBytes = 4 * 1024 * 1024;
const tailBytes = 256 * 1024;
const longestFirst = 1024 * 1024;

/** Reads as much of a run's log as a list of runs needs. */
export function skimRun(folder: string): RunBrief {
  const run = path.basename(folder);
  const file = path.join(folder, "log.jsonl");
  const opened = openRegular(file);
  if (!opened.ok) return { ...nothing, run, problem: `the log cannot be read: ${opened.error.message}` };
  try {
    return skim(run, opened.value);
  } catch (error) {
    return { ...nothing, run, problem: messageOf(error) };
  } finally {
    closeSync(opened.value.descriptor);
  }
}

const nothing: Omit<RunBrief, "run"> = {
  workflow: null,
  name: null,
  outcome: null,
  started: null,
  last: null,
  duration: null,
  steps: null,
  tokens: null,
  cost: null,
  problem: null,
};

function skim(run: string, { descriptor: fd, size }: Opened): RunBrief {
  const isShort = size <= countedBytes;
  const head = readPart(fd, 0, isShort ? size : Math.min(size, longestFirst));
  const end = head.indexOf(10);
  if (end < 0) return { ...nothing, run, problem: size === 0 ? "the log is empty" : "the log has no whole line" };
  // Somebody's editor may have put a mark at the beginning.
  const mark = head.indexOf("\uFEFF") === 0 ? 3 : 0;
  const first = parse(head.subarray(mark, end));
  if (first === undefined || first["type"] !== "run.started")
    return { ...nothing, run, problem: "not the log of a run" };
  if (first["log"] !== 1)
    return {
      ...nothing,
      run,
      problem: `the log has version ${JSON.stringify(first["log"])}, and this flow reads version 1`,
    };
  const started = textOf(first, "time");
  const begun = {
    ...nothing,
    run,
    workflow: textOf(first, "workflow"),
    name: textOf(first, "name"),
    started,
    last: started,
  };
  const rest = isShort ? head.subarray(end + 1) : tailOf(fd, size);
  const facts = new Facts(isShort ? first["seq"] : undefined);
  const damaged = eachLine(rest, (line) => facts.add(line));
  if (damaged !== undefined) return { ...begun, problem: `line ${isShort ? damaged + 1 : "near the end"} is damaged` };
  return { ...begun, ...facts.brief(isShort, begun) };
}

function readPart(fd: number, from: number, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  let read = 0;
  while (read < length) {
    const count = readSync(fd, bytes, read, length - read, from + read);
    if (count === 0) break;
    read += count;
  }
  return bytes.subarray(0, read);
}

/** The last whole lines. */
function tailOf(fd: number, size: number): Buffer {
  const tail = readPart(fd, size - tailBytes, tailBytes);
  return tail.subarray(tail.indexOf(10) + 1);
}

/** Calls back with every whole line; the number of the first that is none of ours, from 1. A torn end is no damage. */
function eachLine(bytes: Buffer, see: (line: Buffer) => boolean): number | undefined {
  let number = 1;
  for (let from = 0, to = bytes.indexOf(10); to >= 0; from = to + 1, to = bytes.indexOf(10, from), number++)
    if (to > from && !see(bytes.subarray(from, to))) return number;
  return undefined;
}

/** Begins every line as we write it; anything else is parsed whole. */
const begins = /^\{"seq":(\d{1,15}),"time":"([^"]{1,40})","type":"([a-z.]{1,40})"(?:,"step":"([^"\\]{1,200})")?/;
const concludes = /^,"outcome":"[a-z]{1,20}","conclusion":"([a-z]{1,20})"/;

class Facts {
  readonly #conclusions = new Map<string, string>();
  /** Of the line before; undefined before the first that is seen. */
  #seq: Json | undefined;
  #last: string | undefined;
  #tokens = 0;
  #cost: number | null = 0;
  #end: JsonObject | undefined;

  constructor(seq: Json | undefined) {
    this.#seq = seq;
  }

  /** False for what is no line of a log, and where lines before it are missing. */
  add(line: Buffer): boolean {
    const text = line.toString("latin1", 0, 320);
    const match = begins.exec(text);
    // Two lines in one, after a newline was lost: within JSON this cannot stand.
    if (line.includes('}{"seq":')) return false;
    if (match === null || line[line.length - 1] !== 125) return line.toString().trim() === "" || this.#addParsed(line);
    const [whole, seq, time, type, step] = match;
    if (!this.#follows(Number(seq))) return false;
    this.#last = time;
    if (type === "run.finished" || type === "agent.finished" || type === "run.resumed") return this.#addWhole(line);
    if (step === undefined || isInner(step)) return true;
    if (type === "step.started") this.#conclusions.delete(step);
    else if (type === "step.skipped") this.#conclusions.set(step, "skipped");
    else if (type === "step.finished") {
      const conclusion = concludes.exec(text.slice(whole.length))?.[1];
      if (conclusion === undefined) return this.#addWhole(line);
      this.#conclusions.set(step, conclusion);
    }
    return true;
  }

  brief(isCounted: boolean, { started }: Pick<RunBrief, "started">): Partial<RunBrief> {
    const last = this.#last ?? started;
    const end = this.#end;
    const usage = isCounted || end !== undefined ? { tokens: this.#tokens, cost: this.#cost } : {};
    const steps = isCounted ? { steps: this.#counts() } : {};
    if (end === undefined) return { last, duration: between(started, last), ...steps, ...usage };
    const spent = spentOf(own(end, "usage"));
    const duration = end["duration"];
    return {
      last,
      outcome: textOf(end, "outcome"),
      duration: typeof duration === "number" ? duration : null,
      ...steps,
      ...spent,
    };
  }

  #follows(seq: Json | undefined): boolean {
    const before = this.#seq;
    this.#seq = seq;
    return before === undefined || (typeof before === "number" && seq === before + 1);
  }

  #addParsed(line: Buffer): boolean {
    const event = parse(line);
    return event !== undefined && this.#follows(event["seq"]) && this.#see(event);
  }

  #addWhole(line: Buffer): boolean {
    const event = parse(line);
    return event !== undefined && this.#see(event);
  }

  #see(event: JsonObject): boolean {
    const step = textOf(event, "step");
    this.#last = textOf(event, "time") ?? this.#last;
    switch (event["type"]) {
      case "run.finished":
        this.#end = event;
        break;
      case "run.resumed":
        this.#end = undefined;
        break;
      case "agent.finished": {
        const { tokens, cost } = spentOf(own(event, "usage"));
        this.#tokens += tokens;
        this.#cost = cost === null || this.#cost === null ? null : this.#cost + cost;
        break;
      }
      case "step.started":
        if (step !== null) this.#conclusions.delete(step);
        break;
      case "step.skipped":
        if (step !== null && !isInner(step)) this.#conclusions.set(step, "skipped");
        break;
      case "step.finished":
        if (step !== null && !isInner(step)) this.#conclusions.set(step, textOf(event, "conclusion") ?? "");
        break;
      default:
    }
    return true;
  }

  #counts(): StepCounts {
    const all = [...this.#conclusions.values()];
    const count = (conclusion: string): number => all.filter((it) => it === conclusion).length;
    return { ok: count("success"), failed: count("failure"), skipped: count("skipped"), cancelled: count("cancelled") };
  }
}

function isInner(step: string): boolean {
  return /[/[#]/.test(step);
}

function spentOf(usage: unknown): { tokens: number; cost: number | null } {
  if (!isJsonObject(usage)) return { tokens: 0, cost: null };
  const numbers = ["input", "output", "cacheRead", "cacheWrite"].map((part) => own(usage, part));
  const tokens = numbers.reduce<number>((sum, value) => sum + (typeof value === "number" ? value : 0), 0);
  const cost = own(usage, "cost");
  return { tokens, cost: typeof cost === "number" ? cost : null };
}

function between(started: string | null, last: string | null): number | null {
  const ms = Date.parse(last ?? "") - Date.parse(started ?? "");
  return Number.isNaN(ms) ? null : ms;
}

function parse(line: Buffer): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(line.toString());
    return isJsonObject(value) && typeof value["type"] === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}

function textOf(event: JsonObject, field: string): string | null {
  const value = own(event, field);
  return typeof value === "string" ? value : null;
}
