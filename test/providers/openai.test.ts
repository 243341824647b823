import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Message } from "../../src/model/message.ts";
import type { ModelClient, ToolSpec } from "../../src/model/ports.ts";
import { openaiClient } from "../../src/providers/openai.ts";
import { drain, requestWith } from "./drain.ts";
import { rowAt } from "./server-options.ts";

const weather: ToolSpec = {
  name: "get_weather",
  description: "Tells the weather.",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};

const fixtures = [
  { match: { toolCallId: "call_w" }, response: { content: "It is sunny in Paris." } },
  { match: { userMessage: "hello" }, response: { content: "Hello 🌍! How can I help you today?" } },
  {
    match: { userMessage: "weather" },
    response: {
      content: "Let me look.",
      toolCalls: [{ id: "call_w", name: "get_weather", arguments: { city: "Paris" } }],
    },
  },
  {
    match: { userMessage: "two calls" },
    response: {
      toolCalls: [
        { id: "call_a", name: "get_weather", arguments: { city: "Paris" } },
        { id: "call_b", name: "get_weather", arguments: { city: "Rome" } },
      ],
    },
  },
  { match: { userMessage: "think" }, response: { content: "42.", reasoning: "Six times seven." } },
  {
    match: { userMessage: "count tokens" },
    response: { content: "ok", usage: { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 } },
  },
  { match: { userMessage: "length" }, response: { content: "To be contin", finishReason: "length" } },
  { match: { userMessage: "filtered" }, response: { content: "", finishReason: "content_filter" } },
  { match: { userMessage: "odd end" }, response: { content: "fine", finishReason: "because" } },
  {
    match: { userMessage: "rate" },
    response: { error: { message: "Slow down", type: "rate_limit_error" }, status: 429, retryAfter: 7 },
  },
  { match: { userMessage: "broken" }, response: { error: { message: "Boom", type: "server_error" }, status: 500 } },
  {
    match: { userMessage: "denied" },
    response: { error: { message: "Bad key sk-secret", type: "auth" }, status: 401 },
  },
  { match: { userMessage: "no model" }, response: { error: { message: "no such model", type: "x" }, status: 404 } },
  { match: { userMessage: "bad field" }, response: { error: { message: "bad field", type: "x" }, status: 400 } },
  {
    match: { userMessage: "too long" },
    response: { error: { message: "too long", type: "x", code: "context_length_exceeded" }, status: 400 },
  },
  { match: { userMessage: "dropped" }, response: { content: "x" }, chaos: { dropRate: 1 } },
  { match: { userMessage: "garbled" }, response: { content: "x" }, chaos: { malformedRate: 1 } },
  { match: { userMessage: "hang up" }, response: { content: "x" }, chaos: { disconnectRate: 1 } },
  {
    match: { userMessage: "cut short" },
    response: { content: "This will never come to its end." },
    truncateAfterChunks: 2,
  },
  { match: { userMessage: "slow" }, response: { content: "one two three four five six seven" }, latency: 40 },
];

let server: ChildProcess;
let folder: string;
let baseUrl: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "flow-aimock-"));
  await writeFile(join(folder, "fixtures.json"), JSON.stringify({ fixtures }));
  const cli = join(dirname(createRequire(import.meta.url).resolve("@copilotkit/aimock")), "cli.js");
  const args = [cli, "--port", "0", "--fixtures", join(folder, "fixtures.json"), "--chunk-size", "5"];
  server = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  baseUrl = await new Promise<string>((resolve, reject) => {
    let output = "";
    const read = (bytes: Buffer): void => {
      output += bytes.toString();
      const url = /listening on (http:\/\/[\d.:]+)/.exec(output)?.[1];
      if (url !== undefined) resolve(`${url}/v1`);
    };
    server.stdout?.on("data", read);
    server.stderr?.on("data", read);
    server.once("exit", (code) => reject(new Error(`aimock ended with ${code}: ${output}`)));
  });
});

afterAll(async () => {
  server.kill();
  await rm(folder, { recursive: true, force: true });
});

function client(): ModelClient {
  return openaiClient({ ...rowAt("openai/gpt-4o-mini", baseUrl), keyName: "MY_KEY", idleTimeout: 5_000 });
}

interface Journaled {
  readonly headers: Record<string, string>;
  readonly body: Record<string, unknown>;
}

async function lastRequest(): Promise<Journaled> {
  const response = await fetch(`${baseUrl.replace("/v1", "")}/__aimock/journal`);
  const journal = (await response.json()) as Journaled[] | { entries: Journaled[] };
  const last = (Array.isArray(journal) ? journal : journal.entries).at(-1);
  if (last === undefined) throw new Error("the journal is empty");
  return last;
}

describe("a reply of a real server through the real SDK", () => {
  it("arrives in pieces and ends once", async () => {
    const { deltas, text, end } = await drain(client(), requestWith("hello"));
    expect(text).toBe("Hello 🌍! How can I help you today?");
    expect(deltas.filter(({ type }) => type === "text").length).toBeGreaterThan(3);
    expect(end).toMatchObject({ type: "done", stop: "end", usage: { estimated: false, cost: null } });
    expect(deltas.filter(({ type }) => type === "done" || type === "failed")).toHaveLength(1);
  });

  it("carries a call there and its result back", async () => {
    const first = await drain(client(), requestWith("weather", { tools: [weather] }));
    expect(first.text).toBe("Let me look.");
    expect(first.calls).toEqual([{ id: "call_w", name: "get_weather", raw: '{"city":"Paris"}' }]);
    expect(first.end).toMatchObject({ type: "done", stop: "calls" });

    const messages: Message[] = [
      { role: "system", blocks: [{ type: "text", text: "Be brief." }] },
      ...requestWith("weather").messages,
      {
        role: "assistant",
        blocks: [
          { type: "thinking", text: "Hm.", field: "reasoning_content" },
          { type: "text", text: "Let me look." },
          { type: "call", id: "call_w", name: "get_weather", args: { city: "Paris" }, raw: '{"city": "Paris"}' },
        ],
      },
      {
        role: "user",
        blocks: [{ type: "result", id: "call_w", blocks: [{ type: "text", text: "sunny" }] }],
      },
    ];
    const second = await drain(client(), { ...requestWith(""), messages, tools: [weather] });
    expect(second.text).toBe("It is sunny in Paris.");
    const { body } = await lastRequest();
    expect(body["messages"]).toEqual([
      { role: "developer", content: "Be brief." },
      { role: "user", content: "weather" },
      {
        role: "assistant",
        content: "Let me look.",
        reasoning_content: "Hm.",
        tool_calls: [
          { id: "call_w", type: "function", function: { name: "get_weather", arguments: '{"city": "Paris"}' } },
        ],
      },
      { role: "tool", tool_call_id: "call_w", content: "sunny" },
    ]);
  });

  it("keeps parallel calls apart and in order", async () => {
    const { calls } = await drain(client(), requestWith("two calls", { tools: [weather] }));
    expect(calls.map(({ id, raw }) => [id, raw])).toEqual([
      ["call_a", '{"city":"Paris"}'],
      ["call_b", '{"city":"Rome"}'],
    ]);
  });

  it("gives reasoning as thinking with the field it came in", async () => {
    const { deltas, text, thinking } = await drain(client(), requestWith("think"));
    expect({ text, thinking }).toEqual({ text: "42.", thinking: "Six times seven." });
    expect(deltas.find(({ type }) => type === "thinking")).toMatchObject({ field: "reasoning_content" });
  });

  it("reports the usage of the server", async () => {
    const { end } = await drain(client(), requestWith("count tokens"));
    const usage = { input: 100, output: 20, cacheRead: 0, cacheWrite: 0, reasoning: 0, estimated: false, cost: null };
    expect(end).toEqual({ type: "done", stop: "end", usage });
  });

  it.each([
    ["length", "length"],
    ["filtered", "refusal"],
    ["odd end", "unknown"],
  ])("ends `%s` with the stop reason %s", async (prompt, stop) => {
    expect((await drain(client(), requestWith(prompt))).end).toMatchObject({ type: "done", stop });
  });

  it("sends every option in the field OpenAI reads it from", async () => {
    const options = { temperature: 0, topP: 0.5, maxOutput: 99, effort: "low", toolChoice: "required" } as const;
    await drain(client(), requestWith("hello", { ...options, tools: [weather] }));
    const { body } = await lastRequest();
    expect(body).toMatchObject({
      model: "gpt-4o-mini",
      temperature: 0,
      top_p: 0.5,
      max_completion_tokens: 99,
      reasoning_effort: "low",
      tool_choice: "required",
      stream: true,
      stream_options: { include_usage: true },
    });
  });
});

describe("what goes wrong becomes one failure", () => {
  it.each([
    ["rate", { kind: "rate_limit", status: 429 }],
    ["broken", { kind: "provider_error", status: 500 }],
    ["dropped", { kind: "provider_error", status: 500 }],
    ["denied", { kind: "unavailable", status: 401 }],
    ["no model", { kind: "provider_error", status: 404 }],
    ["bad field", { kind: "provider_error", status: 400 }],
    ["too long", { kind: "overflow", status: 400 }],
    ["garbled", { kind: "provider_error" }],
    ["hang up", { kind: "provider_error" }],
    ["cut short", { kind: "provider_error" }],
  ])("`%s`", async (prompt, failure) => {
    const { end, deltas } = await drain(client(), requestWith(prompt));
    expect(end).toMatchObject({ type: "failed", failure });
    expect(deltas.filter(({ type }) => type === "done" || type === "failed")).toHaveLength(1);
  });

  it("says how long the server asked to wait", async () => {
    const { end } = await drain(client(), requestWith("rate"));
    expect(end?.type === "failed" && end.failure.retryAfter).toBeGreaterThanOrEqual(1_000);
  });

  it("names the variable of a refused key and never the key", async () => {
    const { end } = await drain(client(), requestWith("denied"));
    const message = end?.type === "failed" ? end.failure.message : "";
    expect(message).toContain("MY_KEY");
    expect(message).not.toContain("sk-secret");
  });

  it("names the model that does not exist", async () => {
    const { end } = await drain(client(), requestWith("no model"));
    expect(end?.type === "failed" && end.failure.message).toContain("gpt-4o-mini");
  });

  it("stops in the middle when it is cancelled", async () => {
    const abort = new AbortController();
    const drained = await drain(client(), requestWith("slow"), {
      signal: abort.signal,
      onDelta: ({ type }) => type === "text" && abort.abort(),
    });
    expect(drained.end).toMatchObject({ type: "failed", failure: { kind: "cancelled" } });
    expect(drained.text.length).toBeLessThan(15);
  });

  it("does not call at all when it is cancelled already", async () => {
    const { end } = await drain(client(), requestWith("hello"), { signal: AbortSignal.abort() });
    expect(end).toMatchObject({ type: "failed", failure: { kind: "cancelled" } });
  });
});
