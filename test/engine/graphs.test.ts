import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { plan } from "./plan-builder.ts";
import type { StepSpec } from "./plan-builder.ts";
import { finish, run, start } from "./running.ts";
import type { Does, Running } from "./running.ts";

const samples = join("..", "shared", "samples", "dags");
const there = existsSync(samples);
if (!there) console.log(`skipped: the real graphs are not at ${samples}`);

/** One step of a real graph: the steps before it by index, and how long it takes in seconds. */
interface Timed {
  readonly parents: readonly number[];
  readonly seconds: number;
}

describe.skipIf(!there)("on a real graph the steps end as soon as list scheduling lets them", () => {
  for (const file of there ? readdirSync(samples).filter((name) => name.endsWith(".json")) : []) {
    it(file, { timeout: 120_000 }, async () => {
      const graph = readGraph(join(samples, file));
      const work = graph.reduce((sum, { seconds }) => sum + seconds, 0);
      const longest = criticalPath(graph);
      for (const slots of [1, 2, 3, 4, 8, 16, graph.length]) {
        const makespan = await simulate(graph, slots);
        expect(makespan, `${slots} slots`).toBe(listSchedule(graph, slots));
        const best = Math.max(longest, work / slots);
        expect(makespan).toBeLessThanOrEqual((2 - 1 / slots) * best * (1 + 1e-9));
        expect(makespan).toBeGreaterThanOrEqual(best * (1 - 1e-9));
        if (slots >= graph.length) expect(makespan).toBe(longest);
      }
    });
  }
});

describe("a large run", () => {
  it("of 10,000 steps in a chain, each reading the one before, ends", { timeout: 60_000 }, async () => {
    const steps: StepSpec[] = Array.from({ length: 10_000 }, (_, index) =>
      index === 0
        ? { id: "s0", set: { n: 7 } }
        : { id: `s${index}`, needs: [`s${index - 1}`], set: { n: `\${{ steps.s${index - 1}.outputs.n }}` } },
    );
    const { result } = await run(plan({ steps, outputs: { n: "${{ steps.s9999.outputs.n }}" } }));
    expect(result.outputs).toEqual({ n: 7 });
  });

  it("of 10,000 steps that are all skipped because the first failed ends, with short reasons", async () => {
    const steps: StepSpec[] = Array.from({ length: 10_000 }, (_, index) => ({
      id: `s${index}`,
      ...(index === 0 ? { set: { v: "${{ fromJSON('x') }}" } } : { needs: [`s${index - 1}`] }),
    }));
    const { result, events } = await run(plan({ steps }));
    expect(result.failures.length).toBe(1);
    expect(JSON.stringify(events.at(-1)).length).toBeLessThan(500);
  });

  it("of 100,000 steps ends, and a timer gets through meanwhile", { timeout: 60_000 }, async () => {
    const steps: StepSpec[] = Array.from({ length: 100_000 }, (_, index) => ({
      id: `s${index}`,
      needs: index % 2 === 0 ? [] : [`s${index - 1}`],
    }));
    const running = start(plan({ steps }));
    let during = 0;
    const timer = setInterval(() => during++, 1);
    const result = await running.ended;
    clearInterval(timer);
    expect(result.outcome).toBe("success");
    expect(running.events.length).toBe(200_000);
    expect(during).toBeGreaterThan(5);
  });
});

function readGraph(path: string): Timed[] {
  const { tasks } = JSON.parse(readFileSync(path, "utf8")) as { tasks: [string, number[], number][] };
  return tasks.map(([, parents, seconds]) => ({ parents, seconds }));
}

/** Runs the graph by the engine on a clock that jumps from end to end; gives the time at the end. */
async function simulate(graph: readonly Timed[], slots: number): Promise<number> {
  const steps: StepSpec[] = graph.map(({ parents }, index) => ({
    id: `s${index}`,
    needs: parents.map((parent) => `s${parent}`),
  }));
  const does: Does = async ({ step, inputs }) => {
    await Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    running.clock.after(graph[Number(step.id.slice(1))]?.seconds ?? 0, resolve);
    await promise;
    return { outcome: "success", result: inputs, outputs: inputs };
  };
  const running: Running = start(plan({ steps }), { parallel: slots, otherwise: does });
  const result = await finish(running);
  expect(result.outcome).toBe("success");
  return running.clock.monotonic();
}

/** The reference: who becomes ready first starts first; at one moment, who is written first. */
function listSchedule(graph: readonly Timed[], slots: number): number {
  const waiting = graph.map(({ parents }) => parents.length);
  const line = graph.flatMap((_, step) => (waiting[step] === 0 ? [step] : []));
  const runs: { readonly step: number; readonly end: number }[] = [];
  let now = 0;
  for (;;) {
    while (runs.length < slots && line.length > 0) {
      const step = line.shift() ?? 0;
      runs.push({ step, end: now + (graph[step]?.seconds ?? 0) });
    }
    const [first] = runs;
    if (first === undefined) return now;
    // Of several that end at one moment, the one that started first.
    const next = runs.reduce((best, other) => (other.end < best.end ? other : best), first);
    runs.splice(runs.indexOf(next), 1);
    now = next.end;
    for (const [step, { parents }] of graph.entries()) {
      if (!parents.includes(next.step)) continue;
      waiting[step] = (waiting[step] ?? 0) - 1;
      if (waiting[step] === 0) line.push(step);
    }
  }
}

/** In the order of the list, which may name a parent before or after its child. */
function criticalPath(graph: readonly Timed[]): number {
  const ends = new Map<number, number>();
  while (ends.size < graph.length) {
    for (const [step, { parents, seconds }] of graph.entries()) {
      if (ends.has(step) || !parents.every((parent) => ends.has(parent))) continue;
      ends.set(step, Math.max(0, ...parents.map((parent) => ends.get(parent) ?? 0)) + seconds);
    }
  }
  return Math.max(...ends.values());
}
