import { describe, expect, it } from "vitest";
import { createPayer, type Paid } from "../../src/agent/budget.ts";
import { mostInput } from "../../src/agent/estimate.ts";
import type { AgentEvent } from "../../src/model/agent-event.ts";
import { type Message, noUsage, type Usage } from "../../src/model/message.ts";
import { narrowBudget } from "../../src/model/budget.ts";
import type { Budget, ModelFacts, ModelFailure, ModelRequest, SpendLimit } from "../../src/model/ports.ts";
import { running } from "./running.ts";

/** A dollar for a million tokens read, ten for those written, two for those put into a cache. */
const facts: ModelFacts = {
  jsonSchema: false,
  cost: ({ input, output, cacheWrite }) => (input + output * 10 + cacheWrite * 2) / 1e6,
};
const ids = { step: "s", agent: "s@1", parent: null, turn: 1 };
const message = (text: string): Message => ({ role: "user", blocks: [{ type: "text", text }] });

function requestOf(more: Partial<ModelRequest> = {}): ModelRequest {
  return { model: "m", agent: "a", step: "s", messages: [message("x".repeat(2000))], tools: [], ...more };
}

interface Made {
  readonly reply: Paid;
  readonly events: AgentEvent[];
  /** What the model was asked for; undefined when it was not asked. */
  readonly maxOutput: number | undefined;
  readonly budget: Budget | undefined;
}

/** One call under one limit, answered as `answer` says. */
async function paying(
  limit: Omit<SpendLimit, "of">,
  answer: (request: ModelRequest) => Paid,
  more: { readonly request?: Partial<ModelRequest>; readonly facts?: ModelFacts } = {},
): Promise<Made> {
  const budget = narrowBudget(undefined, { of: "the run", ...limit });
  const events: AgentEvent[] = [];
  let maxOutput: number | undefined;
  const call = {
    ids,
    client: { facts: more.facts ?? facts },
    request: requestOf(more.request),
    signal: new AbortController().signal,
  };
  const paid = createPayer(budget).pay(call, async function* (request) {
    maxOutput = request.payableOutput;
    yield* [];
    return answer(request);
  });
  let next = await paid.next();
  for (; next.done !== true; next = await paid.next()) events.push(next.value);
  return { reply: next.value, events, maxOutput, budget };
}

const replied =
  (usage: Partial<Usage>, stop: "end" | "length" = "end") =>
  (): Paid => ({
    type: "message",
    message: { role: "assistant", blocks: [{ type: "text", text: "hello" }] },
    stop,
    usage: { ...noUsage, cost: null, ...usage },
  });
const failing = (text: string, failure: Partial<ModelFailure>, usage?: Usage) => (): Paid => ({
  type: "failed",
  text,
  failure: { kind: "provider_error", message: "broke", transient: true, ...failure },
  usage,
});
const settledOf = ({ events }: Made): AgentEvent | undefined => events.find(({ type }) => type === "budget.settled");

describe("a model call under a budget", () => {
  it("is made as it is where there is none", async () => {
    const { events, maxOutput } = await paying({}, replied({ input: 5 }));
    expect(events).toEqual([]);
    expect(maxOutput).toBeUndefined();
  });

  it("sets aside its request at two bytes a token, at the dearer price, and 8,192 tokens of reply; and settles what it took", async () => {
    const made = await paying({ cost: 1 }, replied({ input: 400, output: 100 }));
    const tokens = 1000 + 16 + 8192;
    expect(made.events).toEqual([
      { ...ids, type: "budget.reserved", tokens, cost: (1016 * 2 + 81_920) / 1e6 },
      { ...ids, type: "budget.settled", tokens: 500, cost: 0.0014, estimated: false },
    ]);
    expect(made.maxOutput).toBe(8192);
    expect(made.budget?.left().cost).toBe(1 - 0.0014);
  });

  const outputs: readonly (readonly [
    what: string,
    request: Partial<ModelRequest>,
    known: Partial<ModelFacts>,
    most: number,
  ])[] = [
    ["what the agent says", { maxOutput: 20_000 }, { maxOutput: 4096 }, 20_000],
    ["the longest the model can write", {}, { maxOutput: 4096 }, 4096],
    ["8,192 tokens of a model that can write more", {}, { maxOutput: 128_000 }, 8192],
  ];
  it.each(outputs)("asks for no longer reply than %s", async (_what, request, known, most) => {
    const made = await paying({ cost: 1 }, replied({}), { request, facts: { ...facts, ...known } });
    expect(made.maxOutput).toBe(most);
  });

  it("asks for a shorter reply where no longer one can be paid, and says so when it was cut off", async () => {
    const made = await paying({ tokens: 3016 }, replied({ input: 1000, output: 2000 }, "length"));
    expect(made.maxOutput).toBe(2000);
    expect(made.reply).toMatchObject({ cutShort: expect.stringContaining("2000 tokens") });
    const cheap = await paying({ cost: 0.022 }, replied({ input: 10, output: 10 }));
    expect(cheap.maxOutput).toBe(Math.floor((0.022e6 - 1016 * 2) / 10));
    expect(cheap.reply).not.toHaveProperty("cutShort");
  });

  it.each([
    ["1,024 tokens", { tokens: 1016 + 1023 }, {}],
    ["what the agent asks for, if that is less", { tokens: 1016 + 99 }, { maxOutput: 100 }],
  ])("is not made for less than %s", async (_what, limit, request) => {
    const made = await paying(limit, replied({}), { request });
    expect(made.maxOutput).toBeUndefined();
    expect(made.reply).toMatchObject({ type: "failed", failure: { kind: "budget", transient: false } });
    expect(made.events).toMatchObject([{ type: "budget.exceeded", limit: "tokens", of: "the run", spent: 0 }]);
  });

  it("is not made where its price is unknown and cost is limited", async () => {
    const made = await paying({ cost: 1 }, replied({}), { facts: { jsonSchema: false, cost: () => null } });
    expect(made.maxOutput).toBeUndefined();
    expect(made.events).toMatchObject([{ type: "budget.exceeded", worst: null }]);
  });

  const most = 1016;
  const ends: readonly (readonly [what: string, answer: () => Paid, tokens: number, estimated: boolean])[] = [
    ["the server did not count", replied({ input: 7, output: 7, estimated: true }), most + 16 + 3, true],
    ["it was refused by the server", failing("", { status: 429, kind: "rate_limit" }), 0, false],
    ["nobody was reached", failing("", { kind: "unavailable" }), 0, false],
    ["nothing came in time", failing("", { kind: "timeout" }), most, true],
    ["it broke off", failing("twelve bytes", {}), most + 6, true],
    ["it broke off and the server had counted", failing("x", {}, { ...noUsage, input: 70, output: 9 }), 79, false],
  ];
  it.each(ends)("is settled when %s", async (_what, answer, tokens, estimated) => {
    expect(settledOf(await paying({ cost: 1 }, answer))).toMatchObject({ tokens, estimated });
  });

  it("counts as the worst while nobody knows, also when it throws", async () => {
    const budget = narrowBudget(undefined, { of: "the run", tokens: 10_000 });
    const call = { ids, client: { facts }, request: requestOf(), signal: new AbortController().signal };
    const paid = createPayer(budget).pay(call, async function* (): AsyncGenerator<AgentEvent, Paid> {
      yield* [];
      throw new Error("a bug");
    });
    await paid.next();
    await expect(paid.next()).rejects.toThrow("a bug");
    expect(budget?.left().tokens).toBe(10_000 - 1016 - 8192);
  });
});

describe("the size of a request", () => {
  it("is what the server counted before, and what was added since", () => {
    const first = message("hello");
    const before = { model: "m", messages: [first], tokens: 5000 };
    const longer = requestOf({ messages: [first, message("1234")] });
    expect(mostInput(longer, before)).toBe(5000 + 16 + 2);
    expect(mostInput({ ...longer, model: "other" }, before)).toBe(16 + 3 + 16 + 2);
    expect(mostInput(requestOf({ messages: [message("hello")] }), before)).toBe(16 + 3);
  });

  it("counts tools, results and pictures", () => {
    const tools = [{ name: "Read", description: "Reads.", parameters: { type: "object" } }];
    expect(mostInput(requestOf({ messages: [], tools }), undefined)).toBeGreaterThan(512 + 16);
    const data = "A".repeat(100_000);
    const picture: Message = {
      role: "user",
      blocks: [{ type: "result", id: "1", blocks: [{ type: "image", mediaType: "image/png", data }] }],
    };
    expect(mostInput(requestOf({ messages: [picture] }), undefined)).toBe(16 + 16 + 2000);
  });
});

describe("an agent over its budget", () => {
  it("ends with `budget` and the text it had, and its last call is not made", async () => {
    const budget = narrowBudget(undefined, { of: "agent `writer`", tokens: 3000 });
    if (budget === undefined) throw new Error("no budget");
    const { result, events } = await running(
      "- { text: First., calls: [{ name: Nothing, args: {} }], usage: { input: 100, output: 2500 } }\n- text: Second.",
      { budget },
    );
    expect(result).toMatchObject({
      outcome: "budget",
      text: "First.",
      reason: expect.stringContaining("limits.tokens"),
    });
    expect(events.filter(({ type }) => type === "budget.reserved")).toHaveLength(1);
  });

  it("ends with `budget` when its answer was cut off for want of money", async () => {
    const budget = narrowBudget(undefined, { of: "the run", tokens: 2000 });
    if (budget === undefined) throw new Error("no budget");
    const { result } = await running("- { text: Half an ans, stop: length }", { budget });
    expect(result).toMatchObject({ outcome: "budget", reason: expect.stringContaining("the limits could still pay") });
  });
});
