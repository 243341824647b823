import { type ChildProcess, type StdioOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync } from "node:fs";
import { Socket } from "node:net";
import type { Readable, Writable } from "node:stream";
import type { Pipe, Pipes } from "./pipes.ts";

export interface StartOptions {
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly stdin?: string;
  readonly pipes?: Pipes;
  /** Takes the output. A chunk is valid during the call only. */
  readonly take: { readonly stdout: Take; readonly stderr: Take };
}

type Take = (chunk: Buffer) => void;

export interface Started {
  readonly child: ChildProcess;
  readonly pid: number;
  /** Null when the process reads its stdin from elsewhere. */
  readonly stdin: Writable | null;
  readonly stdout: Readable;
  readonly stderr: Readable;
}

/** Starts a process that leads its own group, and joins its streams. What the system has against it is returned. */
export async function start(options: StartOptions): Promise<Started | Error> {
  const opened = new Set<number>();
  try {
    const plan = planStreams(options, opened);
    const [program = "", ...args] = options.argv;
    const child = spawn(program, args, { cwd: options.cwd, env: options.env, stdio: plan.stdio, detached: true });
    if (child.pid === undefined) throw await spawnError(child);
    return { child, pid: child.pid, ...plan.join(child) };
  } catch (error) {
    if (error instanceof Error && "code" in error) return error;
    throw error;
  } finally {
    opened.forEach((descriptor) => closeSync(descriptor));
  }
}

interface StreamPlan {
  readonly stdio: StdioOptions;
  readonly join: (child: ChildProcess) => Pick<Started, "stdin" | "stdout" | "stderr">;
}

/** `opened` takes the descriptors that are to be closed when the process has its own copies, or never started. */
function planStreams({ stdin: text, pipes, take }: StartOptions, opened: Set<number>): StreamPlan {
  const [out, err] = [openPipe(pipes, opened), openPipe(pipes, opened)];
  const stdin = text === undefined ? "ignore" : "pipe";
  if (pipes === undefined || out === undefined || err === undefined) {
    return { stdio: [stdin, "pipe", "pipe"], join: (child) => ownStreams(child, take) };
  }
  const input = text === undefined ? stdin : pipes.openText(text);
  if (typeof input === "number") opened.add(input);
  const reader = (descriptor: number, taken: Take): Socket => {
    opened.delete(descriptor);
    // With a buffer of ours nothing is allocated for what is read, and a flood makes no garbage.
    const { buffer } = pipes;
    const callback = (count: number): boolean => (taken(buffer.subarray(0, count)), true);
    return new Socket({ fd: descriptor, readable: true, writable: false, onread: { buffer, callback } }).resume();
  };
  return {
    stdio: [input, out.write, err.write],
    join: () => ({ stdin: null, stdout: reader(out.read, take.stdout), stderr: reader(err.read, take.stderr) }),
  };
}

function openPipe(pipes: Pipes | undefined, opened: Set<number>): Pipe | undefined {
  const pipe = pipes?.open();
  if (pipe !== undefined) opened.add(pipe.read).add(pipe.write);
  return pipe;
}

function ownStreams(child: ChildProcess, take: StartOptions["take"]): ReturnType<StreamPlan["join"]> {
  const { stdin, stdout, stderr } = child;
  if (stdout === null || stderr === null) throw new Error("a process was started without its streams");
  return { stdin, stdout: stdout.on("data", take.stdout), stderr: stderr.on("data", take.stderr) };
}

async function spawnError(child: ChildProcess): Promise<unknown> {
  const [error]: unknown[] = await once(child, "error");
  return error;
}
