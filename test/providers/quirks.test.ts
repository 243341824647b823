import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Json, JsonObject } from "../../src/model/json.ts";
import type { Message } from "../../src/model/message.ts";
import type { ModelFacts, ModelRequest, ToolSpec } from "../../src/model/ports.ts";
import { unknownFacts } from "../../src/model/ports.ts";
import { endpoints } from "../../src/providers/endpoints.ts";
import { openaiClient } from "../../src/providers/openai.ts";
import { drain, type Drained, requestWith } from "./drain.ts";
import { rowAt } from "./server-options.ts";
import { choice, sse, sseHeaders, sseServer, type SseServer } from "./sse-server.ts";

/** Each provider's row of the catalog, through the real SDK, at a server that answers as that provider does. */
let server: SseServer;
beforeAll(async () => {
  server = await sseServer();
});
afterAll(() => server.close());

interface Exchange extends Drained {
  readonly body: JsonObject;
}

async function exchange(
  id: string,
  request: Partial<ModelRequest> = {},
  chunks?: readonly unknown[],
): Promise<Exchange> {
  let body: JsonObject = {};
  server.answer = (_, response, text) => {
    body = JSON.parse(text) as JsonObject;
    response.writeHead(200, sseHeaders).end(sse(...(chunks ?? [choice({ content: "ok" }, "stop")])));
  };
  const read = await drain(openaiClient(rowAt(id, server.url)), requestWith("hi", { model: id, ...request }));
  return { ...read, body };
}

const tool: ToolSpec = { name: "look", description: "Looks.", parameters: { type: "object" } };
const schema: JsonObject = { type: "object", properties: { a: { type: "string" } } };
const system: Message = { role: "system", blocks: [{ type: "text", text: "Be brief." }] };
const asked: Message = { role: "user", blocks: [{ type: "text", text: "hi" }] };
const chatProviders = Object.keys(endpoints).filter((name) => endpoints[name]?.protocol === "openai");

describe("what is sent", () => {
  const limits: { readonly [provider: string]: string } = { openai: "max_completion_tokens" };
  const roles: { readonly [provider: string]: string } = { openai: "developer" };
  it.each(chatProviders)("to %s bounds a reply and instructs in its words", async (provider) => {
    const { body, end } = await exchange(`${provider}/m`, {
      maxOutput: 9,
      messages: [system, asked],
      temperature: 0.5,
    });
    expect(end?.type).toBe("done");
    expect(body[limits[provider] ?? "max_tokens"]).toBe(9);
    expect(["max_tokens", "max_completion_tokens"].filter((key) => key in body)).toHaveLength(1);
    expect((body["messages"] as JsonObject[])[0]).toEqual({ role: roles[provider] ?? "system", content: "Be brief." });
    expect(body["temperature"]).toBe(0.5);
    expect("stream_options" in body).toBe(provider !== "zhipu");
  });

  it.each<[string, string, JsonObject]>([
    ["openai", "high", { reasoning_effort: "high" }],
    ["groq", "low", { reasoning_effort: "low" }],
    ["ollama", "medium", { reasoning_effort: "medium" }],
    ["vllm", "medium", { reasoning_effort: "medium" }],
    ["openrouter", "high", { reasoning: { effort: "high" } }],
    ["deepseek", "medium", { thinking: { type: "enabled" }, reasoning_effort: "high" }],
    ["deepseek", "xhigh", { thinking: { type: "enabled" }, reasoning_effort: "max" }],
    ["deepseek", "none", { thinking: { type: "disabled" } }],
    ["zhipu", "high", { thinking: { type: "enabled" } }],
    ["zhipu", "none", { thinking: { type: "disabled" } }],
    ["moonshot", "high", { thinking: { type: "enabled" } }],
    ["qwen", "high", { enable_thinking: true }],
    ["qwen", "none", { enable_thinking: false }],
    ["lmstudio", "high", {}],
  ])("to %s says `effort: %s` its way", async (provider, effort, expected) => {
    const { body, deltas } = await exchange(`${provider}/m`, { effort });
    const said = ["reasoning_effort", "reasoning", "thinking", "enable_thinking"].filter((key) => key in body);
    expect(Object.fromEntries(said.map((key): [string, Json] => [key, body[key] ?? null]))).toEqual(expected);
    expect(deltas.some(({ type }) => type === "warning")).toBe(provider === "lmstudio");
  });

  it.each(chatProviders)("to %s never asks for a schema beside open tools", async (provider) => {
    const { body } = await exchange(`${provider}/m`, { answerSchema: schema, tools: [tool], toolChoice: "required" });
    expect(body).not.toHaveProperty("response_format");
    const degrades = ["zhipu", "qwen", "ollama"].includes(provider);
    expect(body["tool_choice"]).toBe(degrades ? undefined : "required");
    expect("tool_stream" in body).toBe(provider === "zhipu");
  });

  it("asks for a schema where no tool is open", async () => {
    const { body } = await exchange("openai/m", { answerSchema: schema });
    expect(body["response_format"]).toEqual({ type: "json_schema", json_schema: { name: "answer", schema } });
  });

  it.each(["reasoning_content", "reasoning", "reasoning_text"])(
    "has the reasoning of %s under its own name, for its own model",
    async (field) => {
      const first = await exchange("deepseek/deepseek-chat", {}, [
        choice({ [field]: "Hm." }),
        choice({ content: "yes" }, "stop"),
      ]);
      expect(first.thinking).toBe("Hm.");
      const of = (model: string): Message[] => [
        asked,
        {
          role: "assistant",
          blocks: [
            { type: "thinking", text: "Hm.", field, model },
            { type: "text", text: "yes" },
          ],
        },
        asked,
      ];
      const own = await exchange("deepseek/deepseek-chat", { messages: of("deepseek/deepseek-chat") });
      expect((own.body["messages"] as JsonObject[])[1]).toEqual({ role: "assistant", content: "yes", [field]: "Hm." });
      const other = await exchange("deepseek/deepseek-v4-pro", { messages: of("deepseek/deepseek-chat") });
      expect((other.body["messages"] as JsonObject[])[1]).toEqual({ role: "assistant", content: "yes" });
    },
  );

  it("has images of a result behind the results, or says that there was one", async () => {
    const image = { type: "image", mediaType: "image/png", data: "aWJt" } as const;
    const messages: Message[] = [
      asked,
      { role: "assistant", blocks: [{ type: "call", id: "c", name: "look", args: {}, raw: "{}" }] },
      {
        role: "user",
        blocks: [
          { type: "result", id: "c", blocks: [image] },
          { type: "text", text: "Well?" },
        ],
      },
    ];
    const { body } = await exchange("openai/gpt-4o", { messages });
    expect((body["messages"] as JsonObject[]).slice(2)).toEqual([
      { role: "tool", tool_call_id: "c", content: "(the image follows)" },
      {
        role: "user",
        content: [
          { type: "text", text: "Well?" },
          { type: "image_url", image_url: { url: "data:image/png;base64,aWJt" } },
        ],
      },
    ]);
    const without = await exchange("deepseek/deepseek-chat", { messages });
    expect(JSON.stringify(without.body)).not.toContain("aWJt");
    expect(without.deltas[0]).toMatchObject({ type: "warning", message: expect.stringContaining("images") as string });
  });

  it("has ids of calls that fit, whoever gave them", async () => {
    const id = `toolu/${"x".repeat(60)}`;
    const messages: Message[] = [
      asked,
      { role: "assistant", blocks: [{ type: "call", id, name: "look", args: {}, raw: "{}" }] },
      { role: "user", blocks: [{ type: "result", id, blocks: [] }] },
    ];
    const [, said, result] = (await exchange("openai/m", { messages })).body["messages"] as JsonObject[];
    const given = (((said?.["tool_calls"] ?? []) as JsonObject[])[0] ?? {})["id"];
    expect(given).toMatch(/^[A-Za-z0-9_-]{1,40}$/);
    expect(result?.["tool_call_id"]).toBe(given);
  });
});

describe("what comes back", () => {
  const call = (more: object): unknown =>
    choice({ tool_calls: [{ function: { name: "look", arguments: "{}" }, ...more }] });

  it.each<[string, string, readonly unknown[], object]>([
    ["vllm", "calls that end as `stop`", [call({ index: 0, id: "a" }), choice({}, "stop")], { stop: "calls" }],
    ["vllm", "`tool_calls` without any", [choice({ content: "x" }, "tool_calls")], { stop: "end" }],
    [
      "ollama",
      "calls without an index",
      [call({ id: "a" }), call({ id: "b" }), choice({}, "tool_calls")],
      { stop: "calls" },
    ],
    [
      "groq",
      "usage under x_groq",
      [
        choice({ content: "x" }, "stop"),
        { choices: [], x_groq: { usage: { prompt_tokens: 4, completion_tokens: 2 } } },
      ],
      { usage: { input: 4, output: 2, estimated: false } },
    ],
    [
      "moonshot",
      "usage inside the choice",
      [choice({ content: "x" }, "stop", { usage: { prompt_tokens: 4, completion_tokens: 2 } })],
      { usage: { input: 4, output: 2, estimated: false } },
    ],
    [
      "deepseek",
      "cache hits under its own name",
      [
        choice({ content: "x" }, "stop"),
        { choices: [], usage: { prompt_tokens: 9, completion_tokens: 2, prompt_cache_hit_tokens: 5 } },
      ],
      { usage: { input: 4, cacheRead: 5 } },
    ],
    ["zhipu", "no usage at all", [choice({ content: "x" }, "stop")], { usage: { estimated: true } }],
    ["openrouter", "an end nobody knows", [choice({ content: "x" }, "sensitive")], { stop: "unknown" }],
  ])("of %s: %s", async (provider, _, chunks, expected) => {
    const { end } = await exchange(`${provider}/m`, {}, chunks);
    expect(end).toMatchObject({ type: "done", ...expected });
  });

  it("tells calls of one id, or of none, apart", async () => {
    const { calls } = await exchange("ollama/m", {}, [
      choice({ tool_calls: [{ index: 0, id: "x", function: { name: "a", arguments: "{}" } }] }),
      choice({ tool_calls: [{ index: 1, id: "x", function: { name: "b", arguments: "{}" } }] }),
      choice({ tool_calls: [{ index: 2, function: { name: "c", arguments: "{}" } }] }),
      choice({}, "tool_calls"),
    ]);
    expect(calls.map(({ name }) => name)).toEqual(["a", "b", "c"]);
    expect(new Set(calls.map(({ id }) => id)).size).toBe(3);
  });

  it("is an overflow when more was sent than the model can hold, and the server said nothing", async () => {
    const facts: ModelFacts = { ...unknownFacts, window: 100 };
    server.answer = (_, response) =>
      response
        .writeHead(200, sseHeaders)
        .end(
          sse(choice({ content: "x" }, "stop"), { choices: [], usage: { prompt_tokens: 101, completion_tokens: 1 } }),
        );
    const { end } = await drain(openaiClient(rowAt("zhipu/m", server.url, facts)), requestWith("hi"));
    expect(end).toMatchObject({ type: "failed", failure: { kind: "overflow" } });
  });

  it.each([
    "This model's maximum context length is 8192 tokens",
    "the request exceeds the available context size; input is too long",
    "Trying to keep the first 9000 tokens when context the overflows: greater than the context length",
  ])("is an overflow by its words: %s", async (message) => {
    server.answer = (_, response) =>
      response.writeHead(400, { "content-type": "application/json" }).end(JSON.stringify({ error: { message } }));
    const { end } = await drain(openaiClient(rowAt("lmstudio/m", server.url)), requestWith("hi"));
    expect(end).toMatchObject({ type: "failed", failure: { kind: "overflow", transient: false } });
  });
});
