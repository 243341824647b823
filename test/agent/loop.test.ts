import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { guardsOf } from "../../src/agent/guard.ts";
import type { AgentEvent } from "../../src/model/agent-event.ts";
import { noUsage } from "../../src/model/message.ts";
import type { ModelClient, ModelDelta, ModelFailure } from "../../src/model/ports.ts";
import { unknownFacts } from "../../src/model/ports.ts";
import { ok } from "../../src/model/result.ts";
import { hastyClock, running, tool } from "./running.ts";

/** A client whose every reply is `deltas`. */
function saying(...deltas: ModelDelta[]): ModelClient {
  return {
    provider: "fake",
    facts: unknownFacts,
    async *stream() {
      await Promise.resolve();
      yield* deltas;
    },
  };
}

function types(events: readonly AgentEvent[]): string[] {
  return events.map(({ type }) => type).filter((type) => type !== "message.delta");
}

describe("an agent", () => {
  it("that answers in text is done", async () => {
    const { result, events } = await running("- { text: Hello., usage: { input: 5, output: 2 } }");
    expect(result).toEqual({
      outcome: "done",
      reason: "the model answered",
      turns: 1,
      text: "Hello.",
      usage: { ...noUsage, input: 5, output: 2 },
    });
    expect(types(events)).toEqual(["message", "turn.started", "message", "turn.finished"]);
    expect(events.map((event) => ("turn" in event ? event.turn : -1)).slice(0, 2)).toEqual([0, 1]);
  });

  it("calls tools, reads their results and goes on", async () => {
    const { result, events } = await running(
      "- calls: [{ name: Echo, args: { text: abc } }]\n- text: got ${{ results[0].text }}",
      {
        tools: [tool("Echo")],
      },
    );
    expect(result).toMatchObject({ outcome: "done", text: "got abc", turns: 2 });
    expect(types(events)).toEqual([
      "message",
      "turn.started",
      "message",
      "tool.started",
      "tool.finished",
      "message",
      "turn.finished",
      "turn.started",
      "message",
      "turn.finished",
    ]);
  });

  it("has its message in the log before any tool of it runs", async () => {
    const seen: string[] = [];
    const spy = tool("Spy", {
      run: () => {
        seen.push("effect");
        return Promise.resolve(ok({ blocks: [] }));
      },
    });
    await running("- calls: [{ name: Spy }, { name: Spy }]\n- text: x", { tools: [spy] }, ({ type }) => {
      if (type !== "message.delta") seen.push(type);
    });
    expect(seen.slice(0, 5)).toEqual(["message", "turn.started", "message", "tool.started", "effect"]);
  });

  it("adds up the usage of its turns", async () => {
    const { result } = await running(
      "- { calls: [{ name: Echo, args: { text: a } }], usage: { input: 10, output: 1 } }\n- { text: b, usage: { input: 20, output: 2, cache-read: 3 } }",
      { tools: [tool("Echo")] },
    );
    expect(result.usage).toEqual({ ...noUsage, input: 30, output: 3, cacheRead: 3 });
  });

  it("sends text and arguments as they come", async () => {
    const { events } = await running(
      "- { text: abcdef, calls: [{ name: Echo, args: { text: x } }], chunk: 4 }\n- text: y",
      {
        tools: [tool("Echo")],
      },
    );
    const deltas = events.flatMap((event) => (event.type === "message.delta" ? [event.delta] : []));
    expect(deltas.slice(0, 4)).toEqual([
      { type: "text", text: "abcd" },
      { type: "text", text: "ef" },
      { type: "call.started", id: "call_1_1", name: "Echo" },
      { type: "call.args", id: "call_1_1", text: '{"te' },
    ]);
  });

  it("has the same messages whatever the size of the pieces", async () => {
    const messages = async (chunk: number): Promise<unknown> => {
      const turns = `- { text: "Grüße 🌍", calls: [{ name: Echo, args: { text: "é🌍" } }], chunk: ${chunk} }\n- { text: the end, chunk: ${chunk} }`;
      const { events, result } = await running(turns, { tools: [tool("Echo")] });
      return [result, events.filter(({ type }) => type === "message")];
    };
    const expected = await messages(1_000);
    const property = fc.asyncProperty(fc.integer({ min: 1, max: 40 }), async (chunk) => {
      expect(await messages(chunk)).toEqual(expected);
    });
    await fc.assert(property, { numRuns: 40 });
  });

  it("keeps thinking with its field in the message", async () => {
    const { events } = await running(
      saying(
        { type: "thinking", text: "a", field: "reasoning" },
        { type: "thinking", text: "b", field: "reasoning" },
        { type: "text", text: "c" },
        { type: "done", stop: "end", usage: noUsage },
      ),
    );
    const message = events.findLast((event) => event.type === "message");
    expect(message?.type === "message" && message.message.blocks).toEqual([
      { type: "thinking", text: "ab", field: "reasoning", model: "scripted/replies.yaml" },
      { type: "text", text: "c" },
    ]);
  });
});

describe("the request of a turn", () => {
  async function hashes(more: Parameters<typeof running>[1]): Promise<string[]> {
    const { events } = await running("- calls: [{ name: A, args: { text: x } }]\n- text: y", more);
    return events.flatMap((event) => (event.type === "turn.started" ? [event.request] : []));
  }

  it("has the same hash every time, whatever the order of the tools", async () => {
    const first = await hashes({ tools: [tool("A"), tool("B")] });
    expect(first).toEqual(await hashes({ tools: [tool("B"), tool("A")] }));
    expect(first[0]).toMatch(/^[0-9a-f]{64}$/);
    expect(first[0]).not.toBe(first[1]);
  });

  it("has another hash when the model would see something else", async () => {
    const tools = [tool("A")];
    const [base] = await hashes({ tools });
    expect((await hashes({ tools: [tool("A", { description: "Other." })] }))[0]).not.toBe(base);
    expect((await hashes({ tools, sampling: { temperature: 1 } }))[0]).not.toBe(base);
    expect((await hashes({ tools, messages: [{ role: "user", blocks: [{ type: "text", text: "?" }] }] }))[0]).not.toBe(
      base,
    );
  });

  it("has a hash that does not depend on the name of the step", async () => {
    const tools = [tool("A")];
    expect(await hashes({ tools, ids: { step: "renamed", agent: "renamed@1", parent: null } })).toEqual(
      await hashes({ tools }),
    );
  });
});

describe("an agent without an answer is never done", () => {
  it.each([
    ["an empty text", "- text: ''"],
    ["only white space", '- text: " \\n "'],
    ["nothing after its tools", "- calls: [{ name: Echo, args: { text: a } }]\n- text: ''"],
  ])("%s", async (_, turns) => {
    const { result } = await running(turns, { tools: [tool("Echo")] });
    expect(result).toMatchObject({ outcome: "invalid_output", reason: "the model ended without an answer" });
  });

  it("an answer cut at the output limit", async () => {
    const { result } = await running("- { text: To be contin, stop: length }");
    expect(result).toMatchObject({ outcome: "overflow", text: "To be contin" });
  });

  it("a refusal", async () => {
    const { result } = await running("- { text: I cannot., stop: refusal }");
    expect(result).toMatchObject({ outcome: "refused", reason: "I cannot." });
  });

  it.each([
    ["429", "rate_limit"],
    ["529", "provider_error"],
    ["500", "provider_error"],
    ["401", "provider_error"],
    ["timeout", "timeout"],
    ["malformed", "provider_error"],
    ["cut", "provider_error"],
  ])("a stream that ends with %s is %s and keeps its text", async (error, outcome) => {
    const { result, events } = await running(
      `- { text: half, calls: [{ name: Echo, args: { text: a } }], error: ${error} }\n`.repeat(4),
      { tools: [tool("Echo")], clock: hastyClock },
    );
    expect(result).toMatchObject({ outcome, text: "half", turns: 1 });
    const retries = error === "401" ? [] : ["model.retry", "model.retry", "model.retry"];
    expect(types(events)).toEqual(["message", "turn.started", ...retries, "model.failed"]);
  });

  const kinds: readonly [ModelFailure["kind"], string][] = [
    ["rate_limit", "rate_limit"],
    ["provider_error", "provider_error"],
    ["unavailable", "provider_error"],
    ["internal", "provider_error"],
    ["timeout", "timeout"],
    ["overflow", "overflow"],
    ["refused", "refused"],
    ["cancelled", "cancelled"],
  ];
  it.each(kinds)("a failure of kind %s ends it as %s", async (kind, outcome) => {
    const { result } = await running(
      saying({ type: "failed", failure: { kind, message: "because", transient: false } }),
    );
    expect(result).toMatchObject({ outcome, reason: "because" });
  });

  it("a stream that ends without an end", async () => {
    const { result } = await running(saying({ type: "text", text: "x" }), { clock: hastyClock });
    expect(result).toMatchObject({ outcome: "provider_error", text: "x" });
  });

  it("a script that is used up", async () => {
    const { result } = await running("- calls: [{ name: Echo, args: { text: a } }]", { tools: [tool("Echo")] });
    expect(result).toMatchObject({ outcome: "provider_error", turns: 2 });
    expect(result.reason).toContain("replies.yaml");
  });
});

describe("the turn cap", () => {
  const loop = "- calls: [{ name: Echo, args: { text: a } }]\n".repeat(3);
  const guards = guardsOf(false);

  it("offers one text-only turn and stays max_turns", async () => {
    const { result, events } = await running(`${loop}- text: as far as I came`, {
      tools: [tool("Echo")],
      maxTurns: 3,
      guards,
    });
    expect(result).toMatchObject({ outcome: "max_turns", text: "as far as I came", turns: 4 });
    expect(result.reason).toContain("3 turns");
    const note = events.findLast((event) => event.type === "message" && event.message.role === "user");
    expect(note?.type === "message" && note.message.blocks.at(-1)).toMatchObject({ type: "text" });
  });

  it("runs no tool in the text-only turn and offers none", async () => {
    const offered: number[] = [];
    const client: ModelClient = {
      provider: "fake",
      facts: unknownFacts,
      async *stream({ tools }) {
        await Promise.resolve();
        offered.push(tools.length);
        yield { type: "call", index: 0, id: `c${offered.length}`, name: "Echo" };
        yield { type: "args", index: 0, text: '{"text":"a"}' };
        yield { type: "done", stop: "calls", usage: noUsage };
      },
    };
    const { result, events } = await running(client, { tools: [tool("Echo")], maxTurns: 2 });
    expect(result.outcome).toBe("max_turns");
    expect(offered).toEqual([1, 1, 0]);
    expect(events.filter(({ type }) => type === "tool.started")).toHaveLength(2);
  });

  it("stays max_turns when the text-only turn fails", async () => {
    const { result } = await running(`${loop}- error: 500`, { tools: [tool("Echo")], maxTurns: 3, guards });
    expect(result.outcome).toBe("max_turns");
  });

  it("is not reached by an answer in the last turn", async () => {
    const { result } = await running("- text: just in time", { maxTurns: 1 });
    expect(result).toMatchObject({ outcome: "done", turns: 1 });
  });

  it("is 50 turns when nothing is said, and none when it is 0", async () => {
    const turns = `${"- calls: [{ name: Echo, args: { text: a } }]\n".repeat(60)}- text: end`;
    expect((await running(turns, { tools: [tool("Echo")], guards })).result).toMatchObject({
      outcome: "max_turns",
      turns: 51,
    });
    const unlimited = await running(turns, { tools: [tool("Echo")], maxTurns: 0, guards });
    expect(unlimited.result).toMatchObject({ outcome: "done", turns: 61 });
  });
});

describe("a cancelled agent", () => {
  it("that has not begun makes no call", async () => {
    const { result, events } = await running("- text: x", { signal: AbortSignal.abort() });
    expect(result).toMatchObject({ outcome: "cancelled", turns: 0 });
    expect(types(events)).toEqual(["message"]);
  });

  it("stops in the middle of a reply", async () => {
    const abort = new AbortController();
    const { result } = await running("- { text: abcdef, chunk: 1 }", { signal: abort.signal }, (event) => {
      if (event.type === "message.delta") abort.abort();
    });
    expect(result).toMatchObject({ outcome: "cancelled", text: "a" });
  });

  it("stops behind a tool that listens, and runs no further one", async () => {
    const abort = new AbortController();
    const ran: string[] = [];
    const stopping = tool("Stop", {
      readOnly: false,
      run: (_, { signal }) =>
        new Promise((resolve) => {
          ran.push("Stop");
          signal.addEventListener("abort", () => resolve({ ok: false, error: "stopped" }));
          abort.abort();
        }),
    });
    const next = tool("Next", {
      readOnly: false,
      run: () => {
        ran.push("Next");
        return Promise.resolve(ok({ blocks: [] }));
      },
    });
    const { result, results } = await running("- calls: [{ name: Stop }, { name: Next }]\n- text: x", {
      signal: abort.signal,
      tools: [stopping, next],
    });
    expect(result.outcome).toBe("cancelled");
    expect(ran).toEqual(["Stop"]);
    expect(results.map(({ text }) => text)).toEqual(["stopped", "not run: its agent was to end"]);
  });

  it("leaves a deaf tool behind after the grace", async () => {
    const abort = new AbortController();
    const waits: number[] = [];
    const { result, results } = await running("- calls: [{ name: Deaf }]\n- text: x", {
      signal: abort.signal,
      tools: [tool("Deaf", { run: () => new Promise(() => setTimeout(() => abort.abort(), 5)) })],
      clock: {
        now: () => 0,
        monotonic: () => 0,
        after(ms, callback) {
          waits.push(ms);
          const timer = setTimeout(callback, 1);
          return () => clearTimeout(timer);
        },
      },
    });
    expect(result.outcome).toBe("cancelled");
    expect(waits).toEqual([7_000]);
    expect(results[0]?.text).toContain("did not stop");
  });
});
