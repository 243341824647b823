import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { StepEvent } from "../../src/model/event.ts";
import type { Json } from "../../src/model/json.ts";
import type { Foreach } from "../../src/model/plan.ts";
import { FakeClock } from "./fake-clock.ts";
import type { StepSpec } from "./plan-builder.ts";
import { at, plan, template } from "./plan-builder.ts";
import { brief, fail, finish, lasting, run, start, succeed } from "./running.ts";
import type { Does } from "./running.ts";

export function foreach(items: Json, more: Partial<Foreach> = {}): Foreach {
  return { items: template(items), failFast: true, matrix: false, ...more };
}

/** Fails for the items named. */
function failing(...indexes: readonly number[]): Does {
  return (attempt) => (indexes.some((index) => attempt.path.endsWith(`[${index}]`)) ? fail(attempt) : succeed(attempt));
}

function outputsOf(events: readonly StepEvent[], step: string): Json | undefined {
  const end = events.find((event) => event.type === "step.finished" && event.step === step);
  return end?.type === "step.finished" ? end.outputs : undefined;
}

describe("foreach", () => {
  it("runs the body once per item, each with `item` and `index`, under a path of its own", async () => {
    const step = { id: "a", foreach: foreach(["x", { n: 1 }, null]), set: { it: "${{ item }}", at: "${{ index }}" } };
    const { result, events } = await run(plan({ steps: [step], outputs: { all: "${{ steps.a.outputs }}" } }));
    const items = [
      { it: "x", at: 0 },
      { it: { n: 1 }, at: 1 },
      { it: null, at: 2 },
    ];
    expect(result.outputs).toEqual({ all: { items, failed: [] } });
    expect(brief(events)).toEqual(["a[0] success", "a[1] success", "a[2] success", "a success"]);
    expect(events[0]).toEqual({ type: "step.started", step: "a", kind: "set" });
  });

  it("takes a list from an expression, and evaluates it once", async () => {
    const steps = [
      { id: "list", set: { of: [3, 4] } },
      { id: "a", needs: ["list"], foreach: foreach("${{ steps.list.outputs.of }}"), set: { n: "${{ item }}" } },
    ];
    const { events } = await run(plan({ steps }));
    expect(outputsOf(events, "a")).toEqual({ items: [{ n: 3 }, { n: 4 }], failed: [] });
  });

  it("of nothing succeeds, with empty outputs", async () => {
    const { result, events } = await run(plan({ steps: [{ id: "a", foreach: foreach([]) }] }));
    expect(result.outcome).toBe("success");
    expect(outputsOf(events, "a")).toEqual({ items: [], failed: [] });
    expect(events.map(({ step }) => step)).toEqual(["a", "a"]);
  });

  const wrong: readonly (readonly [what: string, items: Json, message: string])[] = [
    ["a number", "${{ 12 }}", "`foreach` needs a list, and this is 12"],
    ["a text", "abc", '`foreach` needs a list, and this is "abc"'],
    ["null", "${{ null }}", "`foreach` needs a list, and this is null"],
    ["a map", { a: [1] }, '`foreach` needs a list, and this is {"a":[1]}'],
    [
      "10,001 items",
      Array.from({ length: 10_001 }, () => 0),
      "`foreach` takes at most 10000 items, and this has 10001",
    ],
  ];
  it.each(wrong)("over %s fails with kind `input`, and nothing runs", async (_what, items, message) => {
    const { result, events } = await run(plan({ steps: [{ id: "a", foreach: foreach(items) }] }));
    expect(result.error).toEqual({ kind: "input", message, step: "a" });
    expect(brief(events)).toEqual(["a failure input"]);
  });

  it("over a list that cannot be evaluated fails with its position", async () => {
    const { result } = await run(plan({ steps: [{ id: "a", foreach: foreach("${{ fromJSON('[') }}") }] }));
    expect(result.error).toMatchObject({ kind: "expression", position: at, step: "a" });
  });

  it("of 10,000 items ends in order, with an event for each", async () => {
    const items = Array.from({ length: 10_000 }, (_, index) => index);
    const step = { id: "a", foreach: foreach(items), set: { n: "${{ item }}" } };
    const { result, events } = await run(
      plan({ steps: [step], outputs: { n: "${{ length(steps.a.outputs.items) }}" } }),
    );
    expect(result.outputs).toEqual({ n: 10_000 });
    expect(events).toHaveLength(20_002);
    expect(outputsOf(events, "a[9999]")).toEqual({ n: 9999 });
  });

  it("keeps the outputs of what succeeded and the list of what failed, in the order of the items", async () => {
    const step = { id: "a", foreach: foreach(["x", "y", "z"], { failFast: false }), set: { v: "${{ item }}" } };
    const { result, events } = await run(plan({ steps: [step] }), { does: { a: failing(0, 2) } });
    expect(result.outcome).toBe("failure");
    expect(result.error).toEqual({ kind: "exit", message: "exit code 1", step: "a[0]" });
    expect(result.failures.map(({ step: path }) => path)).toEqual(["a[0]", "a[2]"]);
    const error = { kind: "exit", message: "exit code 1" };
    expect(outputsOf(events, "a")).toEqual({
      items: [null, { v: "y" }, null],
      failed: [
        { index: 0, item: "x", error },
        { index: 2, item: "z", error },
      ],
    });
  });

  it("that is tolerated lets later steps read what succeeded; an item itself stays failed", async () => {
    const steps: StepSpec[] = [
      { id: "a", foreach: foreach([1, 2], { failFast: false }), continueOnError: true, set: { v: "${{ item }}" } },
      {
        id: "b",
        needs: ["a"],
        set: { items: "${{ steps.a.outputs.items }}", n: "${{ length(steps.a.outputs.failed) }}" },
      },
    ];
    const { result, events } = await run(plan({ steps }), { does: { a: failing(0) } });
    expect(result.outcome).toBe("success");
    expect(outputsOf(events, "b")).toEqual({ items: [null, { v: 2 }], n: 1 });
    expect(brief(events)).toContain("a failure exit tolerated");
    expect(brief(events)).toContain("a[0] failure exit");
  });

  it("applies `outputs` to each item", async () => {
    const step = {
      id: "a",
      foreach: foreach([1, 2]),
      set: { v: "${{ item }}" },
      outputs: { w: "${{ result.v }}-${{ index }}" },
    };
    const { events } = await run(plan({ steps: [step] }));
    expect(outputsOf(events, "a")).toEqual({ items: [{ w: "1-0" }, { w: "2-1" }], failed: [] });
  });

  it("is the innermost of loops that see each other: loops in groups in loops", async () => {
    const inner: StepSpec = {
      id: "b",
      foreach: foreach("${{ item.of }}"),
      set: { v: "${{ vars.p }}${{ item }}@${{ index }}" },
    };
    const outer: StepSpec = {
      id: "a",
      foreach: foreach([{ of: ["x"] }, { of: ["y", "z"] }]),
      group: [inner, { id: "c", set: { at: "${{ index }}" } }],
      groupOutputs: { b: "${{ steps.b.outputs.items }}", at: "${{ steps.c.outputs.at }}", n: "${{ length(item.of) }}" },
    };
    const { events } = await run(plan({ vars: { p: "-" }, steps: [outer] }));
    expect(outputsOf(events, "a")).toEqual({
      items: [
        { b: [{ v: "-x@0" }], at: 0, n: 1 },
        { b: [{ v: "-y@0" }, { v: "-z@1" }], at: 1, n: 2 },
      ],
      failed: [],
    });
    expect(brief(events)).toContain("a[1]/b[1] success");
  });

  it("over groups none of whose steps ran is skipped as `empty`; over some that ran it is not", async () => {
    const group = (condition: string): StepSpec => ({
      id: "a",
      foreach: foreach([1, 2]),
      group: [{ id: "b", if: condition }],
    });
    const none = await run(plan({ steps: [group("false")] }));
    expect(none.result.outcome).toBe("empty");
    expect(brief(none.events)).toEqual([
      "a[0]/b skipped condition",
      "a[1]/b skipped condition",
      "a[0] skipped empty",
      "a[1] skipped empty",
      "a skipped empty",
    ]);
    const some = await run(plan({ steps: [group("item == 2")] }));
    expect(some.result.outcome).toBe("success");
    expect(outputsOf(some.events, "a")).toEqual({ items: [null, {}], failed: [] });
  });
});

describe("matrix", () => {
  const rows: readonly (readonly [what: string, matrix: Json, items: readonly Json[]])[] = [
    [
      "is the product of its lists",
      { os: ["l", "m"], n: [1, 2] },
      [
        { os: "l", n: 1 },
        { os: "l", n: 2 },
        { os: "m", n: 1 },
        { os: "m", n: 2 },
      ],
    ],
    ["takes lists from expressions", { n: "${{ fromJSON('[1, 2]') }}" }, [{ n: 1 }, { n: 2 }]],
    [
      "leaves out what `exclude` matches",
      { os: ["l", "m"], n: [1, 2], exclude: [{ os: "m" }, { n: 2, os: "l" }] },
      [{ os: "l", n: 1 }],
    ],
    ["does not match by a name that no list has", { n: [1], exclude: [{ toString: 1 }, { x: 1 }] }, [{ n: 1 }]],
    [
      "adds what `include` names to the combinations it agrees with",
      { os: ["l", "m"], include: [{ os: "m", extra: true }] },
      [{ os: "l" }, { os: "m", extra: true }],
    ],
    [
      "adds to all of them what no list names",
      { n: [1, 2], include: [{ c: "x" }] },
      [
        { n: 1, c: "x" },
        { n: 2, c: "x" },
      ],
    ],
    [
      "makes a combination of what agrees with none",
      {
        os: ["l"],
        include: [
          { os: "w", n: 1 },
          { os: "w", n: 2 },
        ],
      },
      [{ os: "l" }, { os: "w", n: 1 }, { os: "w", n: 2 }],
    ],
    ["is `include` alone if there is no list", { include: [{ a: 1 }, { a: 2 }] }, [{ a: 1 }, { a: 2 }]],
    ["of an empty list has no item", { n: [], m: [1] }, []],
  ];
  it.each(rows)("%s", async (_what, matrix, items) => {
    const step = {
      id: "a",
      foreach: foreach(matrix, { matrix: true }),
      set: { m: "${{ matrix }}", same: "${{ matrix == item }}" },
    };
    const { events } = await run(plan({ steps: [step] }));
    expect(outputsOf(events, "a")).toEqual({ items: items.map((m) => ({ m, same: true })), failed: [] });
  });

  const wrong: readonly (readonly [what: string, matrix: Json, message: string])[] = [
    ["a list that is none", { n: "${{ 1 }}" }, "`matrix.n` needs a list, and this is 1"],
    [
      "an `include` that is none",
      { n: [1], include: "${{ null }}" },
      "`matrix.include` needs a list, and this is null",
    ],
    ["an `exclude` of texts", { n: [1], exclude: ["a"] }, '`matrix.exclude` needs mappings, and one entry is "a"'],
    [
      "too many combinations",
      { a: Array.from({ length: 101 }, () => 1), b: Array.from({ length: 100 }, () => 1) },
      "`matrix` takes at most 10000 items, and this has more",
    ],
  ];
  it.each(wrong)("with %s fails with kind `input`", async (_what, matrix, message) => {
    const { result } = await run(plan({ steps: [{ id: "a", foreach: foreach(matrix, { matrix: true }) }] }));
    expect(result.error).toEqual({ kind: "input", message, step: "a" });
  });
});

describe("the items of a foreach", () => {
  it("stop at the first failure: what runs is cancelled, what waits never starts", async () => {
    const step = { id: "a", foreach: foreach([0, 1, 2, 3], { parallel: 2 }), set: { v: "${{ item }}" } };
    const clock = new FakeClock();
    const running = start(plan({ steps: [step] }), {
      clock,
      does: {
        a: (attempt) => (attempt.path === "a[1]" ? fail(attempt) : lasting(clock, 1000)(attempt)),
      },
    });
    const result = await finish(running);
    expect(result.outcome).toBe("failure");
    expect(brief(running.events)).toEqual([
      "a[1] failure exit",
      "a[2] skipped cancelled",
      "a[3] skipped cancelled",
      "a[0] cancelled",
      "a failure exit",
    ]);
    expect(outputsOf(running.events, "a")).toMatchObject({
      items: [null, null, null, null],
      failed: [{ index: 1, item: 1 }],
    });
    expect(running.clock.monotonic()).toBe(0);
  });

  it("all end without fail-fast", async () => {
    const step = { id: "a", foreach: foreach([0, 1, 2], { failFast: false, parallel: 1 }) };
    const { events } = await run(plan({ steps: [step] }), { does: { a: failing(0, 1) } });
    expect(brief(events)).toEqual(["a[0] failure exit", "a[1] failure exit", "a[2] success", "a failure exit"]);
  });

  it("that are groups clean up when another one fails", async () => {
    const step: StepSpec = {
      id: "a",
      foreach: foreach([0, 1]),
      group: [{ id: "b" }, { id: "c", needs: ["b"] }, { id: "bye", needs: ["~b"], if: "always()" }],
    };
    const clock = new FakeClock();
    const running = start(plan({ steps: [step] }), {
      clock,
      does: { b: (attempt) => (attempt.path === "a[1]/b" ? fail(attempt) : lasting(clock, 1000)(attempt)) },
    });
    await finish(running);
    expect(brief(running.events)).toEqual([
      "a[1]/b failure exit",
      "a[1]/c skipped needs",
      "a[1]/bye success",
      "a[1] failure exit",
      "a[0]/b cancelled",
      "a[0]/c skipped cancelled",
      "a[0]/bye success",
      "a[0] cancelled",
      "a failure exit",
    ]);
  });

  it("are cancelled with the run, and those not begun are skipped", async () => {
    const steps = [
      { id: "a", foreach: foreach([0, 1, 2], { parallel: 1, failFast: false }) },
      { id: "b", needs: ["~a"], if: "always()" },
    ];
    const clock = new FakeClock();
    const running = start(plan({ steps }), { clock, does: { a: lasting(clock, 10) } });
    await running.idle();
    running.clock.fireNext();
    await running.idle();
    running.cancel();
    expect((await finish(running)).outcome).toBe("cancelled");
    expect(brief(running.events)).toEqual([
      "a[0] success",
      "a[1] cancelled",
      "a[2] skipped cancelled",
      "a cancelled",
      "b success",
    ]);
    expect(outputsOf(running.events, "a")).toMatchObject({ items: [{}, null, null] });
  });

  it("also run in the time after a cancel, for a step that asks for it", async () => {
    const steps = [{ id: "a", if: "always()", foreach: foreach([0, 1]) }];
    const { events, result } = await run(plan({ steps }), { cancelled: true });
    expect(result.outcome).toBe("cancelled");
    expect(brief(events)).toEqual(["a[0] success", "a[1] success", "a success"]);
  });

  it("share the slots of the run with other steps, and say when they wait for one", async () => {
    let now = 0;
    let most = 0;
    const counted: Does = async (attempt) => {
      most = Math.max(most, ++now);
      await new Promise((resolve) => setImmediate(resolve));
      now -= 1;
      return succeed(attempt);
    };
    const steps = [{ id: "a", foreach: foreach([1, 2, 3, 4, 5]) }, { id: "b" }, { id: "c" }];
    const { events, result } = await run(plan({ steps, limits: { parallel: 3 } }), { otherwise: counted });
    expect(result.outcome).toBe("success");
    expect(most).toBe(3);
    expect(events.filter(({ type }) => type === "step.ready")).toHaveLength(4);
  });

  it("have timeouts of their own", async () => {
    const step = { id: "a", timeout: 50, foreach: foreach([0, 1], { failFast: false }) };
    const clock = new FakeClock();
    const running = start(plan({ steps: [step] }), {
      clock,
      does: { a: (attempt) => lasting(clock, attempt.path === "a[0]" ? 80 : 10)(attempt) },
    });
    await finish(running);
    expect(brief(running.events)).toEqual(["a[1] success", "a[0] failure timeout", "a failure timeout"]);
  });
});

describe("for random items, slots and failures", () => {
  const given = fc.record({
    lengths: fc.array(fc.nat({ max: 50 }), { minLength: 1, maxLength: 30 }),
    parallel: fc.option(fc.integer({ min: 1, max: 10 }), { nil: undefined }),
    slots: fc.integer({ min: 1, max: 10 }),
    failures: fc.uniqueArray(fc.nat({ max: 29 }), { maxLength: 3 }),
    failFast: fc.boolean(),
  });

  it("order is kept, bounds hold, every item is reported once, and nothing starts after fail-fast", async () => {
    await fc.assert(
      fc.asyncProperty(given, async ({ lengths, parallel, slots, failures, failFast }) => {
        const settings = { failFast, ...(parallel !== undefined && { parallel }) };
        const step = { id: "a", foreach: foreach(lengths, settings), set: { v: "${{ item }}", at: "${{ index }}" } };
        const started: number[] = [];
        let now = 0;
        let most = 0;
        let failed = false;
        const clock = new FakeClock();
        const running = start(plan({ steps: [step] }), {
          clock,
          parallel: slots,
          does: {
            a: async (attempt) => {
              const index = Number(/\[(\d+)\]/.exec(attempt.path)?.[1]);
              expect(failed && failFast).toBe(false);
              started.push(index);
              most = Math.max(most, ++now);
              const end = await lasting(clock, lengths[index] ?? 0)(attempt);
              now -= 1;
              if (end.outcome !== "success" || !failures.includes(index)) return end;
              failed = true;
              return fail(attempt);
            },
          },
        });
        const result = await finish(running);
        const hit = failures.some((index) => index < lengths.length);
        expect(result.outcome).toBe(hit ? "failure" : "success");
        expect(most).toBeLessThanOrEqual(Math.min(slots, parallel ?? slots));
        expect(new Set(started).size).toBe(started.length);
        if (!hit || !failFast) expect(started.toSorted((a, b) => a - b)).toEqual(lengths.map((_, index) => index));
        const ends = running.events.flatMap((event) =>
          event.type === "step.finished" || event.type === "step.skipped" ? [event.step] : [],
        );
        expect(ends.toSorted()).toEqual(["a", ...lengths.map((_, index) => `a[${index}]`)].toSorted());
        const { items, failed: list } = outputsOf(running.events, "a") as {
          items: Json[];
          failed: { index: number }[];
        };
        expect(items).toHaveLength(lengths.length);
        items.forEach((item, at) => expect(item === null || item).toEqual(item === null || { v: lengths[at], at }));
        expect(list.map(({ index }) => index)).toEqual(list.map(({ index }) => index).toSorted((a, b) => a - b));
        for (const { index } of list) expect(items[index]).toBeNull();
        expect(running.clock.pending).toBe(0);
      }),
      { numRuns: 150 },
    );
  });
});
