import { describe, expect, it } from "vitest";
import type { StepEvent } from "../../src/model/event.ts";
import type { SkipReason } from "../../src/model/outcome.ts";
import type { StepSpec } from "./plan-builder.ts";
import { at, plan } from "./plan-builder.ts";
import { brief, fail, run } from "./running.ts";
import type { Does } from "./running.ts";

const inputs = { yes: true, no: false, word: "maybe" };
const declared = Object.keys(inputs).map((name) => ({ name, schema: { json: {} }, at }));

/** How the source `a` ends, and what `b` does after it. */
const ends = ["success", "failure", "skipped", "cancelled", "tolerated"] as const;
const table: readonly (readonly [edge: string, condition: string, ...what: readonly string[]])[] = [
  // edge, if, then what `b` does after `a` ended with: success, failure, skipped, cancelled, tolerated
  ["a", "", "runs", "needs", "needs", "needs", "runs"],
  ["a", "success()", "runs", "condition", "condition", "condition", "runs"],
  ["a", "failure()", "condition", "runs", "condition", "condition", "condition"],
  ["a", "failure('a')", "condition", "runs", "condition", "condition", "condition"],
  ["a", "always()", "runs", "runs", "runs", "runs", "runs"],
  ["a", "cancelled()", "condition", "condition", "condition", "condition", "condition"],
  ["a", "success() || failure()", "runs", "runs", "condition", "condition", "runs"],
  ["a", "inputs.yes", "runs", "needs", "needs", "needs", "runs"],
  ["a", "inputs.no", "condition", "needs", "needs", "needs", "condition"],
  ["~a", "", "runs", "runs", "runs", "runs", "runs"],
  ["~a", "success()", "runs", "runs", "runs", "runs", "runs"],
  ["~a", "failure()", "condition", "runs", "condition", "condition", "condition"],
  ["~a", "failure('a')", "condition", "runs", "condition", "condition", "condition"],
  ["~a", "always()", "runs", "runs", "runs", "runs", "runs"],
  ["~a", "cancelled()", "condition", "condition", "condition", "condition", "condition"],
  ["~a", "inputs.yes", "runs", "runs", "runs", "runs", "runs"],
  ["~a", "inputs.no", "condition", "condition", "condition", "condition", "condition"],
  ["~a", "steps.a.outcome == 'failure'", "condition", "runs", "condition", "condition", "runs"],
  ["~a", "steps.a.conclusion == 'success'", "runs", "condition", "condition", "condition", "runs"],
  ["a?inputs.yes", "", "runs", "needs", "needs", "needs", "runs"],
  ["a?inputs.yes", "success()", "runs", "condition", "condition", "condition", "runs"],
  ["a?inputs.yes", "inputs.no", "condition", "needs", "needs", "needs", "condition"],
  ["a?inputs.no", "", "edge", "needs", "needs", "needs", "edge"],
  ["a?inputs.no", "success()", "condition", "condition", "condition", "condition", "condition"],
  ["a?inputs.no", "failure()", "condition", "runs", "condition", "condition", "condition"],
  ["a?inputs.no", "always()", "runs", "runs", "runs", "runs", "runs"],
  ["a?inputs.no", "inputs.yes", "edge", "needs", "needs", "needs", "edge"],
  // Not asked for by the condition, an edge's own condition is not even evaluated.
  ["a?inputs.word", "always()", "runs", "runs", "runs", "runs", "runs"],
  ["a?inputs.word", "", "fails", "needs", "needs", "needs", "fails"],
  ["a?inputs.word", "success()", "fails", "condition", "condition", "condition", "fails"],
  ["a", "inputs.word", "fails", "needs", "needs", "needs", "fails"],
  ["~a", "success() && inputs.word", "fails", "fails", "fails", "fails", "fails"],
];

describe("a step behind another", () => {
  for (const [edge, condition, ...what] of table) {
    it(`over \`${edge}\` with if: ${condition || "(none)"}`, async () => {
      const found: string[] = [];
      for (const end of ends)
        found.push(await after(end, { id: "b", needs: [edge], ...(condition && { if: condition }) }));
      expect(Object.fromEntries(ends.map((end, index) => [end, found[index]]))).toEqual(
        Object.fromEntries(ends.map((end, index) => [end, what[index]])),
      );
    });
  }

  it("with `join: any` asks for one open edge, and never races", async () => {
    const rows = [
      ["ok", ["runs", "runs", "runs", "runs", "runs"]],
      ["bad", ["runs", "needs", "needs", "needs", "runs"]],
      ["off", ["runs", "needs", "needs", "needs", "runs"]],
    ] as const;
    for (const [other, what] of rows) {
      const found: string[] = [];
      for (const end of ends) found.push(await after(end, { id: "b", join: "any", needs: ["a", other] }));
      expect(found).toEqual(what);
    }
  });
});

describe("failure()", () => {
  it("looks through steps that were skipped, over soft edges too, and not sideways", async () => {
    const { events } = await run(
      plan({
        steps: [
          { id: "a" },
          { id: "b", needs: ["a"] },
          { id: "c", needs: ["~b"], if: "failure()" },
          { id: "d", if: "failure()" },
          { id: "e", needs: ["c"], if: "failure('A')" },
        ],
      }),
      { does: { a: fail } },
    );
    expect(brief(events).toSorted()).toEqual([
      "a failure exit",
      "b skipped needs",
      "c success",
      "d skipped condition",
      "e success",
    ]);
  });
});

describe("a skip tells why", () => {
  it("with the condition and the values it saw", async () => {
    const steps = [{ id: "a" }, { id: "b", needs: ["~a"], if: "inputs.no && steps.a.outcome == 'success'" }];
    expect(await reasonOf("b", steps)).toEqual({
      kind: "condition",
      condition: "inputs.no && steps.a.outcome == 'success'",
      saw: [
        { expression: "inputs.no", value: false },
        { expression: "steps.a.outcome", value: "success" },
      ],
    });
  });

  it("with the values of status functions", async () => {
    expect(await reasonOf("b", [{ id: "a" }, { id: "b", needs: ["a"], if: "failure('a')" }])).toMatchObject({
      saw: [{ expression: "failure('a')", value: false }],
    });
  });

  it("with the edge whose condition was false", async () => {
    const steps = [
      { id: "a", set: { n: 1 } },
      { id: "b", needs: ["a?steps.a.outputs.n == 2"] },
    ];
    expect(await reasonOf("b", steps)).toEqual({
      kind: "edge",
      step: "a",
      condition: "steps.a.outputs.n == 2",
      saw: [{ expression: "steps.a.outputs.n", value: 1 }],
    });
  });

  it("with the step it needs, and along a chain with the one that began it", async () => {
    const steps = [{ id: "a" }, { id: "b", needs: ["a"] }, { id: "c", needs: ["b"] }, { id: "d", needs: ["c"] }];
    const failed = "`a` failed (exit: exit code 1)";
    const does = { a: fail };
    expect(await reasonOf("b", steps, does)).toEqual({ kind: "needs", step: "a", outcome: "failure", message: failed });
    const message = `\`b\` was skipped: ${failed}`;
    expect(await reasonOf("c", steps, does)).toEqual({ kind: "needs", step: "b", outcome: "skipped", message });
    expect(await reasonOf("d", steps, does)).toEqual({ kind: "needs", step: "c", outcome: "skipped", message });
  });
});

async function reasonOf(
  id: string,
  steps: readonly StepSpec[],
  does: { readonly [id: string]: Does } = {},
): Promise<SkipReason | undefined> {
  const { events } = await run(plan({ inputs: declared, steps }), { inputs, does });
  const skipped = events.find((event): event is StepEvent & { type: "step.skipped" } => {
    return event.type === "step.skipped" && event.step === id;
  });
  return skipped?.reason;
}

/** What `b` does when `a` ends like that: `runs`, `fails`, or the kind of its skip. */
async function after(end: (typeof ends)[number], b: StepSpec): Promise<string> {
  const a: StepSpec = { id: "a", ...(end === "skipped" && { if: "false" }), continueOnError: end === "tolerated" };
  const others: StepSpec[] = [{ id: "ok" }, { id: "bad" }, { id: "off", if: "false" }];
  const does: { [id: string]: Does } = { bad: fail };
  if (end === "failure" || end === "tolerated") does["a"] = fail;
  if (end === "cancelled") does["a"] = () => ({ outcome: "cancelled" });
  const { events } = await run(plan({ inputs: declared, steps: [a, ...others, b] }), { inputs, does });
  for (const event of events) {
    if (!("step" in event) || event.step !== "b") continue;
    if (event.type === "step.skipped") return event.reason.kind;
    if (event.type === "step.finished") return event.outcome === "success" ? "runs" : "fails";
  }
  return "nothing";
}
