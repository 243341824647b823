import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createPayer } from "../../src/agent/budget.ts";
import { type Answer, askModel, again } from "../../src/agent/model-call.ts";
import { type AskedModel, ModelChain } from "../../src/agent/model-chain.ts";
import { requestHash } from "../../src/agent/request.ts";
import type { AgentEvent } from "../../src/model/agent-event.ts";
import { noUsage } from "../../src/model/message.ts";
import type { ModelClient, ModelDelta } from "../../src/model/ports.ts";
import { unknownFacts } from "../../src/model/ports.ts";
import { openaiClient } from "../../src/providers/openai.ts";
import { FakeClock } from "../engine/fake-clock.ts";
import { requestWith } from "../providers/drain.ts";
import { serverOptions } from "../providers/server-options.ts";
import { choice, sse, sseHeaders, sseServer, type SseServer } from "../providers/sse-server.ts";

let server: SseServer;
beforeAll(async () => {
  server = await sseServer();
});
afterAll(() => server.close());

const ids = { step: "draft", agent: "draft@1", parent: null, turn: 1 };

interface Asked {
  readonly answer: Answer;
  readonly events: readonly AgentEvent[];
  /** When each request came, in milliseconds of the fake clock. */
  readonly times: readonly number[];
}

/** Asks a real server through the real SDK; only the waits between the calls are the fake clock's. */
async function asking(
  answers: readonly ((response: ServerResponse) => void)[],
  more: { signal?: AbortSignal; onWait?: () => void; random?: () => number } = {},
): Promise<Asked> {
  const clock = new FakeClock();
  const times: number[] = [];
  server.answer = (_, response) => {
    const answer = answers[Math.min(times.length, answers.length - 1)];
    times.push(clock.monotonic());
    answer?.(response);
  };
  const model = {
    model: "custom/m",
    client: openaiClient(serverOptions(server.url, { apiKey: "k", keyName: "MY_KEY" })),
  };
  return { ...(await driven([model], clock, more)), times };
}

async function driven(
  [first, ...others]: readonly [AskedModel, ...AskedModel[]],
  clock: FakeClock,
  { signal = new AbortController().signal, onWait = () => {}, random = () => 0 }: Parameters<typeof asking>[1] = {},
): Promise<Omit<Asked, "times">> {
  const models = new ModelChain(first, others);
  const request = requestWith("hi", { model: first.model });
  const events: AgentEvent[] = [];
  const generator = askModel({ ids, models, request, signal, payer: createPayer(undefined), clock, random });
  let isOver = false;
  const reading = (async () => {
    let next = await generator.next();
    for (; next.done !== true; next = await generator.next()) events.push(next.value);
    isOver = true;
    return next.value;
  })();
  while (!isOver) {
    await sleep(1);
    if (clock.pending === 0) continue;
    onWait();
    clock.fireNext();
  }
  return { answer: await reading, events };
}

const good = (response: ServerResponse): void => {
  response.writeHead(200, sseHeaders).end(sse(choice({ content: "fine" }, "stop")));
};
const status =
  (code: number, headers: Readonly<Record<string, string>> = {}, body = "{}") =>
  (response: ServerResponse): void => {
    response.writeHead(code, { "content-type": "application/json", ...headers }).end(body);
  };
const cut = (response: ServerResponse): void => {
  response.writeHead(200, sseHeaders).end(sse(choice({ content: "half of it" })).replace("data: [DONE]\n\n", ""));
};
const malformed = (response: ServerResponse): void => {
  response.writeHead(200, sseHeaders).end('data: {"choices":\n\n');
};
const broken = (response: ServerResponse): void => {
  response.destroy();
};

describe("a model call that fails", () => {
  it.each<[string, (response: ServerResponse) => void, number[]]>([
    ["429", status(429), [0, 3_000, 9_000, 21_000]],
    ["429 with a shorter delay of the server's", status(429, { "retry-after": "2" }), [0, 3_000, 9_000, 21_000]],
    ["429 with a longer one", status(429, { "retry-after": "20" }), [0, 20_000, 40_000, 60_000]],
    ["429 with one in milliseconds", status(429, { "retry-after-ms": "4500" }), [0, 4_500, 10_500, 22_500]],
    ["429 with 60 s", status(429, { "retry-after": "60" }), [0, 60_000, 120_000, 180_000]],
    ["408", status(408), [0, 1_500, 4_500, 10_500]],
    ["500", status(500), [0, 1_500, 4_500, 10_500]],
    ["502 with a page", status(502, { "content-type": "text/html" }, "<p>".repeat(9_999)), [0, 1_500, 4_500, 10_500]],
    ["503 with a delay", status(503, { "retry-after": "5" }), [0, 5_000, 10_000, 16_000]],
    ["529", status(529), [0, 1_500, 4_500, 10_500]],
    ["a broken connection", broken, [0, 1_500, 4_500, 10_500]],
    ["a part that is not JSON", malformed, [0, 1_500, 4_500, 10_500]],
    ["a stream that was cut", cut, [0, 1_500, 3_000, 4_500]],
    ["400 that says to try again", status(400, { "x-should-retry": "true" }), [0, 1_500, 4_500, 10_500]],
  ])("is made again, three times, after %s", async (_, answer, expected) => {
    const { times, answer: last, events } = await asking([answer]);
    expect(times).toEqual(expected);
    expect(last.type).toBe("failed");
    const told = events.filter(({ type }) => type !== "message.delta");
    expect(told.map((event) => (event.type === "model.retry" ? event.attempt : event.type))).toEqual([
      2,
      3,
      4,
      "model.failed",
    ]);
    const waits = told.flatMap((event) => (event.type === "model.retry" ? [event.delay] : []));
    expect(waits).toEqual(expected.slice(1).map((time, index) => time - (expected[index] ?? 0)));
  });

  it.each<[string, (response: ServerResponse) => void, string]>([
    ["400", status(400, {}, '{"error":{"message":"bad field `x`"}}'), "bad field `x`"],
    ["401", status(401), "MY_KEY"],
    ["403", status(403), "MY_KEY"],
    ["404", status(404), "`m`"],
    ["a quota", status(429, {}, '{"error":{"code":"insufficient_quota","message":"pay"}}'), "no quota left"],
    ["402", status(402), "no quota left"],
    ["500 that says not to", status(500, { "x-should-retry": "false" }), "500"],
    ["a delay of 61 s", status(429, { "retry-after": "61" }), "61 s"],
    ["a redirect", status(307, { location: "http://127.0.0.1:1/" }), "redirect"],
  ])("is never made again after %s, and says why", async (_, answer, words) => {
    const { times, answer: last, events } = await asking([answer]);
    expect(times).toEqual([0]);
    expect(last.type === "failed" && last.failure.message).toContain(words);
    expect(events).toMatchObject([{ type: "model.failed", attempt: 1 }]);
  });

  it("and then succeeds is a success, and what it lost is counted", async () => {
    const { answer, events, times } = await asking([cut, status(529), good]);
    expect(answer).toMatchObject({ type: "message", text: "fine" });
    expect(times).toEqual([0, 1_500, 4_500]);
    const [first, second] = events.filter((event) => event.type === "model.retry");
    expect(first).toMatchObject({ delay: 1_500, usage: { estimated: true } });
    expect(second).not.toHaveProperty("usage");
    expect(answer.lost).toEqual({ ...first?.usage });
    expect(answer.lost.output).toBeGreaterThan(0);
    expect(events.at(-1)?.type).toBe("message.delta");
  });

  it("waits up to a quarter longer, by chance", async () => {
    expect((await asking([status(429), good], { random: () => 1 })).times).toEqual([0, 3_750]);
  });

  it("is not waited for once the run is cancelled", async () => {
    const abort = new AbortController();
    const { answer, times } = await asking([status(429)], { signal: abort.signal, onWait: () => abort.abort() });
    expect(times).toEqual([0]);
    expect(answer).toMatchObject({ type: "failed", failure: { kind: "cancelled" } });
  });

  it("for silence is made again as after any broken connection", () => {
    const silent = { kind: "timeout", message: "no byte from the server for 60 s", transient: true } as const;
    const random = (): number => 0;
    expect(again(silent, { attempt: 2, begun: false, random }).delay).toBe(3_000);
    expect(again(silent, { attempt: 3, begun: true, random }).delay).toBe(1_500);
    expect(again(silent, { attempt: 4, begun: true, random }).delay).toBeUndefined();
  });
});

describe("a list of models", () => {
  function model(name: string, ...deltas: readonly ModelDelta[]): AskedModel & { readonly asked: string[] } {
    const asked: string[] = [];
    const client: ModelClient = {
      provider: name,
      facts: unknownFacts,
      async *stream(request) {
        asked.push(request.model);
        await Promise.resolve();
        yield* deltas;
      },
    };
    return { model: `${name}/m`, client, asked };
  }
  const failing = (kind: "unavailable" | "provider_error" | "refused" | "overflow", transient = false): ModelDelta => ({
    type: "failed",
    failure: { kind, message: "because", transient },
  });
  const done: readonly ModelDelta[] = [
    { type: "text", text: "fine" },
    { type: "done", stop: "end", usage: noUsage },
  ];

  it("goes on to the next after the retries of the first, and says so", async () => {
    const [a, b] = [model("a", failing("provider_error", true)), model("b", ...done)];
    const { answer, events } = await driven([a, b], new FakeClock());
    expect([a.asked.length, b.asked]).toEqual([4, ["b/m"]]);
    expect(answer).toMatchObject({ type: "message", text: "fine" });
    expect(events.slice(3, 5)).toMatchObject([
      { type: "model.failed", model: "a/m", attempt: 4, error: { kind: "provider_error" } },
      { type: "model.fallback", from: "a/m", model: "b/m", provider: "b" },
    ]);
    const asked = requestWith("hi", { model: "b/m" });
    expect(events[4]).toMatchObject({ request: requestHash(asked) });
  });

  it.each(["refused", "overflow"] as const)(
    "does not go on after `%s`: another model is no answer to that",
    async (kind) => {
      const [a, b] = [model("a", failing(kind)), model("b", ...done)];
      const { answer } = await driven([a, b], new FakeClock());
      expect([answer.type, b.asked]).toEqual(["failed", []]);
    },
  );

  it("fails as its last model when none answers", async () => {
    const { answer, events } = await driven(
      [model("a", failing("unavailable")), model("b", failing("provider_error"))],
      new FakeClock(),
    );
    expect(answer).toMatchObject({ type: "failed", failure: { kind: "provider_error" } });
    expect(events.map(({ type }) => type)).toEqual(["model.failed", "model.fallback", "model.failed"]);
  });

  it("stays with the model that answered, and holds for all of them what holds for the least", () => {
    const facts = (more: Partial<ModelClient["facts"]>): ModelClient["facts"] => ({ ...unknownFacts, ...more });
    const [a, b] = [model("a"), model("b")];
    const chain = new ModelChain(
      { ...a, client: { ...a.client, facts: facts({ window: 10, jsonSchema: true, cost: () => 2 }) } },
      [{ ...b, client: { ...b.client, facts: facts({ window: 8, maxOutput: 4, cost: () => 3 }) } }],
    );
    expect(chain.facts).toMatchObject({ window: 8, maxOutput: 4, jsonSchema: false });
    expect(chain.facts.cost(noUsage)).toBe(3);
    chain.fallBack();
    expect([chain.current.model, chain.fallBack(), chain.current.model]).toEqual(["b/m", undefined, "b/m"]);
  });
});
