import { createHash } from "node:crypto";
import { existsSync, ftruncateSync, mkdirSync, openSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Event } from "../model/event.ts";
import type { Json } from "../model/json.ts";
import type { Clock, Emit } from "../model/ports.ts";
import { err, messageOf, ok, type Result } from "../model/result.ts";
import { type Appender, createAppender } from "./append.ts";
import { writeBlob, writeWhole } from "./blobs.ts";
import { createDeltaStreams, type DeltaEvent, type DeltaStreams } from "./deltas.ts";
import { blobFields, inlineBytes, isBlob } from "./fields.ts";
import { holdsLongText } from "./json-pieces.ts";
import { maskEvent } from "./mask-event.ts";
import type { Mask } from "./redact.ts";

export interface LogOptions {
  /** The run's own folder; its name is the run id. */
  readonly folder: string;
  readonly clock: Clock;
  readonly mask: Pick<Mask, "mask" | "stream">;
  /** Log `message.delta` events; they are dropped otherwise. */
  readonly deltas?: boolean;
  /** Sees every line of a state event, masked, after the kernel has it. */
  readonly onLine?: (line: string) => void;
  /** Called when there is more in the file. */
  readonly onGrowth?: () => void;
  /** Called once, when the log cannot be written any more. */
  readonly onFailure?: () => void;
  /** Wait for the disk at the end of every step, not only every 100 ms and at the run's ends. */
  readonly fsync?: boolean;
}

export interface LogWriter {
  /**
   * The kernel holds the event when this returns, unless {@link LogWriter.failure} says otherwise. Events that nothing
   * acts on before the turn is over or another event is in the log are written together with what follows them.
   */
  readonly emit: Emit;
  /** Absolute path of the log. */
  readonly file: string;
  /** Where in it, in bytes, what this one writes begins. */
  readonly start: number;
  /** Keeps a long text in `files/`, masked; the path is relative to the run's folder. */
  keep(text: string): Result<string, { readonly message: string }>;
  /** The `time` of the last event. */
  time(): string;
  /** Why the log ends early. Nothing is written after it; the run must fail with kind `log`. */
  failure(): string | undefined;
  /** Writes what is pending and waits for the disk. */
  close(): void;
}

const syncEvery = 100;
/** Milliseconds that deltas wait for company: somebody may be watching. */
const deltaPause = 50;
/** Characters that may wait for the end of the turn. */
const mostTogether = 16 * 1024;

/** Starts the log of a new run. An error names the path and the reason; a log that is there already is one. */
export function openLog(options: LogOptions): Result<LogWriter, { readonly message: string }> {
  const folder = path.resolve(options.folder);
  const file = path.join(folder, "log.jsonl");
  try {
    makeFolders(folder);
    ignoreFlowFolder(path.dirname(path.dirname(folder)));
    const appender = createAppender(openSync(file, "ax", 0o600));
    return ok(new Writer(options, file, appender));
  } catch (error) {
    return err({ message: `cannot start the run's log ${file}: ${messageOf(error)}` });
  }
}

/** Where a log that is gone on with ends. */
export interface LogEnd {
  /** The last `seq`. */
  readonly seq: number;
  /** Bytes that are whole; a part of a line behind them is cut off. */
  readonly bytes: number;
}

/** Goes on in the log of a run, behind its last whole line. Whoever calls holds the run's lock. */
export function continueLog(options: LogOptions, end: LogEnd): Result<LogWriter, { readonly message: string }> {
  const file = path.join(path.resolve(options.folder), "log.jsonl");
  try {
    const fd = openSync(file, "a", 0o600);
    ftruncateSync(fd, end.bytes);
    return ok(new Writer(options, file, createAppender(fd), end));
  } catch (error) {
    return err({ message: `cannot go on in the run's log ${file}: ${messageOf(error)}` });
  }
}

/** One by one: Node's own recursive way never ends below a folder such as /proc that takes none. */
export function makeFolders(folder: string): void {
  const missing: string[] = [];
  for (let next = folder; !existsSync(next); next = path.dirname(next)) missing.push(next);
  for (const next of missing.reverse()) {
    try {
      mkdirSync(next, { mode: 0o700 });
    } catch (error) {
      // Another run may have made it in between.
      if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
    }
  }
}

function ignoreFlowFolder(folder: string): void {
  if (path.basename(folder) !== ".flow") return;
  try {
    writeFileSync(path.join(folder, ".gitignore"), "*\n", { flag: "wx" });
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  }
}

class Writer implements LogWriter {
  readonly file: string;
  readonly start: number;
  readonly #options: LogOptions;
  readonly #folder: string;
  readonly #appender: Appender;
  readonly #streams: DeltaStreams;
  readonly #time: () => string;
  #seq: number;
  #lastTime = "";
  /** Lines of deltas that wait for a state event or for 64 KiB of company, and of events that may wait. */
  #pending = "";
  /** Those of them that `onLine` is owed. */
  #unseen: string[] = [];
  #isFlushDue = false;
  /** Set while deltas wait. */
  #stopDeltaFlush: (() => void) | undefined;
  #failure: string | undefined;
  #syncedAt: number;
  #closed = false;

  constructor(options: LogOptions, file: string, appender: Appender, end: LogEnd = { seq: 0, bytes: 0 }) {
    this.file = file;
    this.start = end.bytes;
    this.#seq = end.seq;
    this.#options = options;
    this.#folder = path.dirname(file);
    this.#appender = appender;
    this.#streams = createDeltaStreams(options.mask.stream);
    this.#time = createStampTime(options.clock);
    this.#syncedAt = options.clock.monotonic();
  }

  readonly emit: Emit = (event) => {
    this.#guarded(() => (event.type === "message.delta" ? this.#writeDelta(event) : this.#writeState(event)));
  };

  keep(text: string): Result<string, { readonly message: string }> {
    try {
      const masked = this.#options.mask.mask(text);
      const name = `files/${createHash("sha256").update(masked).digest("hex").slice(0, 16)}.txt`;
      writeWhole(path.join(this.#folder, name), [masked]);
      return ok(name);
    } catch (error) {
      return err({ message: messageOf(error) });
    }
  }

  time(): string {
    return this.#lastTime;
  }

  failure(): string | undefined {
    return this.#failure;
  }

  close(): void {
    if (this.#closed) return;
    this.#guarded(() => {
      for (const delta of this.#streams.end()) this.#pending += this.#line(JSON.stringify(delta));
      this.#flush();
      this.#sync();
    });
    this.#closed = true;
    this.#appender.close();
  }

  #guarded(work: () => void): void {
    if (this.#failure !== undefined || this.#closed) return;
    try {
      work();
    } catch (error) {
      this.#fail(this.#append() ?? messageOf(error));
    }
  }

  #writeDelta(event: DeltaEvent): void {
    if (this.#options.deltas !== true) return;
    for (const delta of this.#streams.push(event)) this.#pending += this.#line(JSON.stringify(delta));
    if (this.#pending.length >= inlineBytes) return this.#flush();
    this.#stopDeltaFlush ??= this.#options.clock.after(deltaPause, () => this.#guarded(() => this.#flush()));
  }

  #writeState(event: Exclude<Event, DeltaEvent>): void {
    if (this.#options.deltas === true)
      for (const delta of this.#streams.settle(event)) this.#pending += this.#line(JSON.stringify(delta));
    const line = this.#line(safeJson(event, this.#options.mask.mask, this.#folder));
    this.#pending += line;
    if (this.#options.onLine !== undefined) this.#unseen.push(line);
    const isToSync = event.type.startsWith("run.") || (this.#options.fsync === true && event.type === "step.finished");
    if (!isToSync && mayWait(event) && this.#pending.length < mostTogether) return this.#flushLater();
    this.#flush();
    if (isToSync) this.#sync();
    // What comes next acts on the world, and nobody could know afterwards that it did.
    if (event.type === "step.attempt.started" && this.#appender.isDeleted()) this.#fail("somebody deleted it");
  }

  #flushLater(): void {
    if (this.#isFlushDue) return;
    this.#isFlushDue = true;
    queueMicrotask(() => {
      this.#isFlushDue = false;
      this.#guarded(() => this.#flush());
    });
  }

  #flush(): void {
    const lines = this.#unseen;
    this.#unseen = [];
    this.#stopDeltaFlush?.();
    this.#stopDeltaFlush = undefined;
    this.#fail(this.#append());
    if (this.#failure !== undefined) return;
    this.#options.onGrowth?.();
    for (const line of lines) this.#options.onLine?.(line);
    if (this.#options.clock.monotonic() - this.#syncedAt >= syncEvery) this.#sync();
  }

  #line(json: string): string {
    this.#lastTime = this.#time();
    return `{"seq":${++this.#seq},"time":"${this.#lastTime}",${json.slice(1)}\n`;
  }

  #append(): string | undefined {
    const text = this.#pending;
    this.#pending = "";
    return text === "" ? undefined : this.#appender.append(text);
  }

  #sync(): void {
    this.#fail(this.#appender.sync());
    this.#syncedAt = this.#options.clock.monotonic();
  }

  #fail(reason: string | undefined): void {
    if (reason === undefined || this.#failure !== undefined) return;
    this.#failure = `cannot write ${this.file}: ${reason}`;
    this.#options.onFailure?.();
  }
}

/**
 * What an event of these types leads to is another event, which is written behind it before anything outside happens: a
 * command starts after its `step.attempt.started`, and a failure, which may end other steps, never waits.
 */
function mayWait(event: Event): boolean {
  switch (event.type) {
    case "step.ready":
    case "step.started":
    case "step.reused":
    case "step.skipped":
      return true;
    case "step.attempt.finished":
    case "step.finished":
      return event.outcome === "success";
    default:
      return false;
  }
}

/** RFC 3339 with milliseconds; events of one millisecond share the text. */
function createStampTime(clock: Clock): () => string {
  let at = Number.NaN;
  let text = "";
  return () => {
    const now = Math.trunc(clock.now());
    if (now !== at) {
      at = now;
      text = new Date(now).toISOString();
    }
    return text;
  };
}

/** The event's JSON, masked, its large values moved to blobs. Nearly every event needs neither. */
function safeJson(event: Event, mask: (text: string) => string, folder: string): string {
  // The JSON of two long streams, six bytes for one, is not made only to find out that it is long.
  if (isBulky(event)) return JSON.stringify(withBlobs(maskEvent(event, mask), folder));
  const json = JSON.stringify(event);
  const holdsSecret = mask(json) !== json;
  if (!holdsSecret && json.length * 3 <= inlineBytes && !json.includes('"blob":')) return json;
  return JSON.stringify(withBlobs(holdsSecret ? maskEvent(event, mask) : event, folder));
}

function isBulky(event: Event): boolean {
  return "outputs" in event && event.outputs !== undefined && holdsLongText(event.outputs);
}

function withBlobs(event: object, folder: string): object {
  const safe: { [key: string]: unknown } = { ...event };
  for (const field of blobFields) {
    const value = safe[field] as Json | undefined;
    if (value === undefined) continue;
    // A user's value that looks like a reference is stored as one, so that a reader never takes it for ours.
    const isLookalike = field !== "plan" && isBlob(value);
    if (isLookalike || holdsLongText(value) || Buffer.byteLength(JSON.stringify(value)) > inlineBytes)
      safe[field] = writeBlob(folder, value);
  }
  return safe;
}
