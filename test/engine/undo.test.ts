import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { StepEvent } from "../../src/model/event.ts";
import type { Json } from "../../src/model/json.ts";
import type { Foreach, Retry, Undo } from "../../src/model/plan.ts";
import type { RunResult } from "../../src/engine/run.ts";
import { FakeClock } from "./fake-clock.ts";
import type { StepSpec, WorkflowSpec } from "./plan-builder.ts";
import { at, plan, template } from "./plan-builder.ts";
import { fail, finish, lasting, run, start, succeed } from "./running.ts";
import type { Does } from "./running.ts";

/** An undo that is executed with these values. */
function undo(values: { readonly [name: string]: Json } = {}): Undo {
  return { kind: "run", body: { kind: "run", command: { script: "" }, shell: "bash" }, inputs: template(values), at };
}
const foreach = (items: Json): Foreach => ({ items: template(items), failFast: true, matrix: false });
const again: Retry = { max: 1, backoff: 10, factor: 2, jitter: false, cap: 100, on: ["exit"] };

/** What was undone and how, in order; ends of steps among it where `withEnds` says so. */
function undone(events: readonly StepEvent[], withEnds = false): string[] {
  return events.flatMap((event) => {
    if (event.type === "step.undone") return [`undo ${event.step} ${event.outcome}`];
    return withEnds && event.type === "step.finished" ? [`${event.step} ${event.outcome}`] : [];
  });
}

/** `bad` fails; every undo and its inputs are written down. */
async function undoing(
  root: WorkflowSpec,
  others: { readonly [key: string]: WorkflowSpec } = {},
): Promise<{ events: StepEvent[]; given: { [path: string]: Json }; result: RunResult }> {
  const given: { [path: string]: Json } = {};
  const otherwise: Does = (attempt) => {
    if (attempt.path.endsWith("/undo")) given[attempt.path] = attempt.inputs;
    return succeed(attempt);
  };
  const { result, events } = await run(plan(root, others), { otherwise, does: { bad: fail } });
  return { events, result, given };
}

describe("undo", () => {
  it("takes back what succeeded in a run that failed, newest first, and sees the step's own outputs", async () => {
    const steps: StepSpec[] = [
      { id: "a", set: { id: 1 }, undo: undo({ id: "${{ steps.a.outputs.id }}", of: "${{ vars.v }}" }) },
      {
        id: "b",
        needs: ["a"],
        set: { id: 2 },
        undo: undo({ id: "${{ steps.b.outputs.id }}", a: "${{ steps.a.outcome }}" }),
      },
      { id: "c", needs: ["b"] },
      { id: "bad", needs: ["c"] },
    ];
    const { events, given, result } = await undoing({ vars: { v: "x" }, steps });
    expect(result.outcome).toBe("failure");
    expect(undone(events, true).slice(-3)).toEqual(["bad failure", "undo b success", "undo a success"]);
    expect(given).toEqual({ "b/undo": { id: 2, a: "success" }, "a/undo": { id: 1, of: "x" } });
  });

  it("waits until all steps of the scope have settled, those for failures too", async () => {
    const steps: StepSpec[] = [
      { id: "a", undo: undo() },
      { id: "bad", needs: ["a"] },
      { id: "slow" },
      { id: "after", needs: ["bad"], if: "failure()", undo: undo() },
    ];
    const clock = new FakeClock();
    const running = start(plan({ steps }), { clock, does: { bad: fail, slow: lasting(clock, 50) } });
    await finish(running);
    expect(undone(running.events, true).slice(-3)).toEqual(["slow success", "undo after success", "undo a success"]);
  });

  it("is not run where nothing failed, nor for what failed itself, was skipped, or was cancelled", async () => {
    const fine = await undoing({
      steps: [
        { id: "a", undo: undo() },
        { id: "bad", continueOnError: true, undo: undo() },
      ],
    });
    expect(fine.result.outcome).toBe("success");
    expect(undone(fine.events)).toEqual([]);
    const steps: StepSpec[] = [
      { id: "bad", undo: undo() },
      { id: "off", if: "false", undo: undo() },
      { id: "mapped", outputs: { x: "${{ fromJSON('[') }}" }, undo: undo() },
    ];
    expect(undone((await undoing({ steps })).events)).toEqual([]);
  });

  it("works per item, in the reverse order of their ends, and sees `item`", async () => {
    const clock = new FakeClock();
    const given: Json[] = [];
    const steps: StepSpec[] = [
      {
        id: "a",
        foreach: foreach([30, 10, 20]),
        undo: undo({ item: "${{ item }}", at: "${{ index }}", own: "${{ steps.a.outputs.v }}" }),
        set: { v: "${{ item }}" },
      },
      { id: "bad", needs: ["a"] },
    ];
    const does: Does = (attempt) => {
      if (!attempt.path.endsWith("/undo")) return lasting(clock, [30, 10, 20][Number(attempt.path[2])] ?? 0)(attempt);
      given.push(attempt.inputs);
      return succeed(attempt);
    };
    const running = start(plan({ steps }), { clock, does: { a: does, bad: fail } });
    await finish(running);
    expect(undone(running.events)).toEqual(["undo a[0] success", "undo a[2] success", "undo a[1] success"]);
    expect(given).toEqual([
      { item: 30, at: 0, own: 30 },
      { item: 20, at: 2, own: 20 },
      { item: 10, at: 1, own: 10 },
    ]);
  });

  it("takes back the items of a foreach that failed itself", async () => {
    const steps: StepSpec[] = [{ id: "a", foreach: { ...foreach([0, 1, 2]), parallel: 1 }, undo: undo() }];
    const does: Does = (attempt) => (attempt.path === "a[1]" ? fail(attempt) : succeed(attempt));
    const { events } = await run(plan({ steps }), { does: { a: does } });
    expect(undone(events)).toEqual(["undo a[0] success"]);
  });

  it("works per iteration", async () => {
    const repeat = { until: { source: "iteration == 3", at }, max: 3, onMax: "fail" as const };
    const steps: StepSpec[] = [
      { id: "a", repeat, undo: undo({ n: "${{ steps.a.outputs.n }}" }), set: { n: "${{ iteration }}" } },
      { id: "bad", needs: ["a"] },
    ];
    const { events, given } = await undoing({ steps });
    expect(undone(events)).toEqual(["undo a#3 success", "undo a#2 success", "undo a#1 success"]);
    expect(given["a#2/undo"]).toEqual({ n: 2 });
  });

  it("of a repeat that never got there takes its iterations back", async () => {
    const repeat = { until: { source: "false", at }, max: 2, onMax: "fail" as const };
    expect(undone((await undoing({ steps: [{ id: "a", repeat, undo: undo() }] })).events)).toEqual([
      "undo a#2 success",
      "undo a#1 success",
    ]);
  });

  it("that fails is recorded, and the rest go on", async () => {
    const steps: StepSpec[] = [
      { id: "a", undo: undo() },
      { id: "b", needs: ["a"], undo: undo() },
      { id: "c", needs: ["b"], undo: undo({ x: "${{ fromJSON('[') }}" }) },
      { id: "bad", needs: ["c"] },
    ];
    const otherwise: Does = (attempt) => (attempt.path === "b/undo" ? fail(attempt) : succeed(attempt));
    const { events, result } = await run(plan({ steps }), { otherwise, does: { bad: fail } });
    expect(undone(events)).toEqual(["undo c failure", "undo b failure", "undo a success"]);
    expect(events.find((event) => event.type === "step.undone" && event.step === "b")).toMatchObject({
      error: { kind: "exit" },
    });
    expect(result.failures.map(({ step }) => step)).toEqual(["bad"]);
  });

  it("happens once, when nothing of what it takes back is left to be read", async () => {
    const inner: StepSpec[] = [
      { id: "a", undo: undo() },
      { id: "bad", needs: ["a"] },
    ];
    const { events } = await undoing({
      steps: [
        { id: "g", group: inner },
        { id: "after", needs: ["~g"], undo: undo() },
      ],
    });
    expect(undone(events, true)).toEqual([
      "g/a success",
      "g/bad failure",
      "undo g/a success",
      "g failure",
      "after success",
      "undo after success",
    ]);
  });
});

describe("a scope inside the run", () => {
  const work: StepSpec[] = [
    { id: "a", undo: undo() },
    { id: "b", needs: ["a"], undo: undo() },
  ];
  const failing: StepSpec[] = [...work, { id: "bad", needs: ["b"] }];
  const scopes: readonly (readonly [what: string, step: (steps: readonly StepSpec[]) => StepSpec, called: boolean])[] =
    [
      ["a group", (group) => ({ id: "s", group }), false],
      ["a workflow", () => ({ id: "s", calls: "sub" }), true],
    ];

  it.each(scopes)(
    "%s that fails undoes its own before it settles, even if the failure is tolerated",
    async (_what, step, called) => {
      const others = called ? { sub: { steps: failing } } : {};
      const { events, result } = await undoing(
        {
          steps: [
            { ...step(failing), continueOnError: true },
            { id: "z", needs: ["s"] },
          ],
        },
        others,
      );
      expect(result.outcome).toBe("success");
      expect(undone(events, true).slice(2)).toEqual([
        "s/bad failure",
        "undo s/b success",
        "undo s/a success",
        "s failure",
        "z success",
      ]);
    },
  );

  it.each(scopes)("%s that succeeds hands its undos outward", async (_what, step, called) => {
    const others = called ? { sub: { steps: work } } : {};
    const steps: StepSpec[] = [step(work), { id: "c", needs: ["s"], undo: undo() }, { id: "bad", needs: ["c"] }];
    const { events } = await undoing({ steps }, others);
    expect(undone(events)).toEqual(["undo c success", "undo s/b success", "undo s/a success"]);
  });

  it.each(scopes)("%s undoes before it is tried again", async (_what, step, called) => {
    let calls = 0;
    const others = called ? { sub: { steps: failing } } : {};
    const { events, result } = await run(
      plan(
        {
          steps: [
            { ...step(failing), retry: again },
            { id: "end", needs: ["s"] },
          ],
        },
        others,
      ),
      {
        does: { bad: (attempt) => (++calls === 1 ? fail(attempt) : succeed(attempt)), end: fail },
      },
    );
    expect(result.outcome).toBe("failure");
    expect(undone(events, true)).toEqual([
      "s/a success",
      "s/b success",
      "s/bad failure",
      "undo s/b success",
      "undo s/a success",
      "s/a success",
      "s/b success",
      "s/bad success",
      "s success",
      "end failure",
      "undo s/b success",
      "undo s/a success",
    ]);
  });

  it.each(scopes)("%s whose own outputs have no value has failed, and undoes", async (_what, step, called) => {
    const outputs = { none: "${{ steps.off.outputs.x }}" };
    const steps: StepSpec[] = [...work, { id: "off", if: "false" }];
    const others = called ? { sub: { steps, outputs } } : {};
    const { events, result } = await undoing({ steps: [{ ...step(steps), groupOutputs: outputs }] }, others);
    expect(result.error).toMatchObject({ kind: "output", step: "s" });
    expect(undone(events)).toEqual(["undo s/b success", "undo s/a success"]);
  });

  it("a run whose outputs have no value, or that misses what it expects, undoes", async () => {
    const none = await undoing({
      steps: [...work, { id: "off", if: "false" }],
      outputs: { x: "${{ steps.off.outputs.x }}" },
    });
    expect(none.result.error?.kind).toBe("output");
    expect(undone(none.events)).toEqual(["undo b success", "undo a success"]);
    const missed = await undoing({
      steps: [...work, { id: "off", if: "false" }],
      expect: { steps: ["off"], outputs: [] },
    });
    expect(missed.result.error?.kind).toBe("expect");
    expect(undone(missed.events)).toEqual(["undo b success", "undo a success"]);
  });

  it("a call whose mapping fails after the workflow succeeded leaves its undos to the scope around", async () => {
    const step: StepSpec = { id: "s", calls: "sub", outputs: { x: "${{ fromJSON('[') }}" } };
    const { events, result } = await undoing({ steps: [step] }, { sub: { steps: work } });
    expect(result.error?.kind).toBe("expression");
    expect(undone(events)).toEqual(["undo s/b success", "undo s/a success"]);
  });

  it("a group with an undo of its own: its own first, then those inside", async () => {
    const steps: StepSpec[] = [
      { id: "g", group: work, undo: undo() },
      { id: "bad", needs: ["g"] },
    ];
    expect(undone((await undoing({ steps })).events)).toEqual([
      "undo g success",
      "undo g/b success",
      "undo g/a success",
    ]);
  });

  it("the iterations of a group that failed in its second: both are taken back, the failed one first", async () => {
    const repeat = { until: { source: "false", at }, max: 3, onMax: "fail" as const };
    const inner: StepSpec[] = [
      { id: "a", undo: undo({ n: "${{ iteration }}" }) },
      { id: "b", needs: ["a"] },
    ];
    const does: Does = (attempt) => (attempt.path === "g#2/b" ? fail(attempt) : succeed(attempt));
    const { events } = await run(plan({ steps: [{ id: "g", repeat, group: inner }] }), { does: { b: does } });
    expect(undone(events)).toEqual(["undo g#2/a success", "undo g#1/a success"]);
  });

  it("an undo that is a workflow runs its steps", async () => {
    const body: Undo = {
      kind: "workflow",
      body: { kind: "workflow" },
      scope: { workflow: "back" },
      inputs: template({ with: { it: "${{ steps.a.outputs.id }}" } }),
      at,
    };
    const back = {
      inputs: [{ name: "it", schema: { json: { type: "integer" } }, at }],
      steps: [{ id: "x", set: { it: "${{ inputs.it }}" } }],
    };
    const { events } = await undoing(
      {
        steps: [
          { id: "a", set: { id: 7 }, undo: body },
          { id: "bad", needs: ["a"] },
        ],
      },
      { back },
    );
    expect(undone(events)).toEqual(["undo a success"]);
    expect(events.find((event) => event.type === "step.finished" && event.step === "a/undo/x")).toMatchObject({
      outputs: { it: 7 },
    });
  });
});

describe("after a cancel", () => {
  const steps: StepSpec[] = [
    { id: "a", undo: undo() },
    { id: "b", needs: ["a"], undo: undo() },
    { id: "c", needs: ["b"] },
  ];

  async function cancelled(undoTime: number): Promise<{ lines: string[]; time: number; pending: number }> {
    const clock = new FakeClock();
    const otherwise: Does = (attempt) =>
      attempt.path.endsWith("/undo") ? lasting(clock, undoTime)(attempt) : succeed(attempt);
    const running = start(plan({ steps }), { clock, otherwise, does: { c: lasting(clock, 1e6) } });
    await running.idle();
    running.cancel();
    const result = await finish(running);
    expect(result.outcome).toBe("cancelled");
    return { lines: undone(running.events), time: clock.monotonic(), pending: clock.pending };
  }

  it("what succeeded is taken back", async () => {
    expect(await cancelled(1000)).toEqual({ lines: ["undo b success", "undo a success"], time: 2000, pending: 0 });
  });

  it("there are 30 s for it; then what is left says that it was not done", async () => {
    expect(await cancelled(20_000)).toEqual({
      lines: ["undo b success", "undo a cancelled"],
      time: 30_000,
      pending: 0,
    });
  });

  it("a kill ends it at once", async () => {
    const clock = new FakeClock();
    const otherwise: Does = (attempt) =>
      attempt.path.endsWith("/undo") ? lasting(clock, 1000)(attempt) : succeed(attempt);
    const running = start(plan({ steps }), { clock, otherwise, does: { c: lasting(clock, 1e6) } });
    await running.idle();
    running.cancel();
    await running.idle();
    running.kill();
    expect((await running.ended).outcome).toBe("cancelled");
    expect(undone(running.events)).toEqual(["undo b cancelled", "undo a cancelled"]);
    expect(clock.monotonic()).toBe(0);
  });

  it("an undo without an end does not keep the cancelled run longer than 30 s", async () => {
    const clock = new FakeClock();
    const failing: StepSpec[] = [
      { id: "a", undo: undo() },
      { id: "bad", needs: ["a"] },
    ];
    const otherwise: Does = (attempt) =>
      attempt.path.endsWith("/undo") ? lasting(clock, 1e9)(attempt) : succeed(attempt);
    const running = start(plan({ steps: failing }), { clock, otherwise, does: { bad: fail } });
    await running.idle();
    running.cancel();
    expect((await finish(running)).outcome).toBe("failure");
    expect(undone(running.events)).toEqual(["undo a cancelled"]);
    expect(clock.monotonic()).toBe(30_000);
  });
});

describe("for random graphs in which one step fails", () => {
  it("exactly what succeeded is undone, each once, newest first", async () => {
    const graph = fc.array(
      fc.record({ needs: fc.array(fc.nat()), time: fc.nat({ max: 20 }), bad: fc.nat({ max: 5 }) }),
      { minLength: 1, maxLength: 12 },
    );
    await fc.assert(
      fc.asyncProperty(graph, async (nodes) => {
        const steps = nodes.map(({ needs }, index): StepSpec => {
          const before = index === 0 ? [] : [...new Set(needs.map((need) => `s${need % index}`))];
          return { id: `s${index}`, needs: before, undo: undo() };
        });
        const clock = new FakeClock();
        const otherwise: Does = async (attempt) => {
          const node = nodes[Number(attempt.step.id.slice(1))];
          if (attempt.path.endsWith("/undo")) return succeed(attempt);
          const end = await lasting(clock, node?.time ?? 0)(attempt);
          return node?.bad === 0 ? fail(attempt) : end;
        };
        const running = start(plan({ steps }), { clock, otherwise, parallel: 3 });
        const result = await finish(running);
        const ended = running.events.flatMap((event) =>
          event.type === "step.finished" && event.outcome === "success" ? [event.step] : [],
        );
        const back = running.events.flatMap((event) => (event.type === "step.undone" ? [event.step] : []));
        expect(back).toEqual(result.outcome === "failure" ? ended.toReversed() : []);
      }),
      { numRuns: 100 },
    );
  });
});
