import { describe, expect, it } from "vitest";
import type { Event } from "../../src/model/event.ts";
import { noUsage } from "../../src/model/message.ts";
import { limitsSpent, Spending } from "../../src/model/spending.ts";

const started = (step: string, agent = `${step}@1`, continues?: string): Event => ({
  type: "agent.started",
  step,
  agent,
  parent: null,
  name: "a",
  model: "m",
  provider: "p",
  tools: [],
  ...(continues !== undefined && { continues }),
});
const ids = (step: string, turn = 1, agent = `${step}@1`) => ({ step, agent, parent: null, turn });
const said = (step: string, tokens: number, turn = 1): Event => ({
  ...ids(step, turn),
  type: "message",
  message: { role: "assistant", blocks: [] },
  stop: "end",
  usage: { ...noUsage, input: tokens, cost: tokens / 100 },
});
const reserved = (step: string, tokens: number): Event => ({
  ...ids(step),
  type: "budget.reserved",
  tokens,
  cost: tokens / 100,
});
const settled = (step: string, tokens: number): Event => ({
  ...ids(step),
  type: "budget.settled",
  tokens,
  cost: tokens / 100,
  estimated: false,
});

function spending(...events: readonly Event[]): Spending {
  const account = new Spending();
  for (const event of events) account.add(event);
  return account;
}

describe("what was spent, folded from the events of a run", () => {
  it("is the usage of replies where no limit was in force", () => {
    expect(spending(started("a"), said("a", 10), said("a", 5, 2)).within("")).toEqual({
      tokens: 15,
      cost: 0.15000000000000002,
    });
  });

  it("is what was settled where one was, and the reply does not count again", () => {
    const account = spending(started("a"), reserved("a", 90), settled("a", 10), said("a", 8), said("a", 3, 2));
    expect(account.within("").tokens).toBe(13);
  });

  it("counts a call whole that was never settled", () => {
    expect(spending(started("a"), reserved("a", 90)).within("")).toEqual({ tokens: 90, cost: 0.9 });
  });

  it("is told by path: a step with its items, iterations and steps, and none with a longer name", () => {
    const paths = ["g/a", "g[0]/a", "g#2", "g", "go", "b"];
    const account = spending(...paths.flatMap((path) => [started(path), said(path, 1)]));
    expect(["", "g", "g[0]", "g/a", "b", "x"].map((path) => account.within(path).tokens)).toEqual([6, 4, 1, 1, 1, 0]);
  });

  it("of an agent run is that of the one it goes on with, too", () => {
    const account = spending(started("a"), said("a", 7), started("a", "a@2", "a@1"));
    account.add({ ...ids("a", 2, "a@2"), type: "budget.settled", tokens: 5, cost: null, estimated: false });
    expect(account.ofAgent("a@2")).toEqual({ tokens: 12, cost: null });
    expect(account.within("a").tokens).toBe(12);
  });
});

it("limits are told with what was spent of them, without the tail of binary sums", () => {
  expect(limitsSpent({ cost: 1, tokens: 9 }, { tokens: 3, cost: 0.1 + 0.2 })).toEqual([
    { limit: "cost", most: 1, spent: 0.3 },
    { limit: "tokens", most: 9, spent: 3 },
  ]);
  expect(limitsSpent({ cost: 1 }, { tokens: 3, cost: null })).toEqual([{ limit: "cost", most: 1, spent: null }]);
  expect(limitsSpent({ turns: 1 }, { tokens: 3, cost: 1 })).toEqual([]);
});
