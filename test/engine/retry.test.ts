import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { retryDelay } from "../../src/engine/retry.ts";
import type { StepEvent } from "../../src/model/event.ts";
import type { FailureKind } from "../../src/model/outcome.ts";
import type { Retry } from "../../src/model/plan.ts";
import { FakeClock } from "./fake-clock.ts";
import type { StepSpec } from "./plan-builder.ts";
import { at, plan, template } from "./plan-builder.ts";
import { brief, fail, finish, lasting, run, start, succeed } from "./running.ts";
import type { Does } from "./running.ts";

const retry = (more: Partial<Retry> = {}): Retry => ({
  max: 2,
  backoff: 100,
  factor: 2,
  jitter: false,
  cap: 60_000,
  on: ["exit"],
  ...more,
});

function failingWith(kind: FailureKind, times = Infinity): Does {
  let calls = 0;
  return (attempt) =>
    ++calls <= times ? { outcome: "failure", error: { kind, message: `no ${calls}` } } : succeed(attempt);
}

/** Attempts and pauses, in short. */
function tries(events: readonly StepEvent[]): string[] {
  return events.flatMap((event) => {
    if (event.type === "step.attempt.started") return [`${event.step} try ${event.attempt}`];
    if (event.type === "step.attempt.finished") return [`${event.step} ${event.outcome}`];
    return event.type === "step.retrying" ? [`${event.step} waits ${event.delay} for ${event.attempt}`] : [];
  });
}

describe("retry", () => {
  it("tries again until it succeeds, waiting longer each time", async () => {
    const clock = new FakeClock();
    const does = { a: failingWith("exit", 2) };
    const running = start(plan({ steps: [{ id: "a", retry: retry() }] }), { clock, does });
    expect((await finish(running)).outcome).toBe("success");
    expect(tries(running.events)).toEqual([
      "a try 1",
      "a failure",
      "a waits 100 for 2",
      "a try 2",
      "a failure",
      "a waits 200 for 3",
      "a try 3",
      "a success",
    ]);
    expect(clock.monotonic()).toBe(300);
    expect(clock.pending).toBe(0);
  });

  it("gives up after its extra tries, with the last failure", async () => {
    const { result, events } = await run(plan({ steps: [{ id: "a", retry: retry() }] }), {
      does: { a: failingWith("exit") },
    });
    expect(result.error).toEqual({ kind: "exit", message: "no 3", step: "a" });
    expect(brief(events)).toEqual(["a failure exit"]);
  });

  it("does nothing for a kind that is not in `on`, or with `max: 0`", async () => {
    for (const settings of [retry({ on: ["timeout"] }), retry({ max: 0 })]) {
      const { events } = await run(plan({ steps: [{ id: "a", retry: settings }] }), {
        does: { a: failingWith("exit", 1) },
      });
      expect(tries(events)).toEqual(["a try 1", "a failure"]);
    }
  });

  it("stops when another kind of failure comes", async () => {
    let calls = 0;
    const does: Does = () => ({ outcome: "failure", error: { kind: ++calls === 1 ? "exit" : "denied", message: "" } });
    const { result } = await run(plan({ steps: [{ id: "a", retry: retry({ max: 9 }) }] }), { does: { a: does } });
    expect(result.error?.kind).toBe("denied");
    expect(calls).toBe(2);
  });

  it("gives every attempt its own timeout, and the same inputs", async () => {
    const clock = new FakeClock();
    const seen: unknown[] = [];
    const does: Does = (attempt) => {
      seen.push(attempt.inputs);
      return lasting(clock, attempt.attempt === 1 ? 80 : 20)(attempt);
    };
    const step = { id: "a", timeout: 50, retry: retry({ on: ["timeout"] }), set: { v: "${{ vars.list }}" } };
    const running = start(plan({ vars: { list: [1] }, steps: [step] }), { clock, does: { a: does } });
    expect((await finish(running)).outcome).toBe("success");
    expect(clock.monotonic()).toBe(50 + 100 + 20);
    expect(seen[0]).toBe(seen[1]);
  });

  it("tries each item alone", async () => {
    const calls = new Map<string, number>();
    const does: Does = (attempt) => {
      calls.set(attempt.path, (calls.get(attempt.path) ?? 0) + 1);
      return attempt.path === "a[1]" && attempt.attempt === 1 ? fail(attempt) : succeed(attempt);
    };
    const step = { id: "a", retry: retry(), foreach: { items: template([0, 1, 2]), failFast: true, matrix: false } };
    const { result } = await run(plan({ steps: [step] }), { does: { a: does } });
    expect(result.outcome).toBe("success");
    expect([...calls.values()]).toEqual([1, 2, 1]);
  });

  it("of a group runs all of it again, and sees the kind of the failure inside", async () => {
    const group: StepSpec[] = [
      { id: "b", set: { n: 1 } },
      { id: "c", needs: ["b"] },
    ];
    const step = {
      id: "g",
      retry: retry({ on: ["rate_limit"] }),
      group,
      groupOutputs: { n: "${{ steps.b.outputs.n }}" },
    };
    const { result, events } = await run(plan({ steps: [step], outputs: { n: "${{ steps.g.outputs.n }}" } }), {
      does: { c: failingWith("rate_limit", 1) },
    });
    expect(result.outputs).toEqual({ n: 1 });
    expect(brief(events)).toEqual(["g/b success", "g/c failure rate_limit", "g/b success", "g/c success", "g success"]);
    expect(events.find(({ type }) => type === "step.retrying")).toMatchObject({
      error: { kind: "rate_limit", step: "g/c" },
    });
  });

  it("of a workflow does the same", async () => {
    const steps = [{ id: "s", calls: "sub", retry: retry() }];
    const { result, events } = await run(plan({ steps }, { sub: { steps: [{ id: "b" }] } }), {
      does: { b: failingWith("exit", 2) },
    });
    expect(result.outcome).toBe("success");
    expect(brief(events)).toEqual(["s/b failure exit", "s/b failure exit", "s/b success", "s success"]);
  });

  it("ends at once when the run is cancelled during a pause; nothing is started again", async () => {
    const running = start(plan({ steps: [{ id: "a", retry: retry({ backoff: 60_000 }) }] }), { does: { a: fail } });
    await running.idle();
    running.cancel();
    expect((await running.ended).outcome).toBe("cancelled");
    expect(tries(running.events)).toEqual(["a try 1", "a failure", "a waits 60000 for 2"]);
    expect(brief(running.events)).toEqual(["a cancelled"]);
    expect(running.clock.pending).toBe(0);
  });

  it("does not promise another try after a cancel", async () => {
    const clock = new FakeClock();
    const does: Does = ({ signal }) =>
      new Promise((resolve) => {
        signal.addEventListener("abort", () => resolve({ outcome: "failure", error: { kind: "exit", message: "" } }));
      });
    const running = start(plan({ steps: [{ id: "a", retry: retry() }] }), { clock, does: { a: does } });
    await running.idle();
    running.cancel();
    expect((await finish(running)).outcome).toBe("cancelled");
    expect(tries(running.events)).toEqual(["a try 1", "a failure"]);
  });

  it("is left out of a step whose inputs cannot be evaluated", async () => {
    const step = { id: "a", retry: retry({ on: ["expression"] }), set: { v: "${{ fromJSON('[') }}" } };
    const { result, events } = await run(plan({ steps: [step] }));
    expect(result.error).toMatchObject({ kind: "expression", position: at });
    expect(tries(events)).toEqual([]);
  });
});

describe("the delay before another try", () => {
  it("grows by the factor up to the cap", () => {
    const settings = retry({ backoff: 1000, factor: 3, cap: 10_000 });
    expect([1, 2, 3, 4, 5].map((attempt) => retryDelay(settings, attempt, 0))).toEqual([
      1000, 3000, 9000, 10_000, 10_000,
    ]);
  });

  it("with jitter lies between half and the whole of it, whatever the numbers", () => {
    const numbers = fc.record({
      backoff: fc.nat({ max: 1e6 }),
      factor: fc.double({ min: 1, max: 10, noNaN: true }),
      cap: fc.nat({ max: 1e6 }),
      attempt: fc.integer({ min: 1, max: 1000 }),
      random: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
    });
    fc.assert(
      fc.property(numbers, ({ attempt, random, ...settings }) => {
        const whole = retryDelay(retry(settings), attempt, 0);
        const delay = retryDelay(retry({ ...settings, jitter: true }), attempt, random);
        expect(whole).toBeLessThanOrEqual(settings.cap);
        expect(delay).toBeGreaterThanOrEqual(Math.floor(whole / 2));
        expect(delay).toBeLessThanOrEqual(whole);
      }),
    );
  });
});
