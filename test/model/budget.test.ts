import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { amount, narrowBudget } from "../../src/model/budget.ts";
import type { Budget, Reservation, SpendLimit } from "../../src/model/ports.ts";

const never = new AbortController().signal;

function budgetOf(...limits: readonly SpendLimit[]): Budget {
  let budget: Budget | undefined;
  for (const limit of limits) budget = narrowBudget(budget, limit);
  if (budget === undefined) throw new Error("no limit");
  return budget;
}

/** `pending` while it waits. */
async function stateOf<T>(promise: Promise<T>): Promise<T | "pending"> {
  await new Promise((resolve) => setImmediate(resolve));
  return Promise.race([promise, Promise.resolve("pending" as const)]);
}

async function granted(answer: ReturnType<Budget["reserve"]>): Promise<Reservation> {
  const result = await stateOf(answer);
  if (result === "pending" || !result.ok) throw new Error(`not granted: ${JSON.stringify(result)}`);
  return result.value;
}

describe("a budget", () => {
  it("is not there without a limit on tokens or cost", () => {
    expect(narrowBudget(undefined, { of: "the run" })).toBeUndefined();
    const outer = budgetOf({ of: "the run", tokens: 1 });
    expect(narrowBudget(outer, { of: "step `x`" })).toBe(outer);
  });

  it("gives back the difference between the worst and what was spent", async () => {
    const budget = budgetOf({ of: "the run", cost: 0.1 });
    const first = await granted(budget.reserve({ tokens: 10, cost: 0.1 }, never));
    first.settle({ tokens: 1, cost: 0.01 });
    expect(budget.left()).toEqual({ tokens: Infinity, cost: 0.09 });
    await granted(budget.reserve({ tokens: 10, cost: 0.09 }, never));
  });

  it("lets a call wait while calls in flight hold what would be enough", async () => {
    const budget = budgetOf({ of: "the run", tokens: 100 });
    const first = await granted(budget.reserve({ tokens: 60, cost: null }, never));
    const second = budget.reserve({ tokens: 60, cost: null }, never);
    expect(await stateOf(second)).toBe("pending");
    first.settle({ tokens: 40, cost: null });
    await granted(second);
  });

  it("names the limit that cannot pay any more, with what was spent and what the call could take", async () => {
    const budget = budgetOf({ of: "the run", cost: 5 }, { of: "step `x`", cost: 0.1 });
    (await granted(budget.reserve({ tokens: 1, cost: 0.1 }, never))).settle({ tokens: 1, cost: 0.09 });
    expect(await budget.reserve({ tokens: 1, cost: 0.03 }, never)).toEqual({
      ok: false,
      error: {
        kind: "budget",
        message:
          "`limits.cost` of step `x`: $0.10, spent $0.09, this call could take $0.03 (a smaller `max-output` sets less aside)",
        limit: "cost",
        of: "step `x`",
        most: 0.1,
        spent: 0.09,
        worst: 0.03,
      },
    });
  });

  it("refuses what waited as soon as it can never be paid", async () => {
    const budget = budgetOf({ of: "the run", tokens: 100 });
    const first = await granted(budget.reserve({ tokens: 60, cost: null }, never));
    const second = budget.reserve({ tokens: 60, cost: null }, never);
    first.settle({ tokens: 50, cost: null });
    expect(await stateOf(second)).toMatchObject({ ok: false, error: { kind: "budget", spent: 50, worst: 60 } });
  });

  it("refuses a price nobody knows under a limit on cost, and takes it under one on tokens", async () => {
    const unpriced = await budgetOf({ of: "the run", cost: 1 }).reserve({ tokens: 1, cost: null }, never);
    expect(unpriced).toMatchObject({ ok: false, error: { kind: "budget", worst: null } });
    if (unpriced.ok || unpriced.error.kind !== "budget") throw new Error("it was granted");
    expect(unpriced.error.message).toContain("price");
    await granted(budgetOf({ of: "the run", tokens: 1 }).reserve({ tokens: 1, cost: null }, never));
  });

  it("counts an unknown actual cost as the worst, and an unknown cost before as everything", async () => {
    const budget = budgetOf({ of: "the run", cost: 1 });
    (await granted(budget.reserve({ tokens: 1, cost: 0.7 }, never))).settle({ tokens: 1, cost: null });
    expect(budget.left().cost).toBe(0.3);
    const resumed = budgetOf({ of: "the run", cost: 1, spent: { tokens: 5, cost: null } });
    const refused = await resumed.reserve({ tokens: 1, cost: 0 }, never);
    expect(refused).toMatchObject({ ok: false, error: { spent: Infinity } });
    expect(JSON.stringify(refused)).toContain("spent an unknown amount");
  });

  it("is served in the order of asking: a small call does not overtake a large one of the same limit", async () => {
    const budget = budgetOf({ of: "the run", tokens: 100 });
    const first = await granted(budget.reserve({ tokens: 60, cost: 0 }, never));
    const large = budget.reserve({ tokens: 80, cost: 0 }, never);
    const small = budget.reserve({ tokens: 10, cost: 0 }, never);
    expect(await stateOf(small)).toBe("pending");
    first.settle({ tokens: 5, cost: 0 });
    await granted(large);
    await granted(small);
  });

  it("does not hold up a neighbour whose own limit has enough", async () => {
    const run = budgetOf({ of: "the run", tokens: 1000 });
    const [a, b] = [run.within({ of: "a", tokens: 100 }), run.within({ of: "b", tokens: 100 })];
    await granted(a.reserve({ tokens: 80, cost: 0 }, never));
    expect(await stateOf(a.reserve({ tokens: 80, cost: 0 }, never))).toBe("pending");
    await granted(b.reserve({ tokens: 80, cost: 0 }, never));
  });

  it("forgets a call that is cancelled while it waits, and lets those behind it go on", async () => {
    const budget = budgetOf({ of: "the run", tokens: 100 });
    const first = await granted(budget.reserve({ tokens: 60, cost: 0 }, never));
    const abort = new AbortController();
    const large = budget.reserve({ tokens: 80, cost: 0 }, abort.signal);
    const small = budget.reserve({ tokens: 10, cost: 0 }, never);
    abort.abort();
    expect(await stateOf(large)).toEqual({ ok: false, error: { kind: "cancelled" } });
    (await granted(small)).settle({ tokens: 10, cost: 0 });
    first.settle({ tokens: 60, cost: 0 });
    expect(budget.left().tokens).toBe(30);
    expect(await budget.reserve({ tokens: 1, cost: 0 }, abort.signal)).toMatchObject({ error: { kind: "cancelled" } });
  });

  it("keeps no residue of binary fractions", async () => {
    const budget = budgetOf({ of: "the run", cost: 0.3 });
    for (const cost of [0.1, 0.1, 0.1])
      (await granted(budget.reserve({ tokens: 1, cost }, never))).settle({ tokens: 1, cost });
    expect(budget.left().cost).toBe(0);
  });

  it("is settled once", async () => {
    const reservation = await granted(budgetOf({ of: "the run", tokens: 9 }).reserve({ tokens: 9, cost: 0 }, never));
    reservation.settle({ tokens: 1, cost: 0 });
    expect(() => reservation.settle({ tokens: 1, cost: 0 })).toThrow("once");
  });
});

describe("any calls under any nested limits", () => {
  const call = fc.record({
    /** Which of the nested budgets it is made under. */
    under: fc.nat(3),
    worst: fc.integer({ min: 1, max: 60 }),
    /** Of the worst, in per cent. */
    used: fc.nat(100),
    aborted: fc.boolean(),
  });
  const limits = fc.array(fc.integer({ min: 20, max: 200 }), { minLength: 4, maxLength: 4 });

  it("never spend more than a limit, all get an answer, and a refusal is right", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(call, { maxLength: 40 }),
        limits,
        fc.infiniteStream(fc.nat()),
        async (calls, most, pick) => {
          // run ⊃ group ⊃ step, and a second step beside the group
          const run = budgetOf({ of: "0", tokens: most[0] });
          const group = run.within({ of: "1", tokens: most[1] });
          const places = [
            run,
            group,
            group.within({ of: "2", tokens: most[2] }),
            run.within({ of: "3", cost: most[3] }),
          ];
          const inside = [[0], [0, 1], [0, 1, 2], [0, 3]];
          const spent = [0, 0, 0, 0];
          const open: { settle: () => void }[] = [];
          let answers = 0;
          const asked = calls.map(async ({ under, worst, used, aborted }) => {
            const abort = new AbortController();
            const asking = places[under]?.reserve({ tokens: worst, cost: worst }, abort.signal);
            if (aborted) queueMicrotask(() => abort.abort());
            const result = await asking;
            answers += 1;
            if (result?.ok === true) {
              const actual = Math.floor((worst * used) / 100);
              open.push({
                settle() {
                  for (const place of inside[under] ?? []) spent[place] = (spent[place] ?? 0) + actual;
                  result.value.settle({ tokens: actual, cost: actual });
                },
              });
            } else if (result?.error.kind === "budget") {
              const over = (inside[under] ?? []).some((place) => (spent[place] ?? 0) + worst > (most[place] ?? 0));
              expect(over).toBe(true);
            } else expect(aborted).toBe(true);
          });
          const order = pick[Symbol.iterator]();
          for (let quiet = 0; quiet < 2;) {
            await new Promise((resolve) => setImmediate(resolve));
            if (open.length === 0) quiet += 1;
            else open.splice((order.next().value ?? 0) % open.length, 1)[0]?.settle();
          }
          // Nobody is left waiting once nothing is in flight.
          expect(answers).toBe(calls.length);
          await Promise.all(asked);
          spent.forEach((value, place) => expect(value).toBeLessThanOrEqual(most[place] ?? 0));
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe("an amount", () => {
  const rows: readonly (readonly ["cost" | "tokens", number, string])[] = [
    ["cost", 0, "$0.00"],
    ["cost", 0.1, "$0.10"],
    ["cost", 0.0013, "$0.0013"],
    ["cost", 1234.5, "$1,234.50"],
    ["tokens", 12345, "12,345 tokens"],
  ];
  it.each(rows)("of %s %d reads %s", (limit, value, text) => expect(amount(limit, value)).toBe(text));
});
