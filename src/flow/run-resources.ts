import { rmSync } from "node:fs";
import type { Event, LogLine } from "../model/event.ts";
import { addUsage, noUsage, type Usage } from "../model/message.ts";
import type { Emit } from "../model/ports.ts";
import { err, messageOf, ok, type Result } from "../model/result.ts";
import { Spending, usageOf } from "../model/spending.ts";
import { Marks } from "../process/marks.ts";
import { makeTempFolder } from "../process/temp-folder.ts";
import { startWatchdog } from "../process/watchdog.ts";
import type { LogOptions, LogWriter } from "../runlog/write.ts";
import { Approvals } from "../steps/approvals.ts";
import { systemClock } from "./clock.ts";
import { createMasking, type Masking } from "./masking.ts";
import type { Before, StartOptions } from "./run-options.ts";

/** A run that begins or goes on: its log, and what it writes there first. */
export interface Course {
  readonly run: string;
  readonly folder: string;
  readonly open: (options: LogOptions) => Result<LogWriter, { readonly message: string }>;
  readonly opening: Event;
  /** What it was before it was resumed. */
  readonly before?: Before;
}

/** What a run holds while it goes on, and gives back at its end. */
export interface RunResources {
  readonly log: LogWriter;
  readonly masking: Masking;
  readonly tempFolder: string;
  readonly marks: Marks;
  /** Writes to the log and keeps the accounts. */
  readonly emit: Emit;
  readonly spending: Spending;
  readonly approvals: Approvals;
  readonly usage: () => Usage;
  /** Aborted when the run is cancelled, from outside or because its log broke. */
  readonly signal: AbortSignal;
  /** Aborted once the run has ended. */
  readonly over: AbortSignal;
  /** Ends every process of the run before it closes the log. */
  readonly close: () => Promise<void>;
}

/** Opens the log of a course. An error is a folder that cannot be written: then nothing has run. */
export function openResources(
  options: StartOptions,
  { run, folder, open, before }: Course,
): Result<RunResources, string> {
  const masking = createMasking(options);
  const temp = openTempFolder();
  if (!temp.ok) return temp;
  const tempFolder = temp.value;
  const cancel = new AbortController();
  const opened = open({
    folder,
    clock: systemClock,
    mask: masking.mask,
    deltas: options.logDeltas,
    fsync: options.fsync,
    onFailure: () => cancel.abort("log"),
    ...(options.onEvent && { onLine: reader(options.onEvent) }),
    ...(options.watch && { onGrowth: () => options.watch?.grew() }),
  });
  if (!opened.ok) {
    rmSync(tempFolder, { recursive: true, force: true });
    return err(opened.error.message);
  }
  const log = opened.value;
  options.watch?.opened(log);
  const spending = before?.spending ?? new Spending();
  let usage = before?.agents.usage ?? noUsage;
  let hasEnded = false;
  const emit: Emit = (event) => {
    // What was left behind because it ended too slowly has no more to tell: the end of a run is its last event.
    if (hasEnded) return;
    hasEnded = event.type === "run.finished";
    const used = usageOf(event);
    if (used !== undefined) usage = addUsage(usage, used);
    spending.add(event);
    log.emit(event);
  };
  const over = new AbortController();
  const watch = (mark: string): (() => void) => startWatchdog({ mark, folder: tempFolder });
  const marks = new Marks(run, { ...options.supervision, watch });
  const close = async (): Promise<void> => {
    over.abort();
    try {
      await marks.end();
    } finally {
      log.close();
      rmSync(tempFolder, { recursive: true, force: true });
    }
  };
  const signal = AbortSignal.any([options.signal, cancel.signal]);
  const approvals = before?.approvals ?? new Approvals();
  const accounts = { emit, spending, approvals, usage: () => usage };
  return ok({ log, masking, tempFolder, marks, ...accounts, signal, over: over.signal, close });
}

function openTempFolder(): Result<string, string> {
  try {
    return ok(makeTempFolder());
  } catch (error) {
    return err(`cannot make a temporary folder: ${messageOf(error)}`);
  }
}

/** Watchers see what the log says, masked, not what was emitted. What they throw is no fault of the log. */
function reader(onEvent: (line: LogLine) => void): (line: string) => void {
  return (line) => {
    try {
      onEvent(JSON.parse(line) as LogLine);
    } catch (error) {
      queueMicrotask(() => {
        throw error;
      });
    }
  };
}
