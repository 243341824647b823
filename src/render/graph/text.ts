import type { Plan } from "../../model/plan.ts";
import { cut, displayWidth, pad, visible } from "../display.ts";
import { condition, items, oneLine, policies, repeat, summary } from "./describe.ts";
import { placeScope } from "./layers.ts";
import type { PlacedEdge, PlacedStep } from "./layers.ts";

export interface TextGraphOptions {
  /** Display columns no line exceeds; 60 by default, never taken below 40. */
  readonly width?: number;
}

/** One step, ready to be set: `rail` leads its first line, `railBelow` the ones that follow. */
interface Row {
  readonly wave: string;
  readonly rail: string;
  readonly railBelow: string;
  readonly id: string;
  readonly kind: string;
  readonly summary: string;
  readonly facts: readonly string[];
}

/** Widths of the columns before the facts. */
interface Columns {
  readonly wave: number;
  readonly id: number;
  readonly kind: number;
  readonly summary: number;
  /** Where the kind begins, and what is left from there. */
  readonly indent: number;
  readonly room: number;
  readonly width: number;
}

const widestId = 24;
const widestSummary = 24;
const linesPerFact = 4;

const signs: readonly (readonly [string, string])[] = [
  ["┌", "┌ └ at once"],
  ["←", "← uses its outputs"],
  ["⇐", "⇐ needs"],
  ["⇠", "⇠ after, whatever its outcome"],
  ["×", "× once per item"],
  ["↻", "↻ repeats"],
];

/**
 * The root workflow for a terminal: one step a line, in the waves of the ready queue; steps that can start together
 * share a bracket, groups and sub-workflows are opened one level. Ends in a legend of the signs used.
 */
export function textGraph(plan: Plan, options: TextGraphOptions = {}): string {
  const width = Math.max(40, options.width ?? 60);
  const workflow = plan.workflows[plan.root];
  if (workflow === undefined) return "";
  const steps = placeScope(plan, workflow.scope, { groups: 1, workflows: 1 });
  const rows = rowsOf(plan, steps);
  const columns = columnsOf(rows, width);
  const waves = steps.at(-1)?.wave ?? 0;
  const title = `${count(steps.length, "step")} in ${count(waves, "wave")}`;
  const name = cut(visible(workflow.name), width - displayWidth(title) - 2);
  const lines = [`${name}  ${title}`, "", ...rows.flatMap((row) => setRow(row, columns))];
  const isUsed = (sign: string) =>
    rows.some((row) => row.rail.includes(sign) || row.facts.some((fact) => fact.startsWith(sign)));
  const legend = signs.filter(([sign]) => isUsed(sign)).map(([, meaning]) => meaning);
  if (legend.length > 0) lines.push("", ...fill(legend, width));
  return `${lines.map((line) => line.trimEnd()).join("\n")}\n`;
}

function rowsOf(plan: Plan, steps: readonly PlacedStep[], above = { wave: "", rail: "" }): Row[] {
  return steps.flatMap((placed, index) => {
    const first = steps[index - 1]?.wave !== placed.wave;
    const last = steps[index + 1]?.wave !== placed.wave;
    const alone = first && last;
    const railBelow = above.rail + (alone || last ? "  " : "│ ");
    const wave = `${above.wave}${placed.wave}`;
    const row: Row = {
      wave: first ? wave : "",
      rail: above.rail + (alone ? "  " : first ? "┌ " : last ? "└ " : "├ "),
      railBelow,
      id: visible(placed.step.id),
      kind: placed.step.kind,
      summary: summary(plan, placed.step),
      facts: factsOf(placed),
    };
    return [row, ...rowsOf(plan, placed.inner ?? [], { wave: `${wave}.`, rail: railBelow })];
  });
}

function factsOf({ step, incoming }: PlacedStep): string[] {
  const hard = incoming.filter(({ edge }) => edge.hard);
  return [
    items(step),
    repeat(step),
    sources(
      "←",
      hard.filter(({ edge }) => edge.origin === "reference"),
    ),
    sources(
      "⇐",
      hard.filter(({ edge }) => edge.origin === "written"),
    ),
    sources(
      "⇠",
      incoming.filter(({ edge }) => !edge.hard),
    ),
    condition(step),
    ...policies(step),
  ].filter((fact) => fact !== undefined);
}

function sources(sign: string, edges: readonly PlacedEdge[]): string | undefined {
  if (edges.length === 0) return undefined;
  const list = edges.map(({ edge, from }) => {
    const id = visible(from.id);
    return edge.if === undefined ? id : `${id} (if ${oneLine(edge.if.source)})`;
  });
  return `${sign} ${list.join(", ")}`;
}

function columnsOf(rows: readonly Row[], width: number): Columns {
  const widest = (of: (row: Row) => string, atMost: number) =>
    Math.min(
      atMost,
      rows.reduce((most, row) => Math.max(most, displayWidth(of(row))), 0),
    );
  const wave = widest((row) => row.wave, 8);
  const id = widest((row) => row.rail + row.id, widestId);
  const kind = widest((row) => row.kind, 8);
  const indent = wave + 1 + id + 2;
  const room = width - indent;
  return { wave, id, kind, summary: widest((row) => row.summary, widestSummary), indent, room, width };
}

/** The lines of one step: facts go behind the summary while they fit, then below it. */
function setRow(row: Row, columns: Columns): string[] {
  const lead = `${pad(cut(row.wave, columns.wave), columns.wave)} ${row.rail}`;
  const below = pad(`${" ".repeat(columns.wave + 1)}${row.railBelow}`, columns.indent);
  const text = `${pad(row.kind, columns.kind)}  ${row.summary}`;
  const facts = row.facts.flatMap((fact) => wrap(fact, columns.room));
  const main = pad(text, columns.kind + 2 + columns.summary);
  const body = fill([facts.length > 0 && displayWidth(main) < columns.room ? main : text, ...facts], columns.room);
  // An id wider than its column has a line to itself.
  const head = `${lead}${cut(row.id, columns.width - displayWidth(lead))}`;
  if (displayWidth(head) > columns.indent - 2) return [head, ...body.map((line) => below + line)];
  return body.map((line, index) => (index === 0 ? pad(head, columns.indent) : below) + line);
}

/** Pieces on as few lines of `width` as their order allows, three spaces apart. */
function fill(pieces: readonly string[], width: number): string[] {
  const lines: string[] = [];
  for (const piece of pieces) {
    const last = lines.at(-1);
    const joined = `${last ?? ""}   ${piece}`;
    if (last !== undefined && displayWidth(joined) <= width) lines[lines.length - 1] = joined;
    else lines.push(cut(piece, width));
  }
  return lines;
}

/** A fact broken at its spaces; its later lines are set in, what is beyond the fourth is cut. */
function wrap(fact: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of cut(fact, width * linesPerFact).split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && displayWidth(last) + 1 + displayWidth(word) <= width)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(cut(last === undefined ? word : `  ${word}`, width));
  }
  const kept = lines.slice(0, linesPerFact);
  const end = kept.at(-1);
  if (end !== undefined && lines.length > kept.length) kept[kept.length - 1] = cut(`${end} ……`, width);
  return kept;
}

function count(amount: number, thing: string): string {
  return `${amount} ${thing}${amount === 1 ? "" : "s"}`;
}
