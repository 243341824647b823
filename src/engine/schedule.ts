import type { StepOutcome } from "../model/outcome.ts";

export interface Graph {
  /** How many; a step is its index in declaration order. */
  readonly steps: number;
  readonly edges: readonly { readonly from: number; readonly to: number; readonly hard: boolean }[];
  /** Whether one open hard edge is enough for a step (`join: any`). */
  readonly joinAny: (step: number) => boolean;
}

/**
 * Which steps of one scope may be decided, and what a condition may ask about the steps before them. No clock, no
 * promise, no expression: the same calls in the same order give the same answers. All of it is flat lists of integers,
 * so that a whole run costs one visit per step and per edge whatever the shape of the graph.
 */
export class Schedule {
  readonly #graph: Graph;
  readonly #from: Int32Array;
  readonly #to: Int32Array;
  readonly #outgoing: Adjacency;
  readonly #incoming: Adjacency;
  /** Per step: how many of its sources have not settled. */
  readonly #waiting: Int32Array;
  /** Per step: an index into {@link conclusions}; 0 while it has not settled. */
  readonly #conclusion: Uint8Array;
  readonly #failureAbove: Uint8Array;
  #remaining: number;

  /** Throws on an edge out of range and on a cycle: a plan with either is a bug of the compiler. */
  constructor(graph: Graph) {
    const { steps, edges } = graph;
    this.#graph = graph;
    this.#from = new Int32Array(edges.length);
    this.#to = new Int32Array(edges.length);
    edges.forEach(({ from, to }, edge) => {
      this.#from[edge] = inRange(from, steps);
      this.#to[edge] = inRange(to, steps);
    });
    this.#incoming = adjacency(steps, this.#to);
    // Sorted by target before it is sorted by source: the targets of a step come out in declaration order.
    this.#outgoing = adjacency(steps, this.#from, this.#incoming.edges);
    this.#waiting = new Int32Array(steps);
    for (let step = 0; step < steps; step++)
      this.#waiting[step] = at(this.#incoming.starts, step + 1) - at(this.#incoming.starts, step);
    this.#conclusion = new Uint8Array(steps);
    this.#failureAbove = new Uint8Array(steps);
    this.#remaining = steps;
    this.#refuseCycles();
  }

  /** The steps that wait for nothing, in declaration order. */
  initial(): number[] {
    const steps: number[] = [];
    this.#waiting.forEach((sources, step) => {
      if (sources === 0) steps.push(step);
    });
    return steps;
  }

  /** Records how a step concluded; gives the steps whose sources have all settled by that, in declaration order. */
  settle(step: number, conclusion: StepOutcome): number[] {
    const open = at(this.#waiting, step) === 0 && at(this.#conclusion, step) === 0;
    if (!open) throw new Error(`step ${step} cannot settle now`);
    this.#conclusion[step] = conclusions.indexOf(conclusion);
    this.#remaining -= 1;
    if (conclusion === "failure" || this.failureAbove(step))
      for (const target of this.#targets(step)) this.#failureAbove[target] = 1;
    return this.#release(step, this.#waiting);
  }

  get finished(): boolean {
    return this.#remaining === 0;
  }

  /** Undefined while the step has not settled. */
  conclusion(step: number): StepOutcome | undefined {
    return conclusions[at(this.#conclusion, step)];
  }

  /** `failure()`: some ancestor over any edge, hard or soft, concluded `failure`. */
  failureAbove(step: number): boolean {
    return at(this.#failureAbove, step) === 1;
  }

  /**
   * The hard edge that keeps `success()` of a step from holding, as an index into the edges; undefined if none does.
   * `holds` tells whether an edge's own condition holds; it is asked only where the source succeeded. Of several
   * closed edges it is the first one written.
   */
  closedEdge(step: number, holds: (edge: number) => boolean): number | undefined {
    const any = this.#graph.joinAny(step);
    let closed: number | undefined;
    const { starts, edges } = this.#incoming;
    for (let place = at(starts, step); place < at(starts, step + 1); place++) {
      const edge = at(edges, place);
      if (this.#graph.edges[edge]?.hard !== true) continue;
      const open = this.conclusion(at(this.#from, edge)) === "success" && holds(edge);
      if (open && any) return undefined;
      if (!open && !any) return edge;
      if (!open) closed ??= edge;
    }
    return closed;
  }

  /**
   * Whether a step that stands still only because of `waiting` ones may run once they have settled. `decides` tells
   * whether a step's own condition says what its sources' ends mean, so that any of them may let it run.
   */
  mayRelease(waiting: ReadonlyMap<number, unknown>, decides: (step: number) => boolean): boolean {
    const left = this.#waiting.slice();
    const mayRun = new Set<number>();
    const order: number[] = [];
    for (let step = 0; step < this.#graph.steps; step++) {
      if (at(this.#waiting, step) > 0 || this.conclusion(step) !== undefined) continue;
      if (waiting.has(step)) mayRun.add(step);
      order.push(step);
    }
    // A list that grows while it is walked: what comes after a step, once all its sources have been looked at.
    for (const step of order) {
      for (const next of this.#release(step, left)) {
        if (decides(next) || this.#mayOpen(next, mayRun)) return true;
        order.push(next);
      }
    }
    return false;
  }

  #mayOpen(step: number, mayRun: ReadonlySet<number>): boolean {
    const { starts, edges } = this.#incoming;
    const hard = [...edges.subarray(at(starts, step), at(starts, step + 1))].filter(
      (edge) => this.#graph.edges[edge]?.hard === true,
    );
    const opens = (edge: number): boolean => {
      const from = at(this.#from, edge);
      return mayRun.has(from) || this.conclusion(from) === "success";
    };
    return this.#graph.joinAny(step) ? hard.length === 0 || hard.some(opens) : hard.every(opens);
  }

  #targets(step: number): number[] {
    const { starts, edges } = this.#outgoing;
    const targets: number[] = [];
    for (let place = at(starts, step); place < at(starts, step + 1); place++)
      targets.push(at(this.#to, at(edges, place)));
    return targets;
  }

  /** Takes one source from each target of a step; gives those that have none left. */
  #release(step: number, waiting: Int32Array): number[] {
    return this.#targets(step).filter((target) => {
      const left = at(waiting, target) - 1;
      waiting[target] = left;
      return left === 0;
    });
  }

  #refuseCycles(): void {
    const waiting = this.#waiting.slice();
    const order = this.initial();
    // A list that grows while it is walked.
    for (const step of order) for (const next of this.#release(step, waiting)) order.push(next);
    if (order.length < this.#graph.steps) throw new Error("the edges of a scope form a cycle");
  }
}

const conclusions: readonly (StepOutcome | undefined)[] = [undefined, "success", "failure", "skipped", "cancelled"];

/** The edges of step i are `edges[starts[i] .. starts[i + 1]]`. */
interface Adjacency {
  readonly starts: Int32Array;
  readonly edges: Int32Array;
}

/** Counting sort of the edges by `ends`, the step at one end of each; stable with respect to `order`. */
function adjacency(steps: number, ends: Int32Array, order?: Int32Array): Adjacency {
  const starts = new Int32Array(steps + 1);
  for (let edge = 0; edge < ends.length; edge++) {
    const after = at(ends, edge) + 1;
    starts[after] = at(starts, after) + 1;
  }
  for (let step = 0; step < steps; step++) starts[step + 1] = at(starts, step + 1) + at(starts, step);
  const next = starts.slice();
  const edges = new Int32Array(ends.length);
  for (let place = 0; place < edges.length; place++) {
    const edge = order === undefined ? place : at(order, place);
    const step = at(ends, edge);
    edges[at(next, step)] = edge;
    next[step] = at(next, step) + 1;
  }
  return { starts, edges };
}

function inRange(step: number, steps: number): number {
  if (step >= 0 && step < steps) return step;
  throw new Error(`an edge names step ${step} of ${steps}`);
}

/** Every index is in range by construction, which the type system cannot know. */
function at(list: Int32Array | Uint8Array, index: number): number {
  return list[index] ?? 0;
}
