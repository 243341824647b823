/**
 * Cuts a stream into lines. Memory is bounded by the longest line allowed; one that is longer is told once, and nothing
 * is heard after it.
 */
export class Lines {
  readonly #longest: number;
  readonly #onLine: (line: string) => void;
  readonly #onTooLong: () => void;
  #pieces: Buffer[] = [];
  #size = 0;
  #isDeaf = false;

  constructor(longest: number, onLine: (line: string) => void, onTooLong: () => void) {
    this.#longest = longest;
    this.#onLine = onLine;
    this.#onTooLong = onTooLong;
  }

  /** The chunk's memory may be used again afterwards. */
  add(chunk: Buffer): void {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0 && !this.#isDeaf; end = chunk.indexOf(10, from)) {
      this.#keep(chunk.subarray(from, end));
      from = end + 1;
      if (!this.#isDeaf) this.#onLine(this.#take());
    }
    this.#keep(Buffer.from(chunk.subarray(from)));
  }

  #keep(piece: Buffer): void {
    if (this.#isDeaf) return;
    this.#size += piece.length;
    if (this.#size > this.#longest) {
      this.#isDeaf = true;
      this.#pieces = [];
      this.#onTooLong();
    } else if (piece.length > 0) this.#pieces.push(piece);
  }

  #take(): string {
    const line = Buffer.concat(this.#pieces, this.#size).toString("utf8");
    this.#pieces = [];
    this.#size = 0;
    return line.endsWith("\r") ? line.slice(0, -1) : line;
  }
}

/** Whether brackets in a JSON text nest deeper than that: such a value overflows the stack of whatever walks it. */
export function isDeeperThan(text: string, limit: number): boolean {
  let depth = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (quoted) {
      if (char === "\\") at++;
      else if (char === '"') quoted = false;
    } else if (char === '"') quoted = true;
    else if (char === "{" || char === "[") {
      if (++depth > limit) return true;
    } else if (char === "}" || char === "]") depth--;
  }
  return false;
}
