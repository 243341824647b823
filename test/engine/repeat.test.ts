import { describe, expect, it } from "vitest";
import type { StepEvent } from "../../src/model/event.ts";
import type { Json } from "../../src/model/json.ts";
import type { Foreach, Repeat, Retry } from "../../src/model/plan.ts";
import { FakeClock } from "./fake-clock.ts";
import type { StepSpec } from "./plan-builder.ts";
import { at, plan, template } from "./plan-builder.ts";
import { brief, fail, finish, lasting, run, start, succeed } from "./running.ts";
import type { Does } from "./running.ts";

function repeat(until: string, max: number, onMax: Repeat["onMax"] = "fail"): Repeat {
  return { until: { source: until, at }, max, onMax };
}

const foreach = (items: Json): Foreach => ({ items: template(items), failFast: true, matrix: false });

const once: Retry = { max: 1, backoff: 10, factor: 2, jitter: false, cap: 100, on: ["exit"] };

function outputsOf(events: readonly StepEvent[], step: string): Json | undefined {
  const end = events.findLast((event) => event.type === "step.finished" && event.step === step);
  return end?.type === "step.finished" ? end.outputs : undefined;
}

/** Fails the first times it is called for a path. */
function failingFirst(times: number): Does {
  const calls = new Map<string, number>();
  return (attempt) => {
    const before = calls.get(attempt.path) ?? 0;
    calls.set(attempt.path, before + 1);
    return before < times ? fail(attempt) : succeed(attempt);
  };
}

describe("repeat", () => {
  it("runs until the condition over `result` holds; `iteration` counts from 1, `previous` is null at first", async () => {
    const step = {
      id: "a",
      repeat: repeat("result.n == 3", 5),
      set: { n: "${{ iteration }}", before: "${{ previous.n }}" },
    };
    const { result, events } = await run(plan({ steps: [step] }));
    expect(result.outcome).toBe("success");
    expect(brief(events)).toEqual(["a#1 success", "a#2 success", "a#3 success", "a success"]);
    expect(outputsOf(events, "a#1")).toEqual({ n: 1, before: null });
    expect(outputsOf(events, "a")).toEqual({ n: 3, before: 2 });
  });

  it("looks at `result`, while `previous` is what `outputs` made of it", async () => {
    const step = {
      id: "a",
      repeat: repeat("result.n == 2", 3),
      set: { n: "${{ iteration }}", seen: "${{ toJSON(previous) }}" },
      outputs: { mapped: "${{ result.n }}", seen: "${{ result.seen }}" },
    };
    const { events } = await run(plan({ steps: [step] }));
    expect(outputsOf(events, "a")).toMatchObject({ mapped: 2 });
    expect(JSON.parse(String((outputsOf(events, "a") as { seen: string }).seen))).toEqual({ mapped: 1, seen: "null" });
  });

  it("of a group sees its inner steps, which see `iteration` and `previous`", async () => {
    const step: StepSpec = {
      id: "a",
      repeat: repeat("steps.check.outputs.good && result.text == 'dr2'", 4),
      group: [
        { id: "draft", set: { text: "${{ format('{0}{1}', 'dr', iteration) }}", last: "${{ previous.text }}" } },
        { id: "check", set: { good: "${{ steps.draft.outputs.last == 'dr1' }}" }, needs: ["draft"] },
      ],
      groupOutputs: { text: "${{ steps.draft.outputs.text }}" },
    };
    const { events } = await run(plan({ steps: [step] }));
    expect(outputsOf(events, "a")).toEqual({ text: "dr2" });
    expect(brief(events).filter((line) => line.startsWith("a#2"))).toEqual([
      "a#2/draft success",
      "a#2/check success",
      "a#2 success",
    ]);
  });

  it("that never gets there fails with kind `check`, at its condition; or accepts what it has", async () => {
    const step = (onMax: Repeat["onMax"], max = 2): StepSpec => ({
      id: "a",
      repeat: repeat("false", max, onMax),
      set: { n: "${{ iteration }}" },
    });
    const strict = await run(plan({ steps: [step("fail")] }));
    expect(strict.result.error).toEqual({
      kind: "check",
      message: "`until` (false) did not hold after 2 iterations",
      position: at,
      step: "a",
    });
    expect(outputsOf(strict.events, "a")).toBeUndefined();
    expect((await run(plan({ steps: [step("fail", 1)] }))).result.error?.message).toContain("after one iteration");
    const mild = await run(plan({ steps: [step("accept")] }));
    expect(mild.result.outcome).toBe("success");
    expect(outputsOf(mild.events, "a")).toEqual({ n: 2 });
  });

  it("ends with the iteration that fails, without asking the condition", async () => {
    const does: Does = (attempt) => (attempt.path === "a#2" ? fail(attempt) : succeed(attempt));
    const step = { id: "a", repeat: repeat("iteration == 2", 5, "accept"), set: { n: 1 } };
    const { result, events } = await run(plan({ steps: [step] }), { does: { a: does } });
    expect(result.error).toEqual({ kind: "exit", message: "exit code 1", step: "a" });
    expect(brief(events)).toEqual(["a#1 success", "a#2 failure exit", "a failure exit"]);
  });

  it("fails when its condition is none, and says where", async () => {
    const { result } = await run(plan({ steps: [{ id: "a", repeat: repeat("result.n", 5), set: { n: 7 } }] }));
    expect(result.error).toMatchObject({ kind: "expression", position: at, step: "a" });
  });

  it("sees its item, and each item counts for itself", async () => {
    const step = {
      id: "a",
      foreach: foreach([1, 3]),
      repeat: repeat("iteration == item", 3),
      set: { n: "${{ iteration }}" },
    };
    const { events } = await run(plan({ steps: [step] }));
    expect(outputsOf(events, "a")).toEqual({ items: [{ n: 1 }, { n: 3 }], failed: [] });
    const inside = (item: string): string[] => brief(events).filter((line) => line.startsWith(item));
    expect(inside("a[0]")).toEqual(["a[0]#1 success", "a[0] success"]);
    expect(inside("a[1]")).toEqual(["a[1]#1 success", "a[1]#2 success", "a[1]#3 success", "a[1] success"]);
  });

  it("in a loop in a group in a loop has paths that say where it is", async () => {
    const inner: StepSpec = { id: "ok", foreach: foreach([0]), repeat: repeat("true", 1), retry: once };
    const step: StepSpec = {
      id: "group",
      foreach: foreach([0, 0, 0]),
      repeat: repeat("iteration == 2", 2),
      group: [inner],
    };
    const { events } = await run(plan({ steps: [step] }));
    expect(brief(events)).toContain("group[2]#2/ok[0]#1 success");
  });

  it("around a group none of whose steps run is skipped as `empty`, without running it again", async () => {
    const step: StepSpec = { id: "a", repeat: repeat("false", 9), group: [{ id: "b", if: "false" }] };
    const { result, events } = await run(plan({ steps: [step] }));
    expect(result.outcome).toBe("empty");
    expect(brief(events)).toEqual(["a#1/b skipped condition", "a#1 skipped empty", "a skipped empty"]);
  });

  it("ends when an iteration has nothing to do, as after the last one", async () => {
    const step = (onMax: Repeat["onMax"]): StepSpec => ({
      id: "a",
      repeat: repeat("false", 9, onMax),
      group: [{ id: "b", if: "iteration == 1", set: { n: 1 } }],
      groupOutputs: { n: "${{ steps.b.outputs.n }}" },
    });
    const strict = await run(plan({ steps: [step("fail")] }));
    expect(strict.result.error?.message).toBe(
      "`until` (false) did not hold after one iteration, and no step ran in the next one",
    );
    expect(outputsOf((await run(plan({ steps: [step("accept")] }))).events, "a")).toEqual({ n: 1 });
  });

  it("is cancelled between iterations, also where each answers at once", async () => {
    const controls = { cancel: (): void => undefined };
    const does: Does = (attempt) => {
      if (attempt.path === "a#3") controls.cancel();
      return succeed(attempt);
    };
    const running = start(plan({ steps: [{ id: "z" }, { id: "a", needs: ["z"], repeat: repeat("false", 1000) }] }), {
      does: { a: does, z: async (attempt) => (await Promise.resolve(), succeed(attempt)) },
    });
    controls.cancel = running.cancel;
    expect((await finish(running)).outcome).toBe("cancelled");
    expect(brief(running.events)).toEqual(["z success", "a#1 success", "a#2 success", "a#3 success", "a cancelled"]);
  });

  it("gives each iteration its own tries and its own time", async () => {
    const clock = new FakeClock();
    const step = { id: "a", repeat: repeat("iteration == 2", 2), retry: once, timeout: 50 };
    const { events } = await runWith(clock, step, failingFirst(1));
    expect(brief(events)).toEqual(["a#1 success", "a#2 success", "a success"]);
    expect(events.filter(({ type }) => type === "step.retrying").map((event) => event.step)).toEqual(["a#1", "a#2"]);
    const late = await runWith(new FakeClock(), { ...step, timeout: 5 }, (attempt) => lasting(clock, 10)(attempt));
    expect(brief(late.events)).toEqual(["a#1 failure timeout", "a failure timeout"]);
  });
});

async function runWith(clock: FakeClock, step: StepSpec, does: Does): Promise<{ events: StepEvent[] }> {
  const running = start(plan({ steps: [step] }), { clock, does: { a: does } });
  await finish(running);
  return running;
}
