import { describe, expect, it } from "vitest";
import { exitCode } from "../../src/engine/exit-code.ts";
import type { FailureKind, RunOutcome } from "../../src/model/outcome.ts";
import { plan } from "./plan-builder.ts";
import type { StepSpec } from "./plan-builder.ts";
import { brief, fail, finish, lasting, start, succeed } from "./running.ts";
import type { Does, Given, Running } from "./running.ts";

/** Never ends, whatever it is told. */
const deaf: Does = () => new Promise(() => undefined);

/** A run whose steps may use its own clock. */
function startTimed(spec: Parameters<typeof plan>[0], given: (lasts: (ms: number) => Does) => Given): Running {
  // The first step starts inside `start`: what it does may only look at the clock a moment later.
  const lasts =
    (ms: number): Does =>
    async (attempt) => {
      await Promise.resolve();
      return lasting(running.clock, ms)(attempt);
    };
  const running = start(plan(spec), given(lasts));
  return running;
}

describe("a timeout", () => {
  it("ends the attempt, waits for its end and fails with what it kept", async () => {
    const order: string[] = [];
    const slow: Does = ({ signal }) =>
      new Promise((resolve) => {
        signal.addEventListener("abort", () => {
          order.push("told");
          setImmediate(() => {
            order.push("ended");
            resolve({ outcome: "cancelled", outputs: { stdout: "half" } });
          });
        });
      });
    const after: Does = (attempt) => {
      order.push("next");
      return succeed(attempt);
    };
    const steps = [
      { id: "a", timeout: 10_000 },
      { id: "b", needs: ["~a"] },
    ];
    const running = start(plan({ steps }), { does: { a: slow, b: after }, retriable: true });
    const result = await finish(running);
    expect(order).toEqual(["told", "ended", "next"]);
    expect(result.error).toEqual({ kind: "timeout", message: "it did not end within its timeout of 10 s", step: "a" });
    expect(running.events.filter(({ step, type }) => step === "a" && type.endsWith("finished"))).toMatchObject([
      { type: "step.attempt.finished", outcome: "failure", error: { kind: "timeout" }, duration: 10_000 },
      { type: "step.finished", outputs: { stdout: "half" }, duration: 10_000 },
    ]);
    expect(running.clock.pending).toBe(0);
  });

  it("does nothing to a step that ends in time", async () => {
    const running = startTimed({ steps: [{ id: "a", timeout: 10_000 }] }, (lasts) => ({ does: { a: lasts(9_999) } }));
    expect((await finish(running)).outcome).toBe("success");
    expect(running.clock.monotonic()).toBe(9_999);
    expect(running.clock.pending).toBe(0);
  });

  it("may come from an input, and must be a duration", async () => {
    const spec = (written: string): Parameters<typeof plan>[0] => ({
      vars: { long: written },
      steps: [{ id: "a", timeout: "${{ vars.long }}" }],
    });
    const running = start(plan(spec("1m30s")), { does: { a: deaf } });
    expect((await finish(running)).error?.kind).toBe("timeout");
    const wrong = await finish(start(plan(spec("soon"))));
    expect(wrong.error).toMatchObject({ kind: "input", message: expect.stringContaining('"soon"') });
  });

  it("leaves a kind behind that does not listen for 5 s", async () => {
    const running = start(
      plan({
        steps: [
          { id: "a", timeout: 1000 },
          { id: "b", needs: ["~a"] },
        ],
      }),
      { does: { a: deaf } },
    );
    const result = await finish(running);
    expect(running.clock.monotonic()).toBe(9000);
    expect(brief(running.events)).toEqual(["a failure timeout", "b success"]);
    expect(result.error?.message).toContain("left behind");
  });

  it("of a group cancels what runs in it, lets its `always()` steps run, and fails it", async () => {
    const group = [{ id: "x" }, { id: "y", needs: ["x"] }, { id: "z", needs: ["x"], if: "always()" }];
    const steps = [
      { id: "g", timeout: 1000, group },
      { id: "b", needs: ["~g"] },
    ];
    const running = startTimed({ steps }, (lasts) => ({ does: { x: lasts(5000), z: lasts(8000) } }));
    await finish(running);
    expect(brief(running.events)).toEqual([
      "g/x cancelled",
      "g/y skipped cancelled",
      "g/z success",
      "g failure timeout",
      "b success",
    ]);
    expect(running.clock.monotonic()).toBe(9000);
  });
});

describe("a cancel", () => {
  const steps: StepSpec[] = [
    { id: "a" },
    { id: "done" },
    { id: "b", needs: ["a"] },
    { id: "waits" },
    { id: "plain", needs: ["~a"], if: "true" },
    { id: "always", needs: ["a"], if: "always()" },
    { id: "undo", needs: ["done", "~a"], if: "cancelled()" },
    { id: "either", needs: ["done", "~a"], if: "success() || cancelled()" },
    { id: "sure", needs: ["done", "~a"], if: "success()" },
    { id: "failed", needs: ["~a"], if: "failure()" },
  ];

  it("ends what runs and skips the rest but what asks to run", async () => {
    const running = startTimed({ steps }, (lasts) => ({ parallel: 2, does: { a: lasts(1000), waits: lasts(500) } }));
    await running.idle();
    running.cancel();
    const result = await finish(running);
    expect(result).toEqual({ outcome: "cancelled", outputs: {}, failures: [] });
    expect(brief(running.events).toSorted()).toEqual([
      "a cancelled",
      "always success",
      "b skipped cancelled",
      "done success",
      "either success",
      "failed skipped cancelled",
      "plain skipped cancelled",
      "sure skipped cancelled",
      "undo success",
      "waits cancelled",
    ]);
    expect(running.clock.monotonic()).toBe(0);
    expect(running.clock.pending).toBe(0);
  });

  it("skips what stands in line for a slot, also thousands of steps", async () => {
    const wide = Array.from({ length: 3000 }, (_, index) => ({ id: `s${index}` }));
    const running = startTimed({ steps: wide }, (lasts) => ({ parallel: 1, otherwise: lasts(1000) }));
    await running.idle();
    running.cancel();
    await finish(running);
    const lines = brief(running.events);
    expect([lines[0], lines[1], lines.length]).toEqual(["s0 cancelled", "s1 skipped cancelled", 3000]);
  });

  it("gives what runs after it 30 s", async () => {
    const cleanup = [
      { id: "a" },
      { id: "c", needs: ["a"], if: "always()" },
      { id: "d", needs: ["c"], if: "always()" },
      { id: "g", needs: ["a"], if: "always()", group: [{ id: "x" }, { id: "y", needs: ["x"], if: "always()" }] },
    ];
    const running = startTimed({ steps: cleanup }, (lasts) => ({
      does: { a: lasts(1000), c: lasts(60_000), x: lasts(60_000) },
    }));
    await running.idle();
    running.cancel();
    await finish(running);
    expect(brief(running.events).toSorted()).toEqual([
      "a cancelled",
      "c cancelled",
      "d skipped cancelled",
      "g cancelled",
      "g/x cancelled",
      "g/y skipped cancelled",
    ]);
    expect(running.clock.monotonic()).toBe(30_000);
    expect(running.clock.pending).toBe(0);
  });

  it("does not wait for what does not listen longer than 5 s, and a kill does not wait at all", async () => {
    for (const kill of [false, true]) {
      const running = start(plan({ steps: [{ id: "a" }, { id: "b", needs: ["a"], if: "always()" }] }), {
        does: { a: deaf },
      });
      await running.idle();
      if (kill) running.kill();
      else running.cancel();
      const result = await finish(running);
      expect(result.outcome).toBe("cancelled");
      expect(running.clock.monotonic()).toBe(kill ? 0 : 8000);
      expect(brief(running.events)).toEqual(["a cancelled", kill ? "b skipped cancelled" : "b success"]);
      expect(running.clock.pending).toBe(0);
    }
  });

  it("is not taken for a timeout that would have come while it waits", async () => {
    const running = startTimed({ steps: [{ id: "a", timeout: 10_000 }, { id: "b" }] }, (lasts) => ({
      does: { a: deaf, b: lasts(8000) },
    }));
    await running.idle();
    running.clock.fireNext();
    running.cancel();
    expect((await finish(running)).outcome).toBe("cancelled");
    expect(running.clock.monotonic()).toBe(16_000);
    expect(brief(running.events)).toEqual(["b success", "a cancelled"]);
  });

  it("is followed by a kill: the cleanup ends at once", async () => {
    const running = startTimed({ steps: [{ id: "a" }, { id: "c", needs: ["a"], if: "always()" }] }, (lasts) => ({
      does: { a: lasts(10), c: lasts(1000) },
    }));
    await running.idle();
    running.cancel();
    await running.idle();
    running.kill();
    expect((await finish(running)).outcome).toBe("cancelled");
    expect(brief(running.events)).toEqual(["a cancelled", "c cancelled"]);
    expect(running.clock.monotonic()).toBe(0);
  });

  it("that came while a step failed is still a cancel", async () => {
    const running = startTimed({ steps: [{ id: "a" }, { id: "b" }] }, (lasts) => ({ does: { a: fail, b: lasts(10) } }));
    await running.idle();
    running.cancel();
    const result = await finish(running);
    expect(result).toMatchObject({ outcome: "cancelled", outputs: {}, failures: [{ kind: "exit", step: "a" }] });
    expect("error" in result).toBe(false);
    expect(exitCode(result)).toBe(130);
  });

  it("before the start runs only what asks for it", async () => {
    const steps = [{ id: "a" }, { id: "b", needs: ["a"] }, { id: "c", needs: ["a"], if: "always()" }];
    const running = start(plan({ steps }), { cancelled: true });
    expect((await finish(running)).outcome).toBe("cancelled");
    expect(brief(running.events)).toEqual(["a skipped cancelled", "b skipped cancelled", "c success"]);
  });
});

describe("the limit on the duration", () => {
  it("cancels what runs and fails the run with kind `budget`", async () => {
    const steps = [{ id: "a" }, { id: "b", needs: ["a"] }, { id: "c", needs: ["a"], if: "always()" }];
    const running = startTimed({ steps, limits: { duration: 2000 } }, (lasts) => ({ does: { a: lasts(5000) } }));
    const result = await finish(running);
    expect(brief(running.events)).toEqual(["a cancelled", "b skipped cancelled", "c success"]);
    expect(result).toMatchObject({ outcome: "failure", error: { kind: "budget" } });
    expect(exitCode(result)).toBe(4);
    expect(running.clock.pending).toBe(0);
  });

  it("comes before what had failed by then", async () => {
    const steps = [{ id: "a" }, { id: "b" }];
    const given = { does: { a: deaf, b: fail } };
    const result = await finish(start(plan({ steps, limits: { duration: 2000 } }), given));
    expect(result.failures.map(({ kind, step }) => [kind, step])).toEqual([
      ["budget", undefined],
      ["exit", "b"],
    ]);
  });

  it("leaves no timer behind when the run is faster", async () => {
    const running = start(plan({ steps: [{ id: "a" }], limits: { duration: 2000 } }));
    expect((await finish(running)).outcome).toBe("success");
    expect(running.clock.pending).toBe(0);
  });
});

describe("the exit code", () => {
  const rows: readonly (readonly [RunOutcome, readonly FailureKind[], number])[] = [
    ["success", [], 0],
    ["empty", [], 1],
    ["waiting", [], 5],
    ["cancelled", ["internal"], 130],
    ["failure", ["exit", "timeout", "rejected", "expect", "output", "lost"], 1],
    ["failure", ["exit", "budget"], 4],
    ["failure", ["max_turns"], 4],
    ["failure", ["budget", "denied", "exit"], 6],
    ["failure", ["denied", "rate_limit"], 3],
    ["failure", ["provider_error"], 3],
    ["failure", ["unavailable", "budget"], 3],
    ["failure", ["log"], 3],
    ["failure", ["log", "internal", "denied"], 70],
  ];
  for (const [outcome, kinds, code] of rows) {
    it(`of ${outcome} with ${kinds.join(", ") || "nothing failed"} is ${code}`, () => {
      expect(exitCode({ outcome, failures: kinds.map((kind) => ({ kind, message: "" })) })).toBe(code);
    });
  }

  it("tells an interrupt from a termination", () => {
    expect(exitCode({ outcome: "cancelled", failures: [], signal: "SIGINT" })).toBe(130);
    expect(exitCode({ outcome: "cancelled", failures: [], signal: "SIGTERM" })).toBe(143);
  });
});
