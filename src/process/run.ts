import { setImmediate as turn } from "node:timers/promises";
import { graceOfProcess } from "../model/grace.ts";
import type { Places } from "../model/places.ts";
import { Capture, type CaptureOptions, type Captured, type StreamFilter } from "./capture.ts";
import type { Marks } from "./marks.ts";
import type { Launch } from "./namespace.ts";
import type { Pipes } from "./pipes.ts";
import { type SpawnFailed, explainSpawnError, whyNotStarted } from "./spawn-error.ts";
import { type StartOptions, type Started, start } from "./start.ts";
import { endTree, groupLives } from "./tree.ts";
import { until, within } from "./until.ts";

export interface ProcessOptions {
  /** The program and its arguments; a name without `/` is looked up in the `PATH` of `env`. */
  readonly argv: readonly string[];
  readonly cwd: string;
  /** Exactly what the process gets, beside the mark. */
  readonly env: Readonly<Record<string, string>>;
  /** Absent: the process reads an empty stdin. */
  readonly stdin?: string;
  readonly signal?: AbortSignal;
  /** Milliseconds between SIGTERM and SIGKILL. Default 5,000. */
  readonly grace?: number;
  /** Those of the run, so that what leaves the process group can be found and ended. */
  readonly marks: Marks;
  /** What starts the command instead of the marks' own, a sandbox for example. */
  readonly launch?: Launch;
  /** Bytes of each stream kept in memory. Default 1 MiB. */
  readonly maxBytes?: number;
  readonly spill?: { readonly stdout: string; readonly stderr: string; readonly maxBytes?: number };
  /** Called once for each stream, to change it before anything of it is kept. */
  readonly filter?: () => StreamFilter;
  /** Real pipes instead of Node's sockets, which a process cannot open again as `/dev/stdout`. */
  readonly pipes?: Pipes;
  /** Where it waits while too many processes run. */
  readonly places?: Places;
}

export type ProcessResult = SpawnFailed | Ran;
export type Ran = Streams &
  (
    | { readonly kind: "exited"; readonly code: number }
    | { readonly kind: "signalled"; readonly signal: NodeJS.Signals }
    /** `signal` was aborted before the process had exited by itself. */
    | { readonly kind: "aborted" }
  );

export interface Streams {
  readonly stdout: Captured;
  readonly stderr: Captured;
  /** Milliseconds. */
  readonly duration: number;
}

const defaultMaxBytes = 1024 * 1024;
const defaultSpillBytes = 64 * 1024 * 1024;
/** How long what a process leaves behind may take to finish by itself, a `> >(tee log)` for example. Milliseconds. */
const linger = 100;

/**
 * Runs one process, without a shell, in a process group of its own, and settles when all of it is over: a process that
 * has exited takes what it left in the background with it, and an aborted one dies as a whole tree. Output of any
 * length takes bounded memory. It never rejects for anything the process or the machine does.
 */
export async function runProcess(options: ProcessOptions): Promise<ProcessResult> {
  const leave = await options.places?.take(options.signal);
  const unguard = options.launch?.guard?.();
  try {
    return await runInPlace(options);
  } finally {
    unguard?.();
    leave?.();
  }
}

async function runInPlace(options: ProcessOptions): Promise<ProcessResult> {
  const begun = performance.now();
  const streams: CaptureByName = { stdout: capture(options, "stdout"), stderr: capture(options, "stderr") };
  const finish = (): Streams => ({
    stdout: streams.stdout.finish(),
    stderr: streams.stderr.finish(),
    duration: performance.now() - begun,
  });
  if (options.signal?.aborted === true) return { kind: "aborted", ...finish() };
  const mark = options.marks.next();
  const env = { ...options.env, [mark.name]: mark.value };
  const take = {
    stdout: (chunk: Buffer) => streams.stdout.add(chunk),
    stderr: (chunk: Buffer) => streams.stderr.add(chunk),
  };
  const launch = options.launch ?? options.marks.launch;
  const started = await startBy(launch, { ...options, env, take });
  if ("kind" in started) return started;
  const running = watch(started, options.stdin);
  const aborted = await exitOrAbort(running, options.signal);
  if (aborted || !(await leavesNothing(running, options.marks))) {
    const hasExited = (): boolean => running.exit !== undefined;
    const tree = { pid: running.pid, mark, marks: options.marks, isNamespace: launch !== undefined, hasExited };
    await endTree(tree, options.grace ?? graceOfProcess);
  }
  await drain(running, streams);
  const { exit } = running;
  if (aborted || exit === undefined) return { kind: "aborted", ...finish() };
  if (exit.signal !== null) return { kind: "signalled", signal: exit.signal, ...finish() };
  return { kind: "exited", code: exit.code ?? 0, ...finish() };
}

/** Starts a process by what launches it, if anything does. */
export async function startBy(launch: Launch | undefined, options: StartOptions): Promise<Started | SpawnFailed> {
  const impossible = launch && whyNotStarted(options);
  if (impossible) return impossible;
  const started = await start({ ...options, argv: [...(launch?.prefix ?? []), ...options.argv] });
  return started instanceof Error ? explainSpawnError(started, options) : started;
}

function capture(options: ProcessOptions, name: "stdout" | "stderr"): Capture {
  const { spill, filter } = options;
  const capturing: CaptureOptions = {
    maxBytes: options.maxBytes ?? defaultMaxBytes,
    ...(spill !== undefined && { spill: { path: spill[name], maxBytes: spill.maxBytes ?? defaultSpillBytes } }),
    ...(filter !== undefined && { filter: filter() }),
  };
  return new Capture(capturing);
}

interface Running {
  readonly pid: number;
  exit: { readonly code: number | null; readonly signal: NodeJS.Signals | null } | undefined;
  /** Reaped. */
  readonly exited: Promise<void>;
  /** Both output streams have ended: nobody holds their other ends. */
  readonly closed: Promise<void>;
  readonly closeStreams: () => void;
}

function watch(started: Started, input: string | undefined): Running {
  const { child, pid, stdin, stdout, stderr } = started;
  const exited = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<void>();
  let open = 2;
  const close = (): void => {
    open -= 1;
    if (open === 0) closed.resolve();
  };
  for (const stream of [stdout, stderr]) stream.once("close", close);
  // A process that reads none or half of its stdin is no failure; one that matters exits with its own.
  for (const stream of [stdin, stdout, stderr]) stream?.on("error", () => stream.destroy());
  stdin?.end(input);
  const closeStreams = (): void => [stdin, stdout, stderr].forEach((stream) => stream?.destroy());
  const running: Running = { pid, exit: undefined, exited: exited.promise, closed: closed.promise, closeStreams };
  child.once("exit", (code, signal) => {
    running.exit = { code, signal };
    exited.resolve();
  });
  return running;
}

type CaptureByName = { readonly stdout: Capture; readonly stderr: Capture };

/** True when the abort came first. */
function exitOrAbort(running: Running, signal: AbortSignal | undefined): Promise<boolean> {
  if (signal?.aborted === true) return Promise.resolve(true);
  const first = Promise.withResolvers<boolean>();
  const abort = (): void => first.resolve(true);
  signal?.addEventListener("abort", abort);
  void running.exited.then(() => first.resolve(false));
  return first.promise.finally(() => signal?.removeEventListener("abort", abort));
}

/** Whether the process was all there was, or what it left behind finished by itself in a moment. */
async function leavesNothing(running: Running, marks: Marks): Promise<boolean> {
  if (!(await within(running.closed, linger))) return false;
  return until(async () => !(await groupLives(running.pid, marks)), linger);
}

/**
 * Waits for the output that is still under way. What holds a pipe after its tree was ended cannot be found (it cleared
 * its environment): it is cut off once a look at the pipe brings nothing new, or after two seconds if it keeps writing.
 */
async function drain(running: Running, streams: CaptureByName): Promise<void> {
  const received = (): number => streams.stdout.received + streams.stderr.received;
  const deadline = performance.now() + 2000;
  while (!(await within(running.closed, 20)) && performance.now() < deadline) {
    const before = received();
    // A full turn of the event loop reads every pipe, also when the loop was late.
    await turn();
    await turn();
    if (received() === before) break;
  }
  running.closeStreams();
}
