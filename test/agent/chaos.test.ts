import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ModelClient } from "../../src/model/ports.ts";
import { anthropicClient } from "../../src/providers/anthropic.ts";
import { openaiClient } from "../../src/providers/openai.ts";
import { type ModelServer, startModelServer } from "../cli/model-server.ts";
import { rowAt } from "../providers/server-options.ts";
import { hastyClock, running, tool } from "./running.ts";

/** A whole agent over both protocols, at a third party's server that misbehaves on purpose. */

const fixtures = [
  { match: { toolCallId: "call_e" }, response: { content: "The tool said hello." } },
  {
    match: { userMessage: "call the tool" },
    response: { content: "I call it.", toolCalls: [{ id: "call_e", name: "Echo", arguments: { text: "hello" } }] },
  },
  { match: { userMessage: "drop" }, response: { content: "x" }, chaos: { dropRate: 1 } },
  { match: { userMessage: "garble" }, response: { content: "x" }, chaos: { malformedRate: 1 } },
  { match: { userMessage: "hang up" }, response: { content: "x" }, chaos: { disconnectRate: 1 } },
  { match: { userMessage: "cut" }, response: { content: "It never comes to its end." }, truncateAfterChunks: 2 },
  {
    match: { userMessage: "limit" },
    response: { error: { message: "Slow down", type: "rate_limit_error" }, status: 429, retryAfter: 7 },
  },
];

let server: ModelServer;
beforeAll(async () => {
  server = await startModelServer(fixtures);
});
afterAll(() => server.close());

const protocols: readonly [string, () => ModelClient][] = [
  ["OpenAI's", () => openaiClient(rowAt("openai/gpt-5-mini", server.url))],
  ["Anthropic's", () => anthropicClient(rowAt("anthropic/claude-sonnet-5", server.url.replace("/v1", "")))],
];

describe.each(protocols)("an agent over %s protocol", (_, client) => {
  const asking = (text: string): Parameters<typeof running>[1] => ({
    messages: [{ role: "user", blocks: [{ type: "text", text }] }],
    tools: [tool("Echo")],
    clock: hastyClock,
  });

  it("calls a tool and answers with its result", async () => {
    const { result, results } = await running(client(), asking("call the tool"));
    expect(result).toMatchObject({ outcome: "done", text: "The tool said hello.", turns: 2 });
    expect(results.map(({ text }) => text)).toEqual(["hello"]);
  });

  it.each([
    ["drop", "provider_error"],
    ["garble", "provider_error"],
    ["hang up", "provider_error"],
    ["cut", "provider_error"],
    ["limit", "rate_limit"],
  ])("that meets `%s` asks four times and ends as %s", async (text, outcome) => {
    const before = (await server.requests()).length;
    const { result, events } = await running(client(), asking(text));
    expect(result).toMatchObject({ outcome, turns: 1 });
    expect((await server.requests()).length - before).toBe(4);
    const kinds = events.map(({ type }) => type).filter((type) => type !== "message.delta");
    expect(kinds).toEqual(["message", "turn.started", "model.retry", "model.retry", "model.retry", "model.failed"]);
  });
});
