import { closeSync, mkdirSync, openSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { messageOf } from "../model/result.ts";

/** What a process wrote to one stream. */
export interface Captured {
  /**
   * Decoded as UTF-8, invalid bytes as U+FFFD. When `truncated`: the beginning, one line that says how much is missing
   * and where the rest is, and the end.
   */
  readonly text: string;
  /** Bytes the process wrote, kept or not. */
  readonly bytes: number;
  readonly truncated: boolean;
  /** The file with the stream from its beginning, up to the spill limit; only when `truncated`. */
  readonly file?: string;
}

/** Changes a stream before anything of it is kept, for masking. It may hold bytes back until `end`. */
export interface StreamFilter {
  write(chunk: Buffer): Buffer;
  end(): Buffer;
}

export interface CaptureOptions {
  /** Bytes kept in memory; at least 8. */
  readonly maxBytes: number;
  /** Where a longer stream goes; the file and its folder are made only then, the file must not exist. */
  readonly spill?: { readonly path: string; readonly maxBytes: number };
  readonly filter?: StreamFilter;
}

const firstBuffer = 4096;

/**
 * Keeps a stream of any length in at most `maxBytes` of memory. One buffer grows up to that size; when the stream is
 * longer, the buffer's first half stays as the head and its second half becomes a ring that holds the tail.
 */
export class Capture {
  readonly #options: CaptureOptions;
  /** Where the ring begins. */
  readonly #half: number;
  #buffer: Buffer = Buffer.alloc(0);
  #kept = 0;
  #received = 0;
  #spill: Spill | undefined;

  constructor(options: CaptureOptions) {
    this.#options = options;
    this.#half = Math.floor(options.maxBytes / 2);
  }

  /** Bytes written by the process so far. */
  get received(): number {
    return this.#received;
  }

  /** The chunk's memory may be used again afterwards. */
  add(chunk: Buffer): void {
    const { filter } = this.#options;
    this.#received += chunk.length;
    this.#keep(filter === undefined ? chunk : filter.write(Buffer.from(chunk)));
  }

  /** Closes the spill file and gives the text; nothing may be added afterwards. */
  finish(): Captured {
    if (this.#options.filter !== undefined) this.#keep(this.#options.filter.end());
    const { maxBytes } = this.#options;
    if (this.#kept <= maxBytes) {
      const text = this.#buffer.toString("utf8", 0, this.#kept);
      return { text, bytes: this.#received, truncated: false };
    }
    this.#spill?.close();
    const start = this.#half + ((this.#kept - this.#half) % (maxBytes - this.#half));
    const tail = Buffer.concat([this.#buffer.subarray(start), this.#buffer.subarray(this.#half, start)]);
    const head = withoutCutEnd(this.#buffer.subarray(0, this.#half));
    const end = withoutCutStart(tail);
    const text = `${head.toString("utf8")}\n${this.#gap(head.length + end.length)}\n${end.toString("utf8")}`;
    const file = this.#spill?.file;
    return { text, bytes: this.#received, truncated: true, ...(file !== undefined && { file }) };
  }

  #keep(chunk: Buffer): void {
    if (chunk.length === 0) return;
    const before = this.#kept;
    this.#kept += chunk.length;
    if (this.#kept > this.#options.maxBytes) this.#spillOver(chunk, before);
    this.#grow(Math.min(this.#kept, this.#options.maxBytes));
    const straight = chunk.copy(this.#buffer, Math.min(before, this.#buffer.length));
    if (straight < chunk.length) this.#turn(chunk.subarray(straight), before + straight);
  }

  #grow(size: number): void {
    if (size <= this.#buffer.length) return;
    const wanted = Math.max(size, firstBuffer, this.#buffer.length * 2);
    const larger = Buffer.allocUnsafeSlow(Math.min(wanted, this.#options.maxBytes));
    this.#buffer.copy(larger);
    this.#buffer = larger;
  }

  /** Writes what lies at `position` of the stream into the ring, over the oldest bytes. */
  #turn(chunk: Buffer, position: number): void {
    const ring = this.#options.maxBytes - this.#half;
    const skipped = Math.max(0, chunk.length - ring);
    let rest = chunk.subarray(skipped);
    let at = (position + skipped - this.#half) % ring;
    while (rest.length > 0) {
      const written = rest.copy(this.#buffer, this.#half + at);
      rest = rest.subarray(written);
      at = 0;
    }
  }

  #spillOver(chunk: Buffer, before: number): void {
    const { spill } = this.#options;
    if (spill === undefined) return;
    if (this.#spill === undefined) {
      this.#spill = new Spill(spill.path, spill.maxBytes);
      this.#spill.write(this.#buffer.subarray(0, before));
    }
    this.#spill.write(chunk);
  }

  #gap(shown: number): string {
    const missing = `${this.#kept - shown} of ${this.#kept} bytes left out here`;
    return `[flow: ${missing}${this.#spill === undefined ? "" : `; ${this.#spill.summary(this.#kept)}`}]`;
  }
}

/** A file that takes the beginning of a stream. Writing is synchronous: it is what slows a flooding process down. */
class Spill {
  readonly #path: string;
  readonly #maxBytes: number;
  #descriptor: number | undefined;
  #written = 0;
  #problem: string | undefined;

  constructor(path: string, maxBytes: number) {
    this.#path = path;
    this.#maxBytes = maxBytes;
    this.#attempt(() => {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      this.#descriptor = openSync(path, "wx", 0o600);
    });
  }

  /** Absent when the file could not be made. */
  get file(): string | undefined {
    return this.#written > 0 ? this.#path : undefined;
  }

  write(chunk: Buffer): void {
    const descriptor = this.#descriptor;
    if (descriptor === undefined || this.#problem !== undefined) return;
    let rest = chunk.subarray(0, this.#maxBytes - this.#written);
    this.#attempt(() => {
      while (rest.length > 0) {
        const count = writeSync(descriptor, rest);
        this.#written += count;
        rest = rest.subarray(count);
      }
    });
  }

  close(): void {
    const descriptor = this.#descriptor;
    this.#descriptor = undefined;
    if (descriptor !== undefined) this.#attempt(() => closeSync(descriptor));
  }

  summary(all: number): string {
    const where = this.#written === all ? `all of it is in ${this.#path}` : this.#partial();
    return this.#problem === undefined ? where : `${where} (${this.#problem})`;
  }

  #partial(): string {
    return this.#written === 0 ? "not kept in a file" : `the first ${this.#written} are in ${this.#path}`;
  }

  /** A full disk costs the spilled copy, not the step. */
  #attempt(write: () => void): void {
    try {
      write();
    } catch (error) {
      this.#problem = messageOf(error);
    }
  }
}

/** A character that the cut went through is left out, not shown as two broken halves. */
function withoutCutEnd(bytes: Buffer): Buffer {
  let start = bytes.length - 1;
  while (start > bytes.length - 4 && start > 0 && isContinuation(bytes[start])) start--;
  const lead = bytes[start] ?? 0;
  const length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  return start + length > bytes.length ? bytes.subarray(0, start) : bytes;
}

function withoutCutStart(bytes: Buffer): Buffer {
  let start = 0;
  while (start < 3 && isContinuation(bytes[start])) start++;
  return bytes.subarray(start);
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}
