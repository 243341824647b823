import { describe, expect, it } from "vitest";
import type { Foreach, Limits, Undo } from "../../src/model/plan.ts";
import type { Attempt } from "../../src/model/ports.ts";
import type { StepSpec, WorkflowSpec } from "./plan-builder.ts";
import { at, plan, template } from "./plan-builder.ts";
import { finish, start } from "./running.ts";

/** What every attempt was told, by its path; each spends ten tokens and a cent, where that can be paid. */
async function told(
  root: WorkflowSpec,
  more: { readonly others?: { readonly [key: string]: WorkflowSpec }; readonly spent?: (path: string) => number } = {},
): Promise<{ left: { [path: string]: string }; turns: { [path: string]: number | undefined } }> {
  const left: { [path: string]: string } = {};
  const turns: { [path: string]: number | undefined } = {};
  const running = start(plan(root, more.others ?? {}), {
    spent: (path) => ({ tokens: more.spent?.(path) ?? 0, cost: 0 }),
    otherwise: async ({ path, attempt, budget, turns: most, signal }: Attempt) => {
      const key = attempt === 1 ? path : `${path} try ${attempt}`;
      turns[key] = most;
      const now = budget?.left();
      left[key] = now === undefined ? "none" : `${now.tokens} $${now.cost}`;
      const reserved = await budget?.reserve({ tokens: 10, cost: 0.01 }, signal);
      if (reserved?.ok === false) {
        const { kind, message } =
          reserved.error.kind === "budget" ? reserved.error : { kind: "exit" as const, message: "" };
        return { outcome: "failure", error: { kind, message } };
      }
      reserved?.value.settle({ tokens: 10, cost: 0.01 });
      const isFlaky = path.endsWith("flaky") && attempt === 1;
      if (isFlaky) return { outcome: "failure", error: { kind: "exit", message: "once" } };
      return { outcome: "success", result: {}, outputs: {} };
    },
  });
  await finish(running);
  return { left, turns };
}

const limits: Limits = { tokens: 100, cost: 1 };
const three: Foreach = { items: template([1, 2, 3]), failFast: true, matrix: false, parallel: 1 };
const retry = { max: 1, backoff: 0, factor: 1, jitter: false, cap: 0, on: ["exit"] } as const;

describe("limits on what is spent", () => {
  it("are not there where nobody wrote any", async () => {
    const { left } = await told({ steps: [{ id: "a", limits: { parallel: 1, duration: 60_000 } }] });
    expect(left).toEqual({ a: "none" });
  });

  const rows: readonly (readonly [what: string, root: WorkflowSpec, left: object])[] = [
    ["the run", { limits, steps: [{ id: "a" }, { id: "b", needs: ["a"] }] }, { a: "100 $1", b: "90 $0.99" }],
    [
      "a step, over its items",
      {
        steps: [
          { id: "a", foreach: three, limits },
          { id: "b", needs: ["a"] },
        ],
      },
      { "a[0]": "100 $1", "a[1]": "90 $0.99", "a[2]": "80 $0.98", b: "none" },
    ],
    [
      "a step, over its attempts",
      { steps: [{ id: "flaky", retry, limits }] },
      { flaky: "100 $1", "flaky try 2": "90 $0.99" },
    ],
    [
      "a group, over its steps",
      { steps: [{ id: "g", limits, group: [{ id: "a" }, { id: "b", needs: ["a"] }] }] },
      { "g/a": "100 $1", "g/b": "90 $0.99" },
    ],
    [
      "all of them together: the tightest counts",
      {
        limits: { cost: 0.05 },
        steps: [{ id: "g", limits: { tokens: 30 }, group: [{ id: "a", limits: { tokens: 20 } }] }],
      },
      { "g/a": "20 $0.05" },
    ],
  ];
  it.each(rows)("count for %s", async (_what, root, left) => expect((await told(root)).left).toEqual(left));

  it("of a workflow count for each call of it", async () => {
    const steps: StepSpec[] = [
      { id: "x", calls: "sub" },
      { id: "y", calls: "sub", needs: ["x"] },
    ];
    const { left } = await told({ steps }, { others: { sub: { limits, steps: [{ id: "a" }] } } });
    expect(left).toEqual({ "x/a": "100 $1", "y/a": "100 $1" });
  });

  it("begin with what was spent under the same path before", async () => {
    const spent = (path: string): number => ({ "": 50, g: 40, "g/a": 15 })[path] ?? 0;
    const root = {
      limits: { tokens: 200 },
      steps: [{ id: "g", limits, group: [{ id: "a", limits: { tokens: 20 } }] }],
    };
    expect((await told(root, { spent })).left).toEqual({ "g/a": "5 $1" });
    expect((await told({ limits: { tokens: 55 }, steps: [{ id: "a" }] }, { spent })).left).toEqual({
      a: "5 $Infinity",
    });
  });

  it("hold for the `undo` of what was done inside, too", async () => {
    const body = { kind: "run", command: { script: "" }, shell: "bash" } as const;
    const undo: Undo = { kind: "run", body, inputs: template({}), at };
    const { left } = await told({
      limits,
      steps: [
        { id: "a", undo },
        { id: "flaky", needs: ["a"] },
      ],
    });
    expect(left).toEqual({ a: "100 $1", flaky: "90 $0.99", "a/undo": "80 $0.98" });
  });
});

describe("limits.turns", () => {
  it("of everything around are told to each attempt: the smallest, and none where none is", async () => {
    const group: StepSpec[] = [{ id: "a" }, { id: "b", limits: { turns: 3 } }, { id: "c", limits: { turns: 0 } }];
    const steps: StepSpec[] = [
      { id: "g", limits: { turns: 5 }, group },
      { id: "d", limits: { turns: 20 } },
    ];
    expect((await told({ limits: { turns: 10 }, steps })).turns).toEqual({ "g/a": 5, "g/b": 3, "g/c": 5, d: 10 });
    expect((await told({ steps: [{ id: "a" }] })).turns).toEqual({ a: undefined });
  });
});
