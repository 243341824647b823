import type { FormField, OpenApproval } from "../model/ports.ts";
import { cut } from "./display.ts";
import type { Palette } from "./palette.ts";
import { oneLine } from "./words.ts";

/** A request with the commands that answer it, ready to be pasted into a shell. */
export interface Answerable extends OpenApproval {
  readonly approve: string;
  readonly deny: string;
}

const mostShown = 20;
const longestQuestion = 1000;

/** What a run waits for, and what to type; ends in a newline. */
export function approvalsText(open: readonly Answerable[], palette: Palette): string {
  const shown = open.slice(0, mostShown).flatMap((request) => ["", ...requestLines(request, palette)]);
  const more = open.length - mostShown;
  const rest = more > 0 ? ["", `and ${more} more; \`flow show\` lists them`] : [];
  return `${[...shown, ...rest, "", palette.dim("  --comment '…' says why")].join("\n")}\n`;
}

function requestLines({ step, question, deadline, fields, approve, deny }: Answerable, palette: Palette): string[] {
  const rows: [string, string][] = fields.map((field, index) => [index === 0 ? "form" : "", fieldText(field)]);
  if (deadline !== undefined) rows.push(["until", oneLine(deadline)]);
  rows.push(["yes", approve], ["no", deny]);
  const [first = "", ...others] = question.slice(0, longestQuestion).trim().split("\n");
  return [
    `${palette.yellow(palette.bold("waiting"))} ${oneLine(step)}: ${oneLine(first)}`,
    ...others.map((line) => `  ${oneLine(line)}`),
    ...rows.map(([label, text]) => `  ${palette.dim(label.padEnd(7))} ${text}`),
  ];
}

/** What a person is asked in a terminal, before the fields of its form. */
export function questionText({ step, question, deadline }: OpenApproval): string {
  const [first = "", ...others] = question.slice(0, longestQuestion).trim().split("\n");
  const until = deadline === undefined ? "" : ` (until ${oneLine(deadline)})`;
  return `\n${oneLine(step)} asks: ${oneLine(first)}${until}\n${others.map((line) => `  ${oneLine(line)}\n`).join("")}`;
}

/** `window (text: now, tonight; default now) When to ship`. */
export function fieldText({ name, type, description, choices, default: byDefault, required }: FormField): string {
  const facts = [choices === undefined ? type : `one of ${choices.join(", ")}`];
  if (byDefault !== undefined)
    facts.push(`default ${typeof byDefault === "string" ? byDefault : JSON.stringify(byDefault)}`);
  else if (!required) facts.push("optional");
  const about = description === undefined ? "" : ` ${description}`;
  return cut(oneLine(`${name} (${facts.join("; ")})${about}`), 200);
}
