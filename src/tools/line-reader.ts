import type { FileHandle } from "node:fs/promises";

export interface LineRange {
  /** From 1. */
  readonly first: number;
  readonly count: number;
  /** UTF-16 units kept of each line. */
  readonly width: number;
  /** Bytes looked at in all. */
  readonly bytes: number;
}

export interface LinesRead {
  /** Raw bytes of each line without its newline, at most four per unit of `width`. */
  readonly lines: readonly Buffer[];
  /** Lines passed before the first wanted one; fewer than asked when the file is shorter. */
  readonly skipped: number;
  /** `file`: everything was seen; `range`: the file goes on; `bytes`: the byte cap ended it. */
  readonly end: "file" | "range" | "bytes" | "cancelled";
}

const chunkSize = 64 * 1024;

/** Reads a range of lines from the start of a file of any size, in constant memory beside the lines it gives. */
export async function readLines(handle: FileHandle, range: LineRange, signal: AbortSignal): Promise<LinesRead> {
  const chunk = Buffer.allocUnsafe(chunkSize);
  const collector = new LineCollector(range);
  let position = 0;
  while (position < range.bytes) {
    if (signal.aborted) return collector.finish("cancelled");
    const { bytesRead } = await handle.read(chunk, 0, Math.min(chunkSize, range.bytes - position), position);
    if (bytesRead === 0) return collector.finish("file");
    position += bytesRead;
    if (!collector.add(chunk.subarray(0, bytesRead))) return collector.finish("range");
  }
  return collector.finish("bytes");
}

class LineCollector {
  readonly #range: LineRange;
  readonly #lines: Buffer[] = [];
  #skipped = 0;
  #current: Buffer[] = [];
  #length = 0;
  /** Whether any byte of the current line was seen. */
  #open = false;

  constructor(range: LineRange) {
    this.#range = range;
  }

  /** False once the range is complete and the file is known to go on. */
  add(chunk: Buffer): boolean {
    let start = 0;
    while (start < chunk.length) {
      if (this.#lines.length === this.#range.count) return false;
      const newline = chunk.indexOf(0x0a, start);
      const end = newline < 0 ? chunk.length : newline;
      this.#open = true;
      this.#keep(chunk.subarray(start, end));
      if (newline >= 0) this.#close();
      start = end + 1;
    }
    return true;
  }

  finish(end: LinesRead["end"]): LinesRead {
    if (this.#open && end !== "cancelled") this.#close();
    return { lines: this.#lines, skipped: this.#skipped, end };
  }

  #keep(piece: Buffer): void {
    if (this.#skipped + 1 < this.#range.first) return;
    const room = this.#range.width * 4 - this.#length;
    if (room <= 0) return;
    // A copy: the chunk is read into again.
    this.#current.push(Buffer.from(piece.subarray(0, room)));
    this.#length += Math.min(piece.length, room);
  }

  #close(): void {
    if (this.#skipped + 1 < this.#range.first) this.#skipped += 1;
    else this.#lines.push(Buffer.concat(this.#current));
    this.#current = [];
    this.#length = 0;
    this.#open = false;
  }
}
