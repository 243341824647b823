import type { Edge } from "../model/plan.ts";
import type { Report } from "./report.ts";
import type { LinkedScope } from "./link.ts";

/** Reports every step that stands on a cycle, each cycle once, with the place of every edge on the way. */
export function checkCycles(scope: LinkedScope, report: Report): void {
  const { steps } = scope.shape;
  for (const cycle of cyclesOf(steps.length, scope.edges)) {
    const [first] = cycle;
    if (!first) continue;
    const ids = [...cycle.map((edge) => steps[edge.from]?.id), steps[first.from]?.id].reverse();
    const message =
      cycle.length === 1 ? `\`${ids[0]}\` waits for itself` : `these steps wait for each other: ${ids.join(" -> ")}`;
    const related = cycle.slice(1).map((edge) => ({
      message: `\`${steps[edge.to]?.id}\` waits for \`${steps[edge.from]?.id}\` here`,
      at: edge.at,
    }));
    report("FLOW4001", first.at, message, {
      related,
      suggestion:
        cycle.length === 1
          ? "remove it; to run a step again, give it `repeat`"
          : "remove one of the references or `needs`; to run steps again, put them in a group with `repeat`",
    });
  }
  for (const inner of scope.inner.values()) checkCycles(inner, report);
}

/**
 * One cycle per knot of steps that wait for each other, as the edges on its way; linear, and without recursion, because
 * a chain may be 100,000 steps long. First everything that can be ordered is peeled off (Kahn); what is left and can
 * reach itself backwards lies on or between cycles.
 */
export function cyclesOf(steps: number, edges: readonly Edge[]): Edge[][] {
  const ready = orderOf(steps, edges);
  if (ready.length === steps) return [];
  const left = new Set(Array.from({ length: steps }, (_, step) => step));
  for (const step of ready) left.delete(step);
  const into = new Map<number, Edge>();
  for (const edge of edges) if (left.has(edge.from) && left.has(edge.to) && !into.has(edge.to)) into.set(edge.to, edge);
  return walkBack(left, into);
}

/** The steps in an order in which each comes after those it waits for, without the ones on or behind a cycle. */
export function orderOf(steps: number, edges: readonly Edge[]): number[] {
  const waiting = new Int32Array(steps);
  const out = outgoing(steps, edges);
  for (const edge of edges) waiting[edge.to] = (waiting[edge.to] ?? 0) + 1;
  const ready: number[] = [];
  for (let step = 0; step < steps; step++) if (waiting[step] === 0) ready.push(step);
  for (let next = 0; next < ready.length; next++) {
    for (const edge of out[ready[next] ?? 0] ?? []) {
      const left = (waiting[edge.to] ?? 0) - 1;
      waiting[edge.to] = left;
      if (left === 0) ready.push(edge.to);
    }
  }
  return ready;
}

/** Every step left over waits for another one that is left over: walking back along one edge each must meet a cycle. */
function walkBack(left: ReadonlySet<number>, into: ReadonlyMap<number, Edge>): Edge[][] {
  const walkOf = new Map<number, number>();
  const cycles: Edge[][] = [];
  for (const start of left) {
    const way: Edge[] = [];
    let step = start;
    while (!walkOf.has(step)) {
      walkOf.set(step, start);
      const edge = into.get(step);
      if (!edge) break;
      way.push(edge);
      step = edge.from;
    }
    const first = way.findIndex((edge) => edge.to === step);
    if (walkOf.get(step) === start && first >= 0) cycles.push(way.slice(first));
  }
  return cycles;
}

function outgoing(steps: number, edges: readonly Edge[]): Edge[][] {
  const out: Edge[][] = Array.from({ length: steps }, () => []);
  for (const edge of edges) out[edge.from]?.push(edge);
  return out;
}
