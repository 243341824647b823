import { displayWidth, visible } from "./display.ts";

/** One line of a file and the stretch of it to point at, in UTF-16 units from 0; the end is exclusive. */
export interface Frame {
  readonly lines: readonly string[];
  /** From 0. */
  readonly line: number;
  readonly from: number;
  readonly to: number;
  /** Lines shown around it. */
  readonly around: number;
  readonly mark: (text: string) => string;
  readonly dim: (text: string) => string;
}

/** One grapheme as it is shown. `column` counts display columns from the start of its line. */
interface Cell {
  readonly text: string;
  /** UTF-16 units from the start of its line. */
  readonly offset: number;
  readonly end: number;
  readonly column: number;
  readonly width: number;
}

const columns = 100;
const tabStop = 4;
/** Units looked at on each side of the caret: more than is ever shown, less than a line of megabytes. */
const reach = 1_000;

/**
 * The line with carets under the stretch and its neighbours, ready to print. Tabs are spread out, wide characters
 * count double, control characters are spelled, and a long line is cut around the caret.
 */
export function codeFrame(frame: Frame): string[] {
  const first = Math.max(0, frame.line - frame.around);
  // The empty "line" behind a file's last newline is no context.
  const end = frame.lines.at(-1) === "" ? frame.lines.length - 2 : frame.lines.length - 1;
  const last = Math.max(frame.line, Math.min(end, frame.line + frame.around));
  const gutter = String(last + 1).length;
  const room = columns - gutter - 5;
  const cells = cellsOf(frame.lines[frame.line] ?? "", frame.from);
  const caret = caretColumns(cells, frame.from, frame.to);
  const start = endOf(cells) <= room ? 0 : Math.max(0, caret.from - Math.floor(room / 3));
  const shown: string[] = [];
  for (let index = first; index <= last; index++) {
    const focus = index === frame.line;
    const text = windowOf(focus ? cells : cellsOf(frame.lines[index] ?? "", frame.from), start, start + room);
    const number = String(index + 1).padStart(gutter);
    shown.push(`${focus ? frame.mark(">") : " "} ${frame.dim(`${number} |`)} ${text}`.trimEnd());
    if (!focus) continue;
    const length = Math.max(1, Math.min(caret.to, start + room) - caret.from);
    const indent = " ".repeat(Math.max(0, caret.from - start));
    shown.push(`  ${frame.dim(`${" ".repeat(gutter)} |`)} ${indent}${frame.mark("^".repeat(length))}`);
  }
  return shown;
}

function cellsOf(line: string, near: number): Cell[] {
  const start = Math.max(0, near - reach);
  const cells: Cell[] = [];
  let column = start;
  for (const { segment, index } of new Intl.Segmenter().segment(line.slice(start, near + reach))) {
    const text = segment === "\t" ? " ".repeat(tabStop - (column % tabStop)) : visible(segment);
    const width = displayWidth(text);
    cells.push({ text, offset: start + index, end: start + index + segment.length, column, width });
    column += width;
  }
  return cells;
}

/** The columns under `[from, to)`, at least one; an empty stretch behind the last character points there. */
function caretColumns(cells: readonly Cell[], from: number, to: number): { from: number; to: number } {
  const under = cells.filter((cell) => cell.end > from && cell.offset < Math.max(to, from + 1));
  const first = under[0];
  if (first === undefined) return { from: endOf(cells), to: endOf(cells) + 1 };
  return { from: first.column, to: Math.max(first.column + 1, endOf(under)) };
}

function endOf(cells: readonly Cell[]): number {
  const last = cells.at(-1);
  return last === undefined ? 0 : last.column + last.width;
}

/** The cells between two columns; `…` stands for what is left out on either side. */
function windowOf(cells: readonly Cell[], from: number, to: number): string {
  const inside = cells.filter((cell) => cell.column >= from && cell.column + cell.width <= to);
  const cutBefore = from > 0 && cells.length > 0;
  const cutAfter = endOf(cells) > to;
  const kept = inside.slice(cutBefore ? 1 : 0, cutAfter ? -1 : undefined);
  const lead = cutBefore ? "…".padEnd((kept[0]?.column ?? from + 1) - from) : "";
  return lead + kept.map((cell) => cell.text).join("") + (cutAfter ? "…" : "");
}
