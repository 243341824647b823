import { describe, expect, it } from "vitest";
import { runPlan } from "../../src/engine/run.ts";
import type { Json } from "../../src/model/json.ts";
import { at, plan } from "./plan-builder.ts";
import { FakeClock } from "./fake-clock.ts";
import { brief, fail, run, succeed } from "./running.ts";
import type { Does } from "./running.ts";

const number = (name: string): { name: string; schema: { json: Json }; at: typeof at } => ({
  name,
  schema: { json: { type: "number" } },
  at,
});

describe("a run", () => {
  it("maps inputs, vars, env and outputs of steps through templates, keeping JSON types", async () => {
    const { result, events } = await run(
      plan({
        inputs: [number("n"), { ...number("m"), default: { json: 2 } }],
        vars: { both: ["${{ inputs.n }}", "${{ inputs.m }}"], text: "n=${{ inputs.n }}" },
        env: { GREETING: "hello ${{ vars.text }}" },
        secrets: ["TOKEN"],
        steps: [
          {
            id: "a",
            set: { list: "${{ vars.both }}", who: "${{ run.id }} ${{ run.workflow }}", env: "${{ env.greeting }}" },
          },
          { id: "b", needs: ["a"], set: { first: "${{ steps.A.outputs.LIST[0] }}", key: "${{ secrets.TOKEN }}" } },
        ],
        outputs: {
          a: "${{ steps.a.outputs }}",
          first: "${{ steps.b.outputs.first }}",
          key: "${{ steps.b.outputs.key }}",
        },
      }),
      { inputs: { n: 1 }, secrets: { TOKEN: "t", OTHER: "o" } },
    );
    expect(result).toEqual({
      outcome: "success",
      outputs: { a: { list: [1, 2], who: "run-1 test", env: "hello n=1" }, first: 1, key: "t" },
      failures: [],
    });
    expect(events.filter((event) => event.step === "b")).toEqual([
      { type: "step.started", step: "b", kind: "set" },
      {
        type: "step.finished",
        step: "b",
        outcome: "success",
        conclusion: "success",
        outputs: { first: 1, key: "t" },
        duration: 0,
      },
    ]);
  });

  it("reports attempts of what can be tried again, and a wait only where there was one", async () => {
    const later: Does = async ({ inputs }) => {
      await new Promise((resolve) => setImmediate(resolve));
      return { outcome: "success", result: inputs, outputs: inputs };
    };
    const steps = [{ id: "a" }, { id: "b" }];
    const { events } = await run(plan({ steps }), { parallel: 1, otherwise: later, retriable: true });
    expect(events.map((event) => `${event.type} ${event.step}`)).toEqual([
      "step.started a",
      "step.attempt.started a",
      "step.ready b",
      "step.attempt.finished a",
      "step.finished a",
      "step.started b",
      "step.attempt.started b",
      "step.attempt.finished b",
      "step.finished b",
    ]);
  });

  it("lets a failed step stop only what depends on it", async () => {
    const steps = [{ id: "a" }, { id: "b", needs: ["a"] }, { id: "c" }, { id: "d", needs: ["c"] }];
    const { result, events } = await run(plan({ steps }), { does: { a: fail } });
    expect(brief(events)).toEqual(["a failure exit", "c success", "b skipped needs", "d success"]);
    const error = { kind: "exit", message: "exit code 1", step: "a" };
    expect(result).toEqual({ outcome: "failure", outputs: {}, error, failures: [error] });
  });

  it("is empty when no step ran, and also without steps", async () => {
    expect((await run(plan({ steps: [{ id: "a", if: "false" }] }))).result.outcome).toBe("empty");
    expect((await run(plan({ steps: [] }))).result).toEqual({ outcome: "empty", outputs: {}, failures: [] });
  });

  it("turns an exception of a kind into a failure with its cause", async () => {
    const boom: Does = () => {
      throw new TypeError("boom");
    };
    const later: Does = () => Promise.reject(new TypeError("later"));
    const { result } = await run(plan({ steps: [{ id: "a" }, { id: "b" }] }), { does: { a: boom, b: later } });
    expect(result.failures.map(({ kind, message }) => [kind, message])).toEqual([
      ["internal", "boom"],
      ["internal", "later"],
    ]);
    expect(result.error?.cause).toContain("run.test.ts");
  });

  it("gives a plan that calls a workflow it does not hold as a bug, not as a hang", async () => {
    const { result } = await run(plan({ steps: [{ id: "a", calls: "nowhere" }] }));
    expect(result.error).toMatchObject({ kind: "internal", message: expect.stringContaining("nowhere"), step: "a" });
  });

  it("rejects when whoever listens throws, which is a bug, instead of standing still", async () => {
    const given = { secrets: {}, inputs: {}, parallel: 1, run: { id: "", started: "" }, retriable: () => false };
    for (const waits of [false, true]) {
      const ended = runPlan({
        ...given,
        plan: plan({ steps: [{ id: "a" }] }),
        execute: (attempt) => (waits ? Promise.resolve(succeed(attempt)) : succeed(attempt)),
        emit: (event) => {
          if (event.type === "step.finished") throw new Error("no room");
        },
        clock: new FakeClock(),
        signal: new AbortController().signal,
      });
      await expect(ended).rejects.toThrow("no room");
    }
  });

  it("fails before any step when an input is missing or a var cannot be resolved", async () => {
    const steps = [{ id: "a" }];
    const without = await run(plan({ inputs: [number("n")], steps }));
    expect(without.events).toEqual([]);
    expect(without.result.error).toMatchObject({
      kind: "input",
      message: expect.stringContaining("`n`"),
      position: at,
    });
    const wrong = await run(plan({ vars: { v: "${{ fromJSON('x') }}" }, steps }));
    expect(wrong.events).toEqual([]);
    expect(wrong.result.error).toMatchObject({ kind: "expression", position: at });
  });
});

describe("an expression that cannot be evaluated fails its step, with its position", () => {
  const cases: readonly (readonly [string, Parameters<typeof plan>[0]["steps"][number]])[] = [
    ["in an input", { id: "b", needs: ["~a"], set: { v: "${{ steps.a.outputs.n }}" } }],
    ["in text", { id: "b", needs: ["~a"], set: { v: "is ${{ steps.a.outputs.n }}" } }],
    ["in an output mapping", { id: "b", needs: ["~a"], outputs: { v: "${{ steps.a.outputs.n }}" } }],
    ["in its condition", { id: "b", needs: ["~a"], if: "steps.a.outputs.n == 0" }],
    ["in a condition that is no boolean", { id: "b", needs: ["~a"], if: "'false'" }],
    ["in its timeout", { id: "b", needs: ["~a"], timeout: "${{ steps.a.outputs.n }}" }],
  ];
  for (const [where, step] of cases) {
    it(where, async () => {
      const { result, events } = await run(plan({ steps: [{ id: "a", if: "false" }, step] }));
      expect(brief(events)).toEqual(["a skipped condition", "b failure expression"]);
      expect(result.error).toMatchObject({ kind: "expression", position: at, step: "b" });
      expect(events.filter(({ step: path }) => path === "b").map(({ type }) => type)).toEqual([
        "step.started",
        "step.finished",
      ]);
    });
  }

  it("and `continue-on-error` covers it", async () => {
    const steps = [{ id: "a", continueOnError: true, set: { v: "${{ fromJSON('x') }}" } }];
    const { result, events } = await run(plan({ steps }));
    expect(brief(events)).toEqual(["a failure expression tolerated"]);
    expect(result.outcome).toBe("success");
  });
});

describe("a value that is not there", () => {
  const keeping: Does = () => ({
    outcome: "failure",
    error: { kind: "exit", message: "exit code 3\nmore" },
    outputs: { stdout: "partial", "exit-code": 3 },
  });

  it("tells which step and why", async () => {
    const rows: readonly (readonly [string, string, Does | undefined, string])[] = [
      ["false", "n", undefined, "`a` was skipped: its condition `false` was false"],
      ["true", "n", fail, "`a` failed before producing its outputs (exit: exit code 1)"],
      ["true", "n", keeping, "`a` failed before producing `n` (exit: exit code 3)"],
      ["true", "n", undefined, "`a` never wrote `n`; it wrote `m`, `o`"],
      ["true", "n", () => ({ outcome: "cancelled" }), "`a` was cancelled before producing its outputs"],
    ];
    for (const [condition, name, does, message] of rows) {
      const { result } = await run(
        plan({
          steps: [
            { id: "a", if: condition, set: { m: 1, o: 2 } },
            { id: "b", needs: ["~a"], set: { v: `\${{ steps.a.outputs.${name} }}` } },
          ],
        }),
        { does: does === undefined ? {} : { a: does } },
      );
      expect(result.failures.find(({ step }) => step === "b")?.message).toBe(message);
    }
  });

  it("is what `default` is for", async () => {
    const set = { v: "${{ default(steps.a.outputs.n, 'none') }}", w: "${{ default(steps.a.outputs, 'nothing') }}" };
    const { events } = await run(
      plan({
        steps: [
          { id: "a", if: "false" },
          { id: "b", needs: ["~a"], set },
        ],
      }),
    );
    expect(events.at(-1)).toMatchObject({ step: "b", outputs: { v: "none", w: "nothing" } });
  });

  it("is null where the step's schema declares it, but not when the step did not succeed", async () => {
    const body = {
      kind: "run",
      command: { argv: true },
      shell: "bash",
      output: { json: { properties: { n: {} } } },
    } as const;
    const read = { id: "b", needs: ["~a"], set: { v: "${{ steps.a.outputs.N }}" } };
    const good = await run(plan({ steps: [{ id: "a", body }, read] }));
    expect(good.events.at(-1)).toMatchObject({ outputs: { v: null } });
    const mapped = await run(plan({ steps: [{ id: "a", body, outputs: { other: 1 } }, read] }));
    expect(mapped.result.error?.message).toBe("`a` never wrote `N`; it wrote `other`");
    const bad = await run(plan({ steps: [{ id: "a", body }, read] }), { does: { a: keeping } });
    expect(bad.result.failures.map(({ step }) => step)).toEqual(["a", "b"]);
  });

  it("is not what a failed step kept, nor its error and skip reason", async () => {
    const { events } = await run(
      plan({
        steps: [
          { id: "a", continueOnError: true },
          { id: "s", if: "false" },
          {
            id: "b",
            needs: ["~a", "~s"],
            set: {
              stdout: "${{ steps.a.outputs.stdout }}",
              all: "${{ steps.a.outputs }}",
              of: [
                "${{ steps.a.outcome }}",
                "${{ steps.a.conclusion }}",
                "${{ steps.a.error.kind }}",
                "${{ steps.a.skipReason }}",
              ],
              off: ["${{ steps.s.outcome }}", "${{ steps.s.error }}", "${{ steps.s.skipReason }}"],
            },
          },
        ],
      }),
      { does: { a: keeping } },
    );
    expect(events.at(-1)).toMatchObject({
      outputs: {
        stdout: "partial",
        all: { stdout: "partial", "exit-code": 3 },
        of: ["failure", "success", "exit", null],
        off: ["skipped", null, "condition"],
      },
    });
  });
});

describe("what a run promises", () => {
  it("an output mapping replaces the outputs and sees `result`", async () => {
    const does: Does = () => ({ outcome: "success", result: { text: "hi", turns: 2 }, outputs: { text: "hi" } });
    const outputs = { said: "${{ result.text }}!", turns: "${{ result.turns }}" };
    const { events } = await run(plan({ steps: [{ id: "a", outputs }] }), { does: { a: does } });
    expect(events.at(-1)).toMatchObject({ outputs: { said: "hi!", turns: 2 } });
  });

  it("an output without a value fails it with kind `output`", async () => {
    const spec = { steps: [{ id: "a" }, { id: "b", if: "false" }], outputs: { v: "${{ steps.b.outputs.v }}" } };
    const { result } = await run(plan(spec));
    expect(result).toMatchObject({ outcome: "failure", outputs: {}, error: { kind: "output", position: at } });
    expect(result.error?.message).toBe("the output `v` has no value: `b` was skipped: its condition `false` was false");
  });

  it("an output that cannot be evaluated fails it as an expression", async () => {
    const { result } = await run(plan({ steps: [{ id: "a" }], outputs: { v: "${{ fromJSON('x') }}" } }));
    expect(result.error).toMatchObject({ kind: "expression", position: at });
  });

  it("`expect` names every step and output that is missing", async () => {
    const steps = [{ id: "a" }, { id: "b", if: "false" }, { id: "c", continueOnError: true }];
    const expected = { steps: ["a", "b", "c"], outputs: ["v", "w"] };
    const outputs = { v: "${{ null }}", w: 1 };
    const { result } = await run(plan({ steps, outputs, expect: expected }), { does: { c: fail } });
    expect(result.outcome).toBe("failure");
    expect(result.failures.map(({ kind, message }) => `${kind}: ${message}`)).toEqual([
      "expect: the step `b` was expected to succeed: `b` was skipped: its condition `false` was false",
      "expect: the output `v` was expected, but it is null",
    ]);
    const nothing = await run(plan({ steps: [{ id: "b", if: "false" }], expect: { steps: ["b"], outputs: [] } }));
    expect(nothing.result.error?.kind).toBe("expect");
  });
});

describe("a group", () => {
  it("sees the steps around it, is seen by its outputs, and names paths", async () => {
    const { result, events } = await run(
      plan({
        steps: [
          { id: "a", set: { n: 1 } },
          {
            id: "g",
            needs: ["a"],
            group: [
              { id: "x", set: { n: "${{ steps.a.outputs.n }}" } },
              {
                id: "y",
                needs: ["x"],
                group: [{ id: "z", set: { n: "${{ steps.x.outputs.n }}" } }],
                groupOutputs: { n: "${{ steps.z.outputs.n }}" },
              },
            ],
            groupOutputs: { n: "${{ steps.y.outputs.n }}" },
          },
        ],
        outputs: { n: "${{ steps.g.outputs.n }}" },
      }),
    );
    expect(result.outputs).toEqual({ n: 1 });
    expect(brief(events)).toEqual(["a success", "g/x success", "g/y/z success", "g/y success", "g success"]);
  });

  it("fails with its first failed step, and hides none of the others from the exit code", async () => {
    const denied: Does = () => ({ outcome: "failure", error: { kind: "denied", message: "no" } });
    const { result, events } = await run(
      plan({ steps: [{ id: "g", group: [{ id: "x" }, { id: "h", group: [{ id: "y" }] }] }] }),
      { does: { x: fail, y: denied } },
    );
    expect(brief(events)).toEqual(["g/x failure exit", "g/h/y failure denied", "g/h failure denied", "g failure exit"]);
    expect(result.failures.map(({ kind, step }) => [kind, step])).toEqual([
      ["exit", "g/x"],
      ["denied", "g/h/y"],
    ]);
    expect(events.find((event) => event.type === "step.finished" && event.step === "g")).toMatchObject({
      error: { kind: "exit", step: "g/x" },
    });
  });

  it("is skipped when all its steps were, and tolerated when it says so", async () => {
    const steps = [
      { id: "g", group: [{ id: "x", if: "false" }] },
      { id: "after", needs: ["g"] },
      { id: "t", continueOnError: true, group: [{ id: "y" }] },
    ];
    const { result, events } = await run(plan({ steps }), { does: { y: fail } });
    expect(brief(events).toSorted()).toEqual([
      "after skipped needs",
      "g skipped empty",
      "g/x skipped condition",
      "t failure exit tolerated",
      "t/y failure exit",
    ]);
    expect(result).toMatchObject({ outcome: "success", failures: [] });
  });

  it("may ask for a failure around it", async () => {
    const group = [
      { id: "x", if: "failure('a')" },
      { id: "y", if: "failure()" },
    ];
    const { events } = await run(plan({ steps: [{ id: "a" }, { id: "g", needs: ["~a"], group }] }), {
      does: { a: fail },
    });
    expect(brief(events)).toEqual(["a failure exit", "g/x success", "g/y skipped condition", "g success"]);
  });

  it("holds no slot and gives none back: what runs at once is limited over all of them", async () => {
    let [now, most] = [0, 0];
    const count: Does = async (attempt) => {
      most = Math.max(most, ++now);
      await new Promise((resolve) => setImmediate(resolve));
      now--;
      return succeed(attempt);
    };
    const group = [{ id: "h", group: [{ id: "x" }, { id: "y" }] }, { id: "z" }];
    const steps = [{ id: "g", group }, { id: "k", needs: ["g"], group }, { id: "b" }, { id: "c", needs: ["g"] }];
    for (const [limits, parallel, expected] of [
      [{}, 1, 1],
      [{}, 2, 2],
      [{ parallel: 2 }, 8, 2],
    ] as const) {
      most = 0;
      const { result } = await run(plan({ limits, steps }), { parallel, otherwise: count });
      expect([result.outcome, most]).toEqual(["success", expected]);
    }
  });
});

describe("a called workflow", () => {
  it("sees its own inputs with their defaults and nothing else of the caller", async () => {
    const other = {
      inputs: [number("n"), { ...number("m"), default: { json: 5 } }],
      vars: { sum: ["${{ inputs.n }}", "${{ inputs.m }}"] },
      secrets: ["OWN"],
      steps: [{ id: "x", set: { sum: "${{ vars.sum }}", secrets: "${{ toJSON(secrets) }}", outer: "${{ steps.a }}" } }],
      outputs: {
        sum: "${{ steps.x.outputs.sum }}",
        secrets: "${{ steps.x.outputs.secrets }}",
        outer: "${{ steps.x.outputs.outer }}",
      },
    };
    const steps = [{ id: "a" }, { id: "c", calls: "other.yaml", set: { n: 1 } }];
    const { result } = await run(
      plan({ secrets: ["MINE"], steps, outputs: { c: "${{ steps.c.outputs }}" } }, { "other.yaml": other }),
      { secrets: { OWN: "own", MINE: "mine" } },
    );
    expect(result.outputs).toEqual({
      c: { sum: [1, 5], secrets: JSON.stringify({ OWN: "own" }, null, 2), outer: null },
    });
  });

  it("fails its step with its own failures, those of `expect` too", async () => {
    const other = { steps: [{ id: "x", if: "false" }], expect: { steps: ["x"], outputs: [] } };
    const { result } = await run(
      plan(
        {
          steps: [
            { id: "c", calls: "o" },
            { id: "d", calls: "p" },
          ],
        },
        {
          o: other,
          p: { inputs: [number("n")], steps: [] },
        },
      ),
    );
    expect(result.failures.map(({ kind, step }) => `${step} ${kind}`).toSorted()).toEqual(["c expect", "d input"]);
  });
});
