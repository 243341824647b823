import type { Marks } from "./marks.ts";
import type { Launch } from "./namespace.ts";
import { startBy } from "./run.ts";
import type { SpawnFailed } from "./spawn-error.ts";
import { endTree, groupLives } from "./tree.ts";
import { within } from "./until.ts";

export interface DialogueOptions {
  /** The program and its arguments; a name without `/` is looked up in the `PATH` of `env`. */
  readonly argv: readonly string[];
  readonly cwd: string;
  /** Exactly what the process gets, beside the mark. */
  readonly env: Readonly<Record<string, string>>;
  readonly marks: Marks;
  /** What starts the command instead of the marks' own. */
  readonly launch?: Launch;
  /** Takes the output. A chunk is valid during the call only. */
  readonly hear: { readonly stdout: (chunk: Buffer) => void; readonly stderr: (chunk: Buffer) => void };
}

/** A process that is spoken to for as long as it lives. */
export interface Dialogue {
  readonly kind: "started";
  /** Resolves when the process has taken what is before it; rejects when it takes nothing any more. */
  write(text: string): Promise<void>;
  /** Resolves once the process is gone and all it said was heard, with how it ended: `exit code 1`, `SIGKILL`. */
  readonly ended: Promise<string>;
  /** Closes its stdin, gives it a moment to leave, and ends it with everything it started. */
  close(): Promise<void>;
}

/** How long a process may take to leave by itself once its stdin is closed, and then to tidy up. Milliseconds. */
const leaving = 500;
const grace = 2_000;

/** Starts a process in a group of its own whose stdin stays open. It never rejects for anything the machine does. */
export async function openDialogue(options: DialogueOptions): Promise<Dialogue | SpawnFailed> {
  const { argv, cwd, marks, hear } = options;
  const mark = marks.next();
  const launch = options.launch ?? marks.launch;
  const env = { ...options.env, [mark.name]: mark.value };
  const unguard = launch?.guard?.() ?? ((): void => undefined);
  const started = await startBy(launch, { argv, cwd, env, stdin: "", take: hear });
  if ("kind" in started) {
    unguard();
    return started;
  }
  const { child, pid, stdin, stdout, stderr } = started;
  if (stdin === null) throw new Error("a process was started without its stdin");
  const exited = Promise.withResolvers<string>();
  const silent = Promise.withResolvers<void>();
  let isGone = false;
  child.once("exit", (code, signal) => {
    isGone = true;
    exited.resolve(signal ?? `exit code ${code ?? 0}`);
  });
  stdout.once("close", () => silent.resolve());
  for (const stream of [stdin, stdout, stderr]) stream.on("error", () => stream.destroy());
  const ended = exited.promise.then(async (how) => {
    // What it left behind may hold the other end; what it said itself is there at once.
    await within(silent.promise, 200);
    return how;
  });
  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    stdin.end();
    await within(
      exited.promise.then(() => undefined),
      leaving,
    );
    if (!isGone || (await groupLives(pid, marks)))
      await endTree({ pid, mark, marks, isNamespace: launch !== undefined, hasExited: () => isGone }, grace);
    else await marks.kill(mark);
    for (const stream of [stdin, stdout, stderr]) stream.destroy();
    unguard();
  };
  return {
    kind: "started",
    write: (text) =>
      new Promise((resolve, reject) => {
        stdin.write(text, (error) => (error ? reject(error) : resolve()));
      }),
    ended,
    close: () => (closing ??= close()),
  };
}
