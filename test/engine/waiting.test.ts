import { describe, expect, test } from "vitest";
import type { StepResult } from "../../src/model/outcome.ts";
import type { Foreach } from "../../src/model/plan.ts";
import { FakeClock } from "./fake-clock.ts";
import { plan } from "./plan-builder.ts";
import { brief, type Does, fail, finish, lasting, run, start, succeed } from "./running.ts";

/** Waits for an answer that cannot come while the run goes on. */
const ask: Does = async ({ wait }) => {
  await wait?.(new Promise(() => undefined), false);
  return { outcome: "cancelled" };
};

/** Waits for answers that a test gives, by path. */
class Desk {
  readonly asked: string[] = [];
  readonly #answers = new Map<string, (text: string) => void>();

  readonly ask: Does = async ({ path, wait, signal }): Promise<StepResult> => {
    this.asked.push(path);
    const { promise, resolve } = Promise.withResolvers<string>();
    this.#answers.set(path, resolve);
    signal.addEventListener("abort", () => resolve("cancelled"));
    const answer = await wait?.(promise, true);
    if (answer === undefined || answer === "cancelled") return { outcome: "cancelled" };
    if (answer === "no") return { outcome: "failure", error: { kind: "rejected", message: "no" } };
    return { outcome: "success", result: { answer }, outputs: { answer } };
  };

  answer(path: string, text = "yes"): void {
    this.#answers.get(path)?.(text);
  }
}

describe("a wait for an answer that will not come while the run goes on", () => {
  test("ends the run as waiting once all else has ended, and leaves what is around it open", async () => {
    const given = plan({
      steps: [
        { id: "made", undo: undoBy("made") },
        { id: "gate", group: [{ id: "ok" }, { id: "inside", needs: ["ok"] }, { id: "beside" }] },
        { id: "after", needs: ["gate"] },
        { id: "slow" },
      ],
    });
    const clock = new FakeClock();
    const { result, events } = await run(given, { clock, does: { ok: ask, slow: lasting(clock, 60_000) } });
    expect(result).toEqual({ outcome: "waiting", outputs: {}, failures: [] });
    expect(brief(events)).toEqual(["made success", "gate/beside success", "slow success"]);
    expect(events.filter(({ type }) => type === "step.undo.started")).toEqual([]);
    expect(clock.pending).toBe(0);
  });

  test("holds no slot of the run, of a group or of a loop", async () => {
    const given = plan({
      steps: [
        { id: "ask" },
        {
          id: "each",
          foreach: { items: { type: "data", json: [1, 2, 3, 4, 5] }, parallel: 1, failFast: true, matrix: false },
          limits: { parallel: 1 },
          group: [{ id: "ok" }, { id: "deploy", needs: ["ok"] }, { id: "beside" }],
        },
        { id: "last", needs: [] },
      ],
    });
    const { result, events } = await run(given, { parallel: 1, does: { ask, ok: ask } });
    expect(result.outcome).toBe("waiting");
    expect(brief(events)).toEqual(["last success", ...[0, 1, 2, 3, 4].map((item) => `each[${item}]/beside success`)]);
  });

  test("also where the step itself is the loop", async () => {
    const each: Foreach = { items: { type: "data", json: [1, 2, 3] }, parallel: 1, failFast: true, matrix: false };
    const given = plan({ steps: [{ id: "ok", foreach: each }, { id: "other" }] });
    const { result, events } = await run(given, { parallel: 1, does: { ok: ask } });
    expect(result.outcome).toBe("waiting");
    const begun = events.flatMap((event) => (event.type === "step.started" ? [event.step] : []));
    expect(begun).toEqual(["ok", "other", "ok[0]", "ok[1]", "ok[2]"]);
  });

  test("inside a repeat and a sub-workflow keeps both open", async () => {
    const until = { source: "result.answer == 'yes'", at: { file: "t", line: 1, column: 1, endLine: 1, endColumn: 1 } };
    const given = plan(
      {
        steps: [
          { id: "loop", repeat: { until, max: 3, onMax: "fail" } },
          { id: "sub", kind: "workflow", calls: "sub" },
        ],
      },
      { sub: { steps: [{ id: "ok" }] } },
    );
    const { result, events } = await run(given, { does: { loop: ask, ok: ask } });
    expect(result.outcome).toBe("waiting");
    expect(brief(events)).toEqual([]);
  });

  test.each([
    ["a step after it may still run", "waiting", [{ id: "after", needs: ["ok"] }]],
    ["a step after it needs what failed, too", "failure", [{ id: "after", needs: ["ok", "bad"] }]],
    ["it joins any of the two", "waiting", [{ id: "after", needs: ["ok", "bad"], join: "any" as const }]],
    ["nothing comes after", "failure", []],
    ["an exit handler waits for all", "waiting", [{ id: "after", if: "always()", needs: ["ok", "bad"] }]],
    [
      "only what is two steps away needs what failed",
      "waiting",
      [
        { id: "a", needs: ["ok"] },
        { id: "b", needs: ["a", "bad"] },
      ],
    ],
  ])("beside a failure, where %s: %s", async (_, outcome, more) => {
    const given = plan({ steps: [{ id: "bad" }, { id: "ok" }, ...more] });
    const { result, events } = await run(given, { does: { bad: fail, ok: ask } });
    expect(result.outcome).toBe(outcome);
    expect(brief(events).includes("ok cancelled")).toBe(outcome === "failure");
  });

  test("is given up by the first failure of its loop, and by a cancel", async () => {
    const each: Foreach = { items: { type: "data", json: [0, 1] }, failFast: true, matrix: false };
    const given = plan({ steps: [{ id: "ok", foreach: each }] });
    const does: Does = async (attempt) => {
      if (attempt.path === "ok[1]") return fail(attempt);
      const stopped = new Promise((resolve) => attempt.signal.addEventListener("abort", resolve));
      await attempt.wait?.(stopped, false);
      return { outcome: "cancelled" };
    };
    const failed = await run(given, { does: { ok: does } });
    expect(failed.result.outcome).toBe("failure");
    expect(brief(failed.events)).toEqual(["ok[1] failure exit", "ok[0] cancelled", "ok failure exit"]);
    const handlers = plan({ steps: [{ id: "x" }, { id: "ok", if: "always()", needs: ["x"] }] });
    const cancelled = await run(handlers, { cancelled: true, does: { ok: ask } });
    expect(cancelled.result.outcome).toBe("cancelled");
    expect(brief(cancelled.events)).toEqual(["x skipped cancelled", "ok cancelled"]);
  });

  test("is not offered inside an undo", async () => {
    const waits: boolean[] = [];
    const given = plan({
      steps: [
        { id: "made", undo: undoBy("made") },
        { id: "bad", needs: ["made"] },
      ],
    });
    await run(given, {
      does: { bad: fail },
      otherwise: (attempt) => {
        if (attempt.path.endsWith("/undo")) waits.push(attempt.wait !== undefined);
        return succeed(attempt);
      },
    });
    expect(waits).toEqual([false]);
  });
});

describe("a wait for an answer that comes while the run goes on", () => {
  test("gives its slot to others and lines up again for the rest", async () => {
    const desk = new Desk();
    const clock = new FakeClock();
    const given = plan({ steps: [{ id: "ok" }, { id: "after", needs: ["ok"] }, { id: "long" }, { id: "next" }] });
    const running = start(given, { clock, parallel: 1, does: { ok: desk.ask, long: lasting(clock, 1000) } });
    await running.idle();
    desk.answer("ok");
    await running.idle();
    // `long` has the only slot.
    expect(brief(running.events)).toEqual([]);
    expect((await finish(running)).outcome).toBe("success");
    expect(brief(running.events)).toEqual(["long success", "next success", "ok success", "after success"]);
  });

  test("gives the place of an item in its loop to the next, and two are never at work at once", async () => {
    const desk = new Desk();
    const clock = new FakeClock();
    let [atWork, most] = [0, 0];
    const work: Does = async (attempt) => {
      atWork += 1;
      most = Math.max(most, atWork);
      const result = await lasting(clock, 1000)(attempt);
      atWork -= 1;
      return result;
    };
    const given = plan({
      steps: [
        {
          id: "each",
          foreach: { items: { type: "data", json: [1, 2, 3, 4, 5] }, parallel: 1, failFast: true, matrix: false },
          group: [{ id: "before" }, { id: "ok", needs: ["before"] }, { id: "deploy", needs: ["ok"] }],
        },
      ],
    });
    const running = start(given, { clock, does: { before: work, ok: desk.ask, deploy: work } });
    for (let step = 0; step < 5; step++) {
      await running.idle();
      clock.fireNext();
    }
    await running.idle();
    expect(desk.asked).toEqual([0, 1, 2, 3, 4].map((item) => `each[${item}]/ok`));
    for (const item of [3, 0, 4, 1, 2]) desk.answer(`each[${item}]/ok`);
    expect((await finish(running)).outcome).toBe("success");
    expect(most).toBe(1);
    const deployed = running.events.flatMap((event) =>
      event.type === "step.finished" && event.step.endsWith("deploy") ? [event.step] : [],
    );
    expect(deployed).toEqual([3, 0, 4, 1, 2].map((item) => `each[${item}]/deploy`));
  });

  test("counts in no limit on time around it", async () => {
    const desk = new Desk();
    const clock = new FakeClock();
    const given = plan({
      limits: { duration: 5000 },
      steps: [
        {
          id: "gate",
          limits: { duration: 3000 },
          timeout: 3000,
          group: [{ id: "a" }, { id: "ok", needs: ["a"], timeout: 60_000 }, { id: "b", needs: ["ok"] }],
        },
      ],
    });
    const does = { a: lasting(clock, 1000), ok: desk.ask, b: lasting(clock, 1000) };
    const running = start(given, { clock, does });
    await running.idle();
    clock.fireNext();
    await running.idle();
    expect(clock.pending).toBe(0);
    clock.after(1_000_000, () => desk.answer("gate/ok"));
    expect((await finish(running)).outcome).toBe("success");
  });

  test("counts what ran beside it, and goes on with the time that was left", async () => {
    const desk = new Desk();
    const clock = new FakeClock();
    const group = [{ id: "ok" }, { id: "beside" }, { id: "b", needs: ["ok"] }];
    const given = plan({ steps: [{ id: "gate", timeout: 3000, group }] });
    const does = { ok: desk.ask, beside: lasting(clock, 2000), b: lasting(clock, 1500) };
    const running = start(given, { clock, does });
    await running.idle();
    clock.fireNext();
    clock.after(1_000_000, () => desk.answer("gate/ok"));
    expect((await finish(running)).outcome).toBe("failure");
    expect(brief(running.events)).toContain("gate failure timeout");
  });

  test("that is left open turns into one that ends the run as waiting", async () => {
    const desk = new Desk();
    const leave: Does = async (attempt) => {
      const first = await attempt.wait?.(Promise.resolve("left"), true);
      expect(first).toBe("left");
      return ask(attempt);
    };
    const given = plan({ steps: [{ id: "one" }, { id: "two" }, { id: "after", needs: ["one", "two"] }] });
    const running = start(given, { does: { one: desk.ask, two: leave } });
    await running.idle();
    expect(brief(running.events)).toEqual([]);
    desk.answer("one");
    expect((await running.ended).outcome).toBe("waiting");
    expect(brief(running.events)).toEqual(["one success"]);
  });

  test("ends with a cancel, and exit handlers run", async () => {
    const desk = new Desk();
    const given = plan({ steps: [{ id: "ok" }, { id: "clean", if: "always()", needs: ["ok"] }] });
    const running = start(given, { does: { ok: desk.ask } });
    await running.idle();
    running.cancel();
    expect((await finish(running)).outcome).toBe("cancelled");
    expect(brief(running.events)).toEqual(["ok cancelled", "clean success"]);
  });

  test("ends at once with a kill", async () => {
    const desk = new Desk();
    const given = plan({ steps: [{ id: "ok" }, { id: "after", needs: ["ok"] }, { id: "x", needs: ["ok"] }] });
    const running = start(given, { parallel: 1, does: { ok: desk.ask } });
    await running.idle();
    running.kill();
    expect((await running.ended).outcome).toBe("cancelled");
  });

  test("that is answered with a no fails its step", async () => {
    const desk = new Desk();
    const running = start(plan({ steps: [{ id: "ok" }, { id: "after", needs: ["ok"] }] }), { does: { ok: desk.ask } });
    await running.idle();
    desk.answer("ok", "no");
    const result = await finish(running);
    expect([result.outcome, result.error?.kind]).toEqual(["failure", "rejected"]);
  });
});

function undoBy(id: string): NonNullable<Parameters<typeof plan>[0]["steps"][number]["undo"]> {
  return {
    kind: "run",
    inputs: { type: "map", entries: [] },
    body: { kind: "run", command: { script: id }, shell: "bash" },
    at: { file: "t", line: 1, column: 1, endLine: 1, endColumn: 1 },
  };
}
