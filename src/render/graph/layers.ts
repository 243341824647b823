import type { Edge, Plan, Scope, Step } from "../../model/plan.ts";

/** A step with its place in the drawing. */
export interface PlacedStep {
  readonly step: Step;
  /** Unique in the drawing, made of digits and `_` only: `2`, `2_0`. */
  readonly key: string;
  /** From 1: the earliest wave of the ready queue in which it can start when every step takes one wave. */
  readonly wave: number;
  /** Edges that end here, in the order of their sources. */
  readonly incoming: readonly PlacedEdge[];
  /** The steps of a group or a sub-workflow, where the drawing goes that deep. */
  readonly inner?: readonly PlacedStep[];
}

export interface PlacedEdge {
  readonly edge: Edge;
  readonly from: Step;
  readonly fromKey: string;
}

/** How many levels of groups and of sub-workflows a drawing opens. */
export interface Depth {
  readonly groups: number;
  readonly workflows: number;
}

/** The steps of a scope by wave, within a wave as written. */
export function placeScope(plan: Plan, scope: Scope, depth: Depth, prefix = ""): PlacedStep[] {
  const waves = wavesOf(scope);
  const incoming = new Map<number, PlacedEdge[]>();
  for (const edge of [...scope.edges].sort((a, b) => a.from - b.from)) {
    const from = scope.steps[edge.from];
    if (from === undefined) continue;
    const list = incoming.get(edge.to) ?? [];
    list.push({ edge, from, fromKey: `${prefix}${edge.from}` });
    incoming.set(edge.to, list);
  }
  const placed = scope.steps.map((step, index): PlacedStep => {
    const key = `${prefix}${index}`;
    const inner = placeInner(plan, step, depth, `${key}_`);
    const base = { step, key, wave: waves[index] ?? 1, incoming: incoming.get(index) ?? [] };
    return inner === undefined ? base : { ...base, inner };
  });
  return placed.sort((a, b) => a.wave - b.wave);
}

/** The scope a step contains, if any. */
export function scopeOf(plan: Plan, step: Step): Scope | undefined {
  if (step.scope === undefined) return undefined;
  if ("inline" in step.scope) return step.scope.inline;
  return Object.hasOwn(plan.workflows, step.scope.workflow) ? plan.workflows[step.scope.workflow]?.scope : undefined;
}

/** The longest path to each step, from 1; iterative, because 100,000 chained steps are allowed. */
export function wavesOf(scope: Scope): number[] {
  const waves = scope.steps.map(() => 1);
  const missing = scope.steps.map(() => 0);
  const outgoing = new Map<number, number[]>();
  for (const { from, to } of scope.edges) {
    missing[to] = (missing[to] ?? 0) + 1;
    const targets = outgoing.get(from);
    if (targets === undefined) outgoing.set(from, [to]);
    else targets.push(to);
  }
  const ready = [...missing.keys()].filter((index) => missing[index] === 0);
  for (const index of ready) {
    for (const to of outgoing.get(index) ?? []) {
      waves[to] = Math.max(waves[to] ?? 1, (waves[index] ?? 1) + 1);
      missing[to] = (missing[to] ?? 0) - 1;
      if (missing[to] === 0) ready.push(to);
    }
  }
  return waves;
}

function placeInner(plan: Plan, step: Step, depth: Depth, prefix: string): PlacedStep[] | undefined {
  const scope = scopeOf(plan, step);
  if (scope === undefined || step.scope === undefined) return undefined;
  const inline = "inline" in step.scope;
  if ((inline ? depth.groups : depth.workflows) < 1) return undefined;
  const below = inline
    ? { groups: depth.groups - 1, workflows: depth.workflows }
    : { groups: depth.groups, workflows: depth.workflows - 1 };
  return placeScope(plan, scope, below, prefix);
}
