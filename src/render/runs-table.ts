import { cut, displayWidth, pad } from "./display.ts";
import type { Palette } from "./palette.ts";
import { count, duration, money, oneLine } from "./words.ts";

/** One run of the list; null where its log does not say. */
export interface RunRow {
  readonly run: string;
  readonly workflow: string | null;
  /** The workflow's name; its path stands in for it. */
  readonly name: string | null;
  /** `success failure cancelled waiting empty`, `running`, `interrupted`, `damaged` or `newer`. */
  readonly state: string;
  readonly started: string | null;
  /** Milliseconds. */
  readonly duration: number | null;
  readonly steps: {
    readonly ok: number;
    readonly failed: number;
    readonly skipped: number;
    readonly cancelled: number;
  } | null;
  readonly tokens: number | null;
  readonly cost: number | null;
  readonly problem: string | null;
}

const columns = 100;
const narrowestName = 8;
const titles = ["run", "workflow", "outcome", "started (UTC)", "took", "ok/fail/skip", "tokens", "cost"];
const nameColumn = 1;
/** Columns of numbers. */
const toTheRight = new Set(["took", "tokens", "cost"]);
const paints: { readonly [state: string]: keyof Palette } = {
  success: "green",
  failure: "red",
  empty: "red",
  damaged: "red",
  running: "cyan",
};

/** A table of runs in the order they are given, with what is wrong with a log below its line. Ends in a newline. */
export function runsTable(runs: readonly RunRow[], palette: Palette): string {
  const rows = runs.map(cells);
  const widths = titles.map((title, column) =>
    rows.reduce((width, row) => Math.max(width, displayWidth(row[column] ?? "")), title.length),
  );
  const others = widths.reduce((sum, width, column) => sum + 2 + (column === nameColumn ? -2 : width), 0);
  widths[nameColumn] = Math.max(narrowestName, Math.min(widths[nameColumn] ?? 0, columns - others - 2));
  const line = (row: readonly string[], paint?: keyof Palette): string =>
    row
      .map((cell, column) => fit(cell, { column, width: widths[column] ?? 0, paint, palette }))
      .join("  ")
      .trimEnd();
  const lines = rows.flatMap((row, index) => {
    const { state, problem } = runs[index] ?? { state: "", problem: null };
    const below = problem === null ? [] : [`  ${cut(oneLine(problem), 96)}`];
    return [line(row, Object.hasOwn(paints, state) ? paints[state] : "yellow"), ...below];
  });
  return `${[palette.dim(line(titles)), ...lines].join("\n")}\n`;
}

interface Fit {
  readonly column: number;
  readonly width: number;
  readonly paint: keyof Palette | undefined;
  readonly palette: Palette;
}

function fit(cell: string, { column, width, paint, palette }: Fit): string {
  const title = titles[column] ?? "";
  if (toTheRight.has(title)) return cell.padStart(width);
  const padded = pad(cut(cell, width), width);
  return title === "outcome" && paint !== undefined ? palette[paint](padded) : padded;
}

function cells(row: RunRow): string[] {
  const { run, workflow, name, state, started, duration: took, steps, tokens, cost } = row;
  const spent = tokens !== null && tokens > 0;
  return [
    oneLine(run),
    oneLine(name ?? workflow ?? ""),
    oneLine(stateText(state)),
    started === null ? "" : oneLine(started.slice(0, 16).replace("T", " ")),
    took === null ? "" : duration(took),
    steps === null ? "" : stepsText(steps),
    spent ? count(tokens) : "",
    spent ? (cost === null ? "unknown" : money(cost)) : "",
  ];
}

function stateText(state: string): string {
  return state === "success" ? "ok" : state === "failure" ? "failed" : state;
}

function stepsText({ ok, failed, skipped, cancelled }: RunRow["steps"] & object): string {
  return `${ok}/${failed}/${skipped}${cancelled > 0 ? `, ${cancelled} cancelled` : ""}`;
}
