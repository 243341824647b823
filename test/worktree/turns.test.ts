import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compareOrders, Turns } from "../../src/worktree/turns.ts";

const never = new AbortController().signal;

describe("an order of declaration", () => {
  test("is that of the steps, then of items, then of iterations, and what lies inside comes behind", () => {
    const sorted = [
      [0, 0, 0],
      [0, 0, 1],
      [0, 1, 0],
      [1, 0, 0],
      [1, 0, 0, 0, 0, 0],
      [1, 0, 0, 2, 0, 0],
      [2, 0, 0],
    ];
    expect(sorted.toReversed().toSorted(compareOrders)).toEqual(sorted);
  });
});

describe("turns", () => {
  test("are taken in the order of declaration, whoever ends first", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.shuffledSubarray([0, 1, 2, 3, 4, 5, 6, 7], { minLength: 1 }),
        fc.func(fc.nat(3)),
        async (ends, lag) => {
          const turns = new Turns();
          const open = new Map(ends.toSorted((a, b) => a - b).map((order) => [order, turns.open([order])]));
          const applied: number[] = [];
          await Promise.all(
            ends.map(async (order) => {
              for (let waited = lag(order); waited > 0; waited--) await Promise.resolve();
              const turn = open.get(order);
              expect(await turn?.mine(never)).toBe(true);
              applied.push(order);
              turn?.close();
            }),
          );
          expect(applied).toEqual(applied.toSorted((a, b) => a - b));
        },
      ),
      { numRuns: 200 },
    );
  });

  test("pass to the next when one is given up, and end for those that are cancelled", async () => {
    const turns = new Turns();
    const [first, second, third] = [turns.open([0]), turns.open([1]), turns.open([2])];
    const cancel = new AbortController();
    const [two, three] = [second.mine(cancel.signal), third.mine(never)];
    expect([first.waits, second.waits, third.waits]).toEqual([false, true, true]);
    cancel.abort();
    expect(await two).toBe(false);
    second.close();
    expect(third.waits).toBe(true);
    first.close();
    expect(await three).toBe(true);
  });

  test("are not waited for by one that is declared earlier and comes later", async () => {
    const turns = new Turns();
    const late = turns.open([5]);
    const early = turns.open([1]);
    expect(early.waits).toBe(false);
    expect(await early.mine(never)).toBe(true);
    const waiting = late.mine(never);
    early.close();
    early.close();
    expect(await waiting).toBe(true);
  });

  test("of two thousand are over in a moment", async () => {
    const turns = new Turns();
    const open = Array.from({ length: 2000 }, (_, index) => turns.open([index]));
    const begun = performance.now();
    const all = Promise.all(open.slice(1).map(async (turn) => (await turn.mine(never)) && turn.close()));
    open[0]?.close();
    await all;
    expect(performance.now() - begun).toBeLessThan(5000);
  });
});
