import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { closeSync, constants, openSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Descriptors of the two ends; whoever opened the pipe closes both. */
export interface Pipe {
  readonly read: number;
  readonly write: number;
}

/**
 * A source of real pipes. What Node gives a child as a pipe is a socket, and a socket cannot be opened by name: in a
 * script `echo x > /dev/stderr`, `tee /dev/stdout` and `cat /dev/stdin` would fail with "No such device or address".
 * Node has no pipe(2), so these are FIFOs: made in batches by `mkfifo`, each used once and unlinked when opened.
 */
export class Pipes {
  /** All that is read from these pipes goes through here: one read at a time, and taken out before the next. */
  readonly buffer: Buffer = Buffer.allocUnsafeSlow(64 * 1024);
  readonly #prefix: string;
  #ready: string[] = [];
  #made = 0;
  #available = true;

  /**
   * `folder` is private, and best one of `makeTempFolder`; its owner removes it, with the pipes that were not used.
   */
  constructor(folder: string) {
    this.#prefix = join(folder, `pipe-${randomBytes(4).toString("hex")}`);
  }

  /**
   * A descriptor to read `text` from. It is a file that has no name any more, since a FIFO whose writer is gone makes
   * who opens it again as `/dev/stdin` wait for ever. Throws what writing a file throws.
   */
  openText(text: string): number {
    // Not in the pipes' folder: that may lie in memory, and the text may be long.
    const path = join(tmpdir(), `flow-${randomBytes(8).toString("hex")}`);
    try {
      writeFileSync(path, text, { mode: 0o600, flag: "wx" });
      return openSync(path, constants.O_RDONLY);
    } finally {
      rmSync(path, { force: true });
    }
  }

  /** Undefined where FIFOs cannot be made. Throws what `open` throws, `EMFILE` for example. */
  open(): Pipe | undefined {
    if (this.#ready.length === 0) this.#make();
    const path = this.#ready.pop();
    if (path === undefined) return undefined;
    try {
      // Without O_NONBLOCK this end would wait for the other; the process's own end is an ordinary, blocking one.
      const read = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
      return { read, write: openWrite(path, read) };
    } finally {
      unlinkSync(path);
    }
  }

  #make(): void {
    if (!this.#available) return;
    // A process for each pipe would cost as much as the step itself; most runs need a few, some need thousands.
    const count = Math.min(Math.max(8, this.#made * 2), 512);
    const paths = Array.from({ length: count }, (_, index) => `${this.#prefix}-${this.#made + index}`);
    this.#made += count;
    this.#available = spawnSync("mkfifo", ["-m", "600", ...paths], { stdio: "ignore" }).status === 0;
    if (this.#available) this.#ready = paths;
  }
}

function openWrite(path: string, read: number): number {
  try {
    return openSync(path, constants.O_WRONLY);
  } catch (error) {
    closeSync(read);
    throw error;
  }
}
