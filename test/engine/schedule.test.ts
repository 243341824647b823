import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Schedule } from "../../src/engine/schedule.ts";
import type { Graph } from "../../src/engine/schedule.ts";
import { Slots } from "../../src/engine/slots.ts";
import type { StepOutcome } from "../../src/model/outcome.ts";

const all = (): boolean => false;
const hard = (from: number, to: number): Graph["edges"][number] => ({ from, to, hard: true });
const soft = (from: number, to: number): Graph["edges"][number] => ({ from, to, hard: false });
const holds = (): boolean => true;

describe("a schedule", () => {
  it("begins with the steps that wait for nothing, as they are written", () => {
    const schedule = new Schedule({ steps: 4, edges: [hard(3, 1)], joinAny: all });
    expect(schedule.initial()).toEqual([0, 2, 3]);
  });

  it("gives a step once its last source has settled, several in declaration order", () => {
    const edges = [hard(0, 4), hard(0, 3), soft(1, 3), hard(0, 2)];
    const schedule = new Schedule({ steps: 5, edges, joinAny: all });
    expect(schedule.settle(0, "success")).toEqual([2, 4]);
    expect(schedule.settle(1, "failure")).toEqual([3]);
    expect(schedule.finished).toBe(false);
    for (const step of [2, 3, 4]) schedule.settle(step, "skipped");
    expect(schedule.finished).toBe(true);
  });

  it("counts two edges between one pair as two and gives the step once", () => {
    const schedule = new Schedule({ steps: 2, edges: [hard(0, 1), soft(0, 1)], joinAny: all });
    expect(schedule.settle(0, "success")).toEqual([1]);
  });

  it("names the first closed edge, and for `join: any` only if none is open", () => {
    const edges = [soft(0, 3), hard(1, 3), hard(2, 3)];
    const every = new Schedule({ steps: 4, edges, joinAny: all });
    const any = new Schedule({ steps: 4, edges, joinAny: () => true });
    for (const schedule of [every, any]) {
      schedule.settle(0, "failure");
      schedule.settle(1, "success");
      schedule.settle(2, "skipped");
    }
    expect(every.closedEdge(3, holds)).toBe(2);
    expect(every.closedEdge(3, () => false)).toBe(1);
    expect(any.closedEdge(3, holds)).toBeUndefined();
    expect(any.closedEdge(3, () => false)).toBe(1);
  });

  it("asks for an edge's condition only where its source succeeded", () => {
    const asked: number[] = [];
    const schedule = new Schedule({ steps: 3, edges: [hard(0, 2), hard(1, 2)], joinAny: () => true });
    schedule.settle(0, "cancelled");
    schedule.settle(1, "success");
    schedule.closedEdge(2, (edge) => asked.push(edge) < 0);
    expect(asked).toEqual([1]);
  });

  it("refuses what only a wrong compiler or engine could ask", () => {
    expect(() => new Schedule({ steps: 2, edges: [hard(0, 1), hard(1, 0)], joinAny: all })).toThrow("cycle");
    expect(() => new Schedule({ steps: 1, edges: [hard(0, 0)], joinAny: all })).toThrow("cycle");
    expect(() => new Schedule({ steps: 1, edges: [hard(0, 1)], joinAny: all })).toThrow("names step 1 of 1");
    const schedule = new Schedule({ steps: 2, edges: [hard(0, 1)], joinAny: all });
    expect(() => schedule.settle(1, "success")).toThrow("cannot settle");
    schedule.settle(0, "success");
    expect(() => schedule.settle(0, "success")).toThrow("cannot settle");
  });

  it("agrees with a slow reference on random graphs", () => {
    fc.assert(
      fc.property(randomRun, ({ graph, picks, outcomes }) => compare(graph, picks, outcomes)),
      { numRuns: 300 },
    );
  });

  it("settles a chain of 100,000 steps and 100,000 edges on 10,000 steps", { timeout: 20_000 }, () => {
    const chain = Array.from({ length: 99_999 }, (_, from) => hard(from, from + 1));
    expect(settleAll({ steps: 100_000, edges: chain, joinAny: all })).toBe(100_000);
    const dense = Array.from({ length: 100_000 }, (_, edge) => {
      const to = 1 + (edge % 9999);
      return soft((edge * 7919) % to, to);
    });
    expect(settleAll({ steps: 10_000, edges: dense, joinAny: all })).toBe(10_000);
  });
});

describe("slots", () => {
  it("are given in the order of asking, never more than there are", () => {
    const asked = fc.array(fc.boolean(), { maxLength: 60 });
    const property = fc.property(fc.integer({ min: 1, max: 5 }), asked, (count, moves) => {
      const slots = new Slots<{ readonly entry: number }>(count);
      let [offered, taken, released] = [0, 0, 0];
      for (const offer of moves) {
        const free = count - (taken - released);
        if (offer) {
          expect(slots.offer({ entry: offered++ })).toBe(offered - taken > free);
        } else {
          const next = slots.take();
          if (free === 0 || offered === taken) {
            expect(next).toBeUndefined();
            if (taken > released) {
              slots.release();
              released++;
            }
          } else {
            expect(next?.entry).toBe(taken++);
          }
        }
      }
    });
    fc.assert(property);
  });

  it("are at least one", () => {
    expect(() => new Slots(0)).toThrow("at least one");
  });
});

function settleAll(graph: Graph): number {
  const schedule = new Schedule(graph);
  const ready = schedule.initial();
  let settled = 0;
  for (let next = ready.pop(); next !== undefined; next = ready.pop()) {
    ready.push(...schedule.settle(next, "success"));
    settled++;
  }
  return settled;
}

const outcome = fc.constantFrom<StepOutcome>("success", "failure", "skipped", "cancelled");

/** A random order of the steps makes every edge point forward in it: no cycles, but ids in any order. */
const randomRun = fc.integer({ min: 1, max: 12 }).chain((steps) =>
  fc.record({
    graph: fc.record({
      order: fc.shuffledSubarray(
        Array.from({ length: steps }, (_, step) => step),
        { minLength: steps },
      ),
      pairs: fc.array(fc.tuple(fc.nat(steps - 1), fc.nat(steps - 1), fc.boolean(), fc.boolean()), { maxLength: 40 }),
      any: fc.array(fc.boolean(), { minLength: steps, maxLength: steps }),
    }),
    picks: fc.array(fc.nat(100), { minLength: steps, maxLength: steps }),
    outcomes: fc.array(outcome, { minLength: steps, maxLength: steps }),
  }),
);

interface RandomGraph {
  readonly order: readonly number[];
  /** Two places in the order, whether the edge is hard, whether its condition holds. */
  readonly pairs: readonly (readonly [number, number, boolean, boolean])[];
  readonly any: readonly boolean[];
}

function compare(random: RandomGraph, picks: readonly number[], outcomes: readonly StepOutcome[]): void {
  const edges = random.pairs
    .filter(([a, b]) => a !== b)
    .map(([a, b, isHard, open]) => {
      const [from = 0, to = 0] = [random.order[Math.min(a, b)], random.order[Math.max(a, b)]];
      return { from, to, hard: isHard, open };
    });
  const steps = random.order.length;
  const schedule = new Schedule({ steps, edges, joinAny: (step) => random.any[step] === true });
  const settled = new Map<number, StepOutcome>();
  const waiting = (step: number): boolean => edges.some(({ from, to }) => to === step && !settled.has(from));
  const known = new Set(schedule.initial());
  expect([...known]).toEqual(Array.from({ length: steps }, (_, step) => step).filter((step) => !waiting(step)));
  for (const pick of picks) {
    const open = [...known].filter((step) => !settled.has(step));
    const step = open[pick % open.length] ?? -1;
    const sources = edges.filter(({ to, hard: isHard }) => to === step && isHard);
    const isOpen = (edge: (typeof edges)[number]): boolean => settled.get(edge.from) === "success" && edge.open;
    const success = sources.length === 0 || (random.any[step] ? sources.some(isOpen) : sources.every(isOpen));
    expect(schedule.closedEdge(step, (edge) => edges[edge]?.open === true) === undefined).toBe(success);
    expect(schedule.failureAbove(step)).toBe(ancestors(step, edges).some((above) => settled.get(above) === "failure"));
    const conclusion = outcomes[step] ?? "success";
    settled.set(step, conclusion);
    const now = Array.from({ length: steps }, (_, other) => other).filter(
      (other) => !waiting(other) && !known.has(other),
    );
    expect(schedule.settle(step, conclusion)).toEqual(now);
    for (const next of now) known.add(next);
    expect(schedule.conclusion(step)).toBe(conclusion);
    expect(schedule.finished).toBe(settled.size === steps);
  }
}

function ancestors(step: number, edges: readonly { readonly from: number; readonly to: number }[]): number[] {
  const direct = edges.filter(({ to }) => to === step).map(({ from }) => from);
  return direct.flatMap((from) => [from, ...ancestors(from, edges)]);
}
