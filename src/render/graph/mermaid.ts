import type { Plan, StepKind } from "../../model/plan.ts";
import { visible } from "../display.ts";
import { condition, items, oneLine, repeat, summary } from "./describe.ts";
import { placeScope } from "./layers.ts";
import type { PlacedEdge, PlacedStep } from "./layers.ts";

/** What stands around a label, by kind. */
const shapes: { readonly [kind in StepKind]: readonly [string, string] } = {
  agent: ["([", "])"],
  run: ["[", "]"],
  tool: ["[[", "]]"],
  workflow: ["[[", "]]"],
  steps: ["[", "]"],
  approve: ["{{", "}}"],
  set: ["[/", "/]"],
};

/**
 * The root workflow as a Mermaid flowchart. Groups are subgraphs at every depth, sub-workflows are opened one level.
 * A solid arrow is written (`needs`, `edges`), a dotted one comes from a reference; dots with a round head only order.
 */
export function mermaidGraph(plan: Plan): string {
  const workflow = plan.workflows[plan.root];
  if (workflow === undefined) return "";
  const steps = placeScope(plan, workflow.scope, { groups: Infinity, workflows: 1 });
  const lines = [...steps.flatMap((step) => nodeLines(plan, step, "  ")), ...edgeLines(steps)];
  return `flowchart TD\n${lines.join("\n")}\n`;
}

function nodeLines(plan: Plan, placed: PlacedStep, indent: string): string[] {
  const { step, key, inner } = placed;
  const words = [items(step), repeat(step), condition(step)].filter((word) => word !== undefined);
  const about = [`${step.kind} ${summary(plan, step)}`.trim(), ...words];
  const label = `"<b>${escaped(step.id)}</b><br/>${about.map(escaped).join("<br/>")}"`;
  if (inner === undefined || inner.length === 0) {
    const [open, close] = shapes[step.kind];
    return [`${indent}s${key}${open}${label}${close}`];
  }
  const body = inner.flatMap((child) => nodeLines(plan, child, `${indent}  `));
  return [`${indent}subgraph s${key}[${label}]`, ...body, `${indent}end`];
}

function edgeLines(steps: readonly PlacedStep[]): string[] {
  return steps.flatMap(({ key, incoming, inner }) => [
    ...incoming.map((placed) => `  s${placed.fromKey} ${arrow(placed)} s${key}`),
    ...edgeLines(inner ?? []),
  ]);
}

function arrow({ edge }: PlacedEdge): string {
  const line = edge.hard ? (edge.origin === "written" ? "-->" : "-.->") : "-.-o";
  return edge.if === undefined ? line : `${line}|"${escaped(`if ${oneLine(edge.if.source)}`)}"|`;
}

/**
 * Mermaid reads directives, Markdown, HTML, colours and line breaks out of quoted text too, so everything but letters,
 * digits and a few harmless marks becomes a character reference.
 */
function escaped(text: string): string {
  return visible(text).replace(
    /[^\p{L}\p{N}\p{M}\p{So}\p{Emoji_Modifier}\p{Join_Control} _.,/×↻≤·…!?=$-]/gu,
    (character) => `#${character.codePointAt(0) ?? 63};`,
  );
}
