import { describe, expect, it } from "vitest";
import type { Json } from "../../src/model/json.ts";
import type { Foreach, Limits } from "../../src/model/plan.ts";
import { FakeClock } from "./fake-clock.ts";
import type { StepSpec, WorkflowSpec } from "./plan-builder.ts";
import { plan, template } from "./plan-builder.ts";
import { brief, finish, lasting, start } from "./running.ts";

const foreach = (items: Json): Foreach => ({ items: template(items), failFast: true, matrix: false });
const five = foreach([1, 2, 3, 4, 5]);

/** Runs steps that last 10 ms each; tells how many ran at once at most, what happened and how long it took. */
async function measure(
  root: WorkflowSpec,
  others: { readonly [key: string]: WorkflowSpec } = {},
): Promise<{ most: number; time: number; happened: string[]; kind: string | undefined; slots: number }> {
  const clock = new FakeClock();
  let now = 0;
  let most = 0;
  const running = start(plan(root, others), {
    clock,
    parallel: 8,
    otherwise: async (attempt) => {
      most = Math.max(most, ++now);
      const end = await lasting(clock, 10)(attempt);
      now -= 1;
      return end;
    },
  });
  const result = await finish(running);
  return {
    most,
    time: clock.monotonic(),
    happened: brief(running.events),
    kind: result.error?.kind,
    slots: clock.pending,
  };
}

describe("limits.parallel", () => {
  const limits: Limits = { parallel: 2 };
  const group: StepSpec[] = ["a", "b", "c", "d", "e"].map((id) => ({ id }));
  const rows: readonly { readonly what: string; readonly step: StepSpec; readonly sub?: WorkflowSpec }[] = [
    { what: "a foreach", step: { id: "x", foreach: five, limits } },
    { what: "a group", step: { id: "x", group, limits } },
    { what: "a foreach of groups", step: { id: "x", foreach: foreach([1]), group, limits } },
    { what: "a step that calls a workflow", step: { id: "x", calls: "sub", limits }, sub: { steps: group } },
    { what: "a workflow that is called", step: { id: "x", calls: "sub" }, sub: { steps: group, limits } },
    {
      what: "a group around another, looser one",
      step: { id: "x", limits, group: [{ id: "y", group, limits: { parallel: 4 } }] },
    },
    {
      what: "a group inside of another, looser one",
      step: { id: "x", limits: { parallel: 4 }, group: [{ id: "y", group, limits }] },
    },
  ];
  it.each(rows)("bounds what runs at once inside $what", async ({ step, sub }) => {
    const { most, time, kind } = await measure({ steps: [step] }, sub ? { sub } : {});
    expect(most).toBe(2);
    expect(time).toBe(30);
    expect(kind).toBeUndefined();
  });

  it("leaves the steps outside alone, and slots that wait inside take none of theirs", async () => {
    const steps: StepSpec[] = [{ id: "x", foreach: five, limits: { parallel: 1 } }, ...group];
    expect(await measure({ steps, limits: { parallel: 6 } })).toMatchObject({ most: 6, time: 50 });
  });

  it("lets those that wait be cancelled with their step", async () => {
    const { happened, kind } = await measure({
      steps: [
        { id: "x", foreach: five, limits: { parallel: 1, duration: 15 } },
        { id: "y", needs: ["~x"] },
      ],
    });
    expect(happened).toEqual([
      "x[0] success",
      "x[1] cancelled",
      "x[2] skipped cancelled",
      "x[3] skipped cancelled",
      "x[4] skipped cancelled",
      "x failure budget",
      "y success",
    ]);
    expect(kind).toBe("budget");
  });
});

describe("limits.duration", () => {
  const once = { max: 5, backoff: 0, factor: 1, jitter: false, cap: 0, on: ["timeout"] } as const;
  const until = { source: "false", at: { file: "", line: 1, column: 1, endLine: 1, endColumn: 1 } };
  const rows: readonly (readonly [what: string, step: Partial<StepSpec>])[] = [
    ["items", { foreach: { ...five, parallel: 1 } }],
    ["iterations", { repeat: { until, max: 9, onMax: "fail" } }],
    ["attempts", { timeout: 4, retry: once }],
    ["steps inside", { group: [{ id: "a" }, { id: "b", needs: ["a"] }] }],
  ];
  it.each(rows)("counts all %s of a step together, and fails it with kind `budget`", async (_what, step) => {
    const { time, kind, happened, slots } = await measure({ steps: [{ id: "x", ...step, limits: { duration: 15 } }] });
    expect(time).toBe(15);
    expect(kind).toBe("budget");
    expect(happened.at(-1)).toBe("x failure budget");
    expect(slots).toBe(0);
    expect((await measure({ steps: [{ id: "x", ...step, limits: { duration: 1000 } }] })).kind).not.toBe("budget");
  });

  it("of a workflow that is called counts the call", async () => {
    const sub = { limits: { duration: 15 }, steps: [{ id: "a" }, { id: "b", needs: ["a"] }] };
    const { happened } = await measure({ steps: [{ id: "x", calls: "sub" }] }, { sub });
    expect(happened).toEqual(["x/a success", "x/b cancelled", "x failure budget"]);
  });

  it("keeps what the items gave, and can be tolerated", async () => {
    const clock = new FakeClock();
    const steps: StepSpec[] = [
      {
        id: "x",
        foreach: { ...foreach([1, 2]), parallel: 1 },
        limits: { duration: 15 },
        continueOnError: true,
        set: { n: "${{ item }}" },
      },
      { id: "y", needs: ["x"], set: { got: "${{ steps.x.outputs.items }}", kind: "${{ steps.x.error.kind }}" } },
    ];
    const running = start(plan({ steps, outputs: { y: "${{ steps.y.outputs }}" } }), {
      clock,
      does: { x: lasting(clock, 10) },
    });
    expect((await finish(running)).outputs).toEqual({ y: { got: [{ n: 1 }, null], kind: "budget" } });
  });
});
