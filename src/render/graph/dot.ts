import type { Plan, StepKind } from "../../model/plan.ts";
import { visible } from "../display.ts";
import { condition, items, oneLine, repeat, summary } from "./describe.ts";
import { placeScope } from "./layers.ts";
import type { PlacedEdge, PlacedStep } from "./layers.ts";

const shapes: { readonly [kind in StepKind]: string } = {
  agent: "box, style=rounded",
  run: "box",
  tool: "component",
  workflow: "tab",
  steps: "tab",
  approve: "hexagon",
  set: "note",
};

/**
 * The root workflow for Graphviz. A group is a cluster around its steps and a node of its own, which its edges use;
 * sub-workflows are opened one level. Dashed: from a reference; dotted: only orders.
 */
export function dotGraph(plan: Plan): string {
  const workflow = plan.workflows[plan.root];
  if (workflow === undefined) return "";
  const steps = placeScope(plan, workflow.scope, { groups: Infinity, workflows: 1 });
  const lines = [
    `digraph ${quoted(visible(workflow.name))} {`,
    '  node [fontname="sans-serif"];',
    ...steps.flatMap((step) => nodeLines(plan, step, "  ")),
    ...edgeLines(steps),
    "}",
  ];
  return `${lines.join("\n")}\n`;
}

function nodeLines(plan: Plan, { step, key, inner }: PlacedStep, indent: string): string[] {
  const words = [`${step.kind} ${summary(plan, step)}`.trim(), items(step), repeat(step), condition(step)];
  const label = [step.id, ...words.filter((word) => word !== undefined)];
  const node = `s${key} [label=${quoted(...label.map(visible))}, shape=${shapes[step.kind]}];`;
  if (inner === undefined || inner.length === 0) return [indent + node];
  const body = inner.flatMap((child) => nodeLines(plan, child, `${indent}  `));
  return [`${indent}subgraph cluster_s${key} {`, `${indent}  ${node}`, ...body, `${indent}}`];
}

function edgeLines(steps: readonly PlacedStep[]): string[] {
  return steps.flatMap(({ key, incoming, inner }) => [
    ...incoming.map((placed) => `  s${placed.fromKey} -> s${key}${attributes(placed)};`),
    ...edgeLines(inner ?? []),
  ]);
}

function attributes({ edge }: PlacedEdge): string {
  const written = edge.origin === "written";
  const list = [
    ...(!edge.hard ? ["style=dotted, arrowhead=odot"] : written ? [] : ["style=dashed"]),
    ...(edge.if === undefined ? [] : [`label=${quoted(`if ${oneLine(edge.if.source)}`)}`]),
  ];
  return list.length === 0 ? "" : ` [${list.join(", ")}]`;
}

/** A DOT string of one or more lines; `&` too, because Graphviz reads HTML entities in it. */
function quoted(...lines: readonly string[]): string {
  const escaped = lines.map((line) => line.replace(/&/g, "&amp;").replace(/[\\"]/g, "\\$&"));
  return `"${escaped.join("\\n")}"`;
}
