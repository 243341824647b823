import type { Span } from "../model/diagnostic.ts";
import { align } from "./align.ts";
import type { Alignment } from "./align.ts";
import type { ScalarNode } from "./node.ts";

/** Turns offsets of one text into lines and columns. Line starts are found once; neighbours are found at once. */
export class Positions {
  readonly file: string;
  readonly text: string;
  readonly #starts: readonly number[];
  /** The line found last: offsets mostly come in the order of the text. */
  #line = 0;
  readonly #alignments = new WeakMap<ScalarNode, Alignment>();

  constructor(file: string, text: string) {
    this.file = file;
    this.text = text;
    this.#starts = lineStarts(text);
  }

  /** The span from offset `from` up to, not including, `to`. */
  span(from: number, to: number): Span {
    const first = this.#lineOf(from);
    const column = from - this.#start(first) + 1;
    const last = to === from ? first : this.#lineOf(to);
    const endColumn = to - this.#start(last) + 1;
    return { file: this.file, line: first + 1, column, endLine: last + 1, endColumn };
  }

  /** As `span`, cut at the end of the first line. */
  firstLine(from: number, to: number): Span {
    return this.span(from, Math.max(from, Math.min(to, this.lineEnd(from))));
  }

  lineStart(offset: number): number {
    return this.#start(this.#lineOf(offset));
  }

  /** Offset of the line break that ends the line of `offset`, or of the end of the text. */
  lineEnd(offset: number): number {
    const next = this.#starts[this.#lineOf(offset) + 1];
    if (next === undefined) return this.text.length;
    return this.text[next - 2] === "\r" ? next - 2 : next - 1;
  }

  /** See `locate` in document.ts. */
  locate(scalar: ScalarNode, offset: number, length: number): Span {
    const { value, from, to } = scalar;
    if (typeof value !== "string" || offset < 0 || length < 0 || offset + length > value.length) return scalar.at;
    if (to - from === value.length && this.text.startsWith(value, from))
      return this.span(from + offset, from + offset + length);
    let alignment = this.#alignments.get(scalar);
    if (alignment === undefined) {
      alignment = align({ raw: this.text.slice(from, to), value, style: scalar.style });
      this.#alignments.set(scalar, alignment);
    }
    const start = alignment.starts[offset];
    const end = length === 0 ? start : alignment.ends[offset + length - 1];
    if (start === undefined || end === undefined) return scalar.at;
    return this.span(from + start, from + Math.max(start, end));
  }

  #start(line: number): number {
    return this.#starts[line] ?? 0;
  }

  #lineOf(offset: number): number {
    const line = this.#line;
    if (offset >= this.#start(line)) {
      if (offset < (this.#starts[line + 1] ?? Infinity)) return line;
      if (offset < (this.#starts[line + 2] ?? Infinity)) return (this.#line = line + 1);
    }
    let low = 0;
    let high = this.#starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#start(middle) <= offset) low = middle;
      else high = middle - 1;
    }
    return (this.#line = low);
  }
}

function lineStarts(text: string): number[] {
  const starts = [0];
  for (let end = text.indexOf("\n"); end !== -1; end = text.indexOf("\n", end + 1)) starts.push(end + 1);
  return starts;
}
