import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import type { Json, JsonObject } from "../../src/model/json.ts";
import type { Message } from "../../src/model/message.ts";
import type { ModelClient, ModelRequest, ToolSpec } from "../../src/model/ports.ts";
import { anthropicClient } from "../../src/providers/anthropic.ts";
import type { ServerOptions } from "../../src/providers/server.ts";
import { drain, type Drained, requestWith } from "./drain.ts";
import { block, callBlock, messageEnd, messageStart, sseEvents, textBlock } from "./messages.ts";
import { serverOptions } from "./server-options.ts";
import { sseHeaders, sseServer, type SseServer } from "./sse-server.ts";

let server: SseServer;
beforeAll(async () => {
  server = await sseServer();
});
afterAll(() => server.close());
afterEach(() => {
  vi.unstubAllEnvs();
});

const model = "anthropic/claude-sonnet-5";

function client(more: Partial<ServerOptions> = {}): ModelClient {
  const baseUrl = server.url.replace("/v1", "");
  return anthropicClient(serverOptions(baseUrl, { apiKey: "sk-secret", keyName: "MY_KEY", ...more }));
}

function asking(text: string, more: Partial<ModelRequest> = {}): ModelRequest {
  return requestWith(text, { model, ...more });
}

async function reading(...events: readonly { readonly type: string }[]): Promise<Drained> {
  server.answer = (_, response) => response.writeHead(200, sseHeaders).end(sseEvents(...events));
  return drain(client(), asking("hi"));
}

/** The body of the request for `asked`. */
async function sent(asked: ModelRequest, more: Partial<ServerOptions> = {}): Promise<JsonObject> {
  let body: JsonObject = {};
  server.answer = (_, response, text) => {
    body = JSON.parse(text) as JsonObject;
    const events = [messageStart(), ...textBlock(0, "ok"), ...messageEnd("end_turn")];
    response.writeHead(200, sseHeaders).end(sseEvents(...events));
  };
  const { end } = await drain(client(more), asked);
  expect(end?.type).toBe("done");
  return body;
}

const weather: ToolSpec = { name: "weather", description: "Tells it.", parameters: { type: "object" } };

describe("a reply of Anthropic's protocol", () => {
  it("streams text and ends with usage whose parts do not overlap", async () => {
    const usage = { input_tokens: 3, cache_read_input_tokens: 50, cache_creation_input_tokens: 20, output_tokens: 1 };
    const { deltas, text, end } = await reading(
      messageStart(usage),
      { type: "ping" },
      ...textBlock(0, "Grüße ", "🌍"),
      ...messageEnd("end_turn", { output_tokens: 9 }),
    );
    expect({ text, pieces: deltas.filter(({ type }) => type === "text").length }).toEqual({
      text: "Grüße 🌍",
      pieces: 2,
    });
    expect(end).toEqual({
      type: "done",
      stop: "end",
      usage: { input: 3, output: 9, cacheRead: 50, cacheWrite: 20, reasoning: 0, estimated: false, cost: null },
    });
  });

  it("carries parallel calls, one of them without arguments", async () => {
    const { calls, end } = await reading(
      messageStart(),
      ...textBlock(0, "I look."),
      ...callBlock(1, { id: "toolu_a", name: "weather" }, '{"ci', 'ty":"Rome"}'),
      ...callBlock(2, { id: "toolu_b", name: "now" }, ""),
      ...messageEnd("tool_use"),
    );
    expect(calls).toEqual([
      { id: "toolu_a", name: "weather", raw: '{"city":"Rome"}' },
      { id: "toolu_b", name: "now", raw: "{}" },
    ]);
    expect(end).toMatchObject({ type: "done", stop: "calls" });
  });

  it.each([
    ["end_turn", "end"],
    ["stop_sequence", "end"],
    ["max_tokens", "length"],
    ["refusal", "refusal"],
    ["because", "unknown"],
  ])("ends `%s` with the stop reason %s", async (reason, stop) => {
    const { end, deltas } = await reading(messageStart(), ...textBlock(0, "x"), ...messageEnd(reason));
    expect(end).toMatchObject({ type: "done", stop });
    expect(deltas.some(({ type }) => type === "warning")).toBe(stop === "unknown");
  });

  it("that outgrew the model's window is an overflow", async () => {
    const { end } = await reading(messageStart(), ...textBlock(0, "x"), ...messageEnd("model_context_window_exceeded"));
    expect(end).toMatchObject({ type: "failed", failure: { kind: "overflow", transient: false } });
  });

  it("that pauses is gone on with, its content sent back as it came", async () => {
    const bodies: JsonObject[] = [];
    const search = { type: "server_tool_use", id: "srv_1", name: "search", input: {} };
    server.answer = (_, response, text) => {
      bodies.push(JSON.parse(text) as JsonObject);
      const events =
        bodies.length === 1
          ? [
              messageStart(),
              ...textBlock(0, "One "),
              ...block(1, search, { type: "input_json_delta", partial_json: '{"q":1}' }),
              ...messageEnd("pause_turn", { output_tokens: 5 }),
            ]
          : [messageStart(), ...textBlock(0, "two."), ...messageEnd("end_turn", { output_tokens: 6 })];
      response.writeHead(200, sseHeaders).end(sseEvents(...events));
    };
    const { text, end } = await drain(client(), asking("hi"));
    expect(text).toBe("One two.");
    expect(end).toMatchObject({ type: "done", stop: "end", usage: { input: 20, output: 11, estimated: false } });
    expect(((bodies[1]?.["messages"] ?? []) as Json[]).at(-1)).toEqual({
      role: "assistant",
      content: [
        { type: "text", text: "One " },
        { ...search, input: { q: 1 } },
      ],
    });
  });

  it("that pauses for ever fails", async () => {
    const { end } = await reading(messageStart(), ...textBlock(0, "x"), ...messageEnd("pause_turn"));
    expect(end).toMatchObject({ type: "failed", failure: { kind: "provider_error", transient: false } });
  });

  it("survives events of the wrong shape", async () => {
    const odd = [
      { type: "content_block_delta", index: 9, delta: { type: "text_delta", text: "lost" } },
      { type: "content_block_delta" },
      { type: "content_block_stop", index: 4 },
      { type: "message_delta", delta: 7 },
      { type: "news" },
      { type: "content_block_start", index: 7, content_block: null },
      { type: "content_block_stop", index: 7 },
    ];
    const { text, end } = await reading(messageStart(), ...odd, ...textBlock(0, "fine"), ...messageEnd("end_turn"));
    expect({ text, end: end?.type }).toEqual({ text: "fine", end: "done" });
  });

  it.each([
    ["overloaded_error", "provider_error", true],
    ["rate_limit_error", "rate_limit", true],
    ["api_error", "provider_error", true],
    ["invalid_request_error", "provider_error", false],
  ])("with `%s` in the middle of a good stream is a failure", async (type, kind, transient) => {
    const error = { type: "error", error: { type, message: "sorry" } };
    const { end } = await reading(messageStart(), ...textBlock(0, "half"), error);
    expect(end).toMatchObject({ type: "failed", failure: { kind, transient }, usage: { estimated: true } });
  });

  it.each([
    [400, { error: { type: "invalid_request_error", message: "prompt is too long: 9 > 8" } }, "overflow", false],
    [
      400,
      { error: { type: "invalid_request_error", message: "Your credit balance is too low" } },
      "unavailable",
      false,
    ],
    [400, { error: { type: "invalid_request_error", message: "bad field" } }, "provider_error", false],
    [401, { error: { type: "authentication_error", message: "bad key sk-secret" } }, "unavailable", false],
    [413, {}, "overflow", false],
    [429, { error: { type: "rate_limit_error", message: "slow" } }, "rate_limit", true],
    [500, {}, "provider_error", true],
    [529, { error: { type: "overloaded_error", message: "busy" } }, "provider_error", true],
  ])("status %i %j", async (status, body, kind, transient) => {
    server.answer = (_, response) =>
      response
        .writeHead(status, { "content-type": "application/json" })
        .end(JSON.stringify({ type: "error", ...body }));
    const { end } = await drain(client(), asking("hi"));
    expect(end).toMatchObject({ type: "failed", failure: { kind, status, transient } });
    const message = end?.type === "failed" ? end.failure.message : "";
    expect(message).not.toContain("sk-secret");
    if (status === 401) expect(message).toContain("MY_KEY");
  });
});

describe("signed thinking", () => {
  const signed = [
    messageStart(),
    ...block(
      0,
      { type: "thinking", thinking: "", signature: "" },
      { type: "thinking_delta", thinking: "Six " },
      { type: "thinking_delta", thinking: "times seven." },
      { type: "signature_delta", signature: "sig-1" },
    ),
    ...block(1, { type: "redacted_thinking", data: "secret-1" }),
    ...textBlock(2, "42."),
    ...messageEnd("end_turn"),
  ];

  it("arrives with its signature", async () => {
    const { deltas, thinking } = await reading(...signed);
    expect(thinking).toBe("Six times seven.");
    expect(deltas.filter((delta) => delta.type === "thinking" && delta.signature !== undefined)).toEqual([
      { type: "thinking", text: "", signature: "sig-1" },
      { type: "thinking", text: "", field: "redacted_thinking", signature: "secret-1" },
    ]);
  });

  const thought = (of: string): Message => ({
    role: "assistant",
    blocks: [
      { type: "thinking", text: "Six times seven.", signature: "sig-1", model: of },
      { type: "thinking", text: "", field: "redacted_thinking", signature: "secret-1", model: of },
      { type: "thinking", text: "unsigned", field: "reasoning", model: of },
      { type: "text", text: "42." },
    ],
  });

  it("goes back unchanged to the model it is of, and to no other", async () => {
    const messages = (of: string): Message[] => [
      ...asking("What is it?").messages,
      thought(of),
      { role: "user", blocks: [{ type: "text", text: "Sure?" }] },
    ];
    const own = await sent(asking("", { messages: messages(model) }));
    expect((own["messages"] as JsonObject[])[1]).toEqual({
      role: "assistant",
      content: [
        { type: "thinking", thinking: "Six times seven.", signature: "sig-1" },
        { type: "redacted_thinking", data: "secret-1" },
        { type: "text", text: "42." },
      ],
    });
    const other = await sent(asking("", { messages: messages("anthropic/claude-opus-4-8") }));
    expect((other["messages"] as JsonObject[])[1]).toEqual({
      role: "assistant",
      content: [{ type: "text", text: "42." }],
    });
  });
});

describe("what is sent to Anthropic's protocol", () => {
  const png = { type: "image", mediaType: "image/png", data: "aWJt" } as const;
  const call = (id: string): Message["blocks"][number] => ({ type: "call", id, name: "weather", args: {}, raw: "{}" });
  const result = (id: string, more: object = {}): Message["blocks"][number] => ({
    type: "result",
    id,
    blocks: [{ type: "text", text: "sunny" }],
    ...more,
  });

  it("has all results of a turn in one user message, images inside, and marks of what may be cached", async () => {
    const messages: Message[] = [
      { role: "system", blocks: [{ type: "text", text: "Be brief." }] },
      { role: "user", blocks: [{ type: "text", text: "Weather?" }] },
      { role: "assistant", blocks: [{ type: "text", text: " " }, call("a/1"), call("b")] },
      {
        role: "user",
        blocks: [
          { type: "text", text: "Hurry." },
          result("a/1", { blocks: [{ type: "text", text: "sunny" }, png] }),
          result("b", { error: true }),
        ],
      },
      { role: "user", blocks: [{ type: "text", text: "Please." }] },
    ];
    const body = await sent(asking("", { messages, tools: [weather] }));
    const cache_control = { type: "ephemeral" };
    expect(body).toEqual({
      model: "m",
      max_tokens: 8_192,
      system: [{ type: "text", text: "Be brief.", cache_control }],
      tools: [{ name: "weather", description: "Tells it.", input_schema: { type: "object" } }],
      messages: [
        { role: "user", content: [{ type: "text", text: "Weather?", cache_control }] },
        {
          role: "assistant",
          content: [
            { type: "tool_use", id: "a_1", name: "weather", input: {} },
            { type: "tool_use", id: "b", name: "weather", input: {} },
          ],
        },
        {
          role: "user",
          content: [
            {
              type: "tool_result",
              tool_use_id: "a_1",
              content: [
                { type: "text", text: "sunny" },
                { type: "image", source: { type: "base64", media_type: "image/png", data: "aWJt" } },
              ],
            },
            { type: "tool_result", tool_use_id: "b", content: [{ type: "text", text: "sunny" }], is_error: true },
            { type: "text", text: "Hurry." },
            { type: "text", text: "Please.", cache_control },
          ],
        },
      ],
      stream: true,
    });
  });

  it("never has more than four marks, also without instructions", async () => {
    const turns = Array.from({ length: 9 }, (_, index): Message[] => [
      { role: "user", blocks: [{ type: "text", text: `${index}` }] },
      { role: "assistant", blocks: [{ type: "text", text: "ok" }] },
    ]).flat();
    const body = await sent(asking("", { messages: turns, tools: [weather] }));
    expect(JSON.stringify(body).match(/cache_control/g)).toHaveLength(3);
    expect(JSON.stringify(body["tools"])).toContain("cache_control");
  });

  it("gives two calls of one id two ids, and their results the right one", async () => {
    const messages: Message[] = ["1", "2"].flatMap((id): Message[] => [
      { role: "user", blocks: [{ type: "text", text: id }] },
      { role: "assistant", blocks: [call("same")] },
      { role: "user", blocks: [result("same")] },
    ]);
    const text = JSON.stringify(await sent(asking("", { messages })));
    expect(text.match(/"(?:tool_use_)?id":"same(?:_2)?"/g)).toEqual([
      '"id":"same"',
      '"tool_use_id":"same"',
      '"id":"same_2"',
      '"tool_use_id":"same_2"',
    ]);
  });

  it.each<[string, Partial<ModelRequest>, Partial<ServerOptions>, JsonObject]>([
    [
      "a word of effort",
      { effort: "high", maxOutput: 99 },
      { thinking: "adaptive" },
      {
        max_tokens: 99,
        thinking: { type: "adaptive" },
        output_config: { effort: "high" },
      },
    ],
    [
      "effort as tokens",
      { effort: "high" },
      { thinking: "budget" },
      {
        thinking: { type: "enabled", budget_tokens: 4_096 },
      },
    ],
    ["no effort", { effort: "none", temperature: 1.5, topP: 0.5 }, {}, { temperature: 1, top_p: 0.5 }],
    [
      "a schema without tools",
      { answerSchema: { type: "object" } },
      {},
      {
        output_config: { format: { type: "json_schema", schema: { type: "object" } } },
      },
    ],
    ["a call that must be", { tools: [weather], toolChoice: "required" }, {}, { tool_choice: { type: "any" } }],
    ["fields of the user's own", { options: { metadata: { user_id: "u" } } }, {}, { metadata: { user_id: "u" } }],
  ])("says %s", async (_, more, options, expected) => {
    expect(await sent(asking("hi", more), options)).toMatchObject(expected);
  });

  it("has no schema beside open tools, and no temperature for a model that thinks", async () => {
    const more = { answerSchema: { type: "object" }, tools: [weather], effort: "low", temperature: 0 } as const;
    const body = await sent(asking("hi", more), { thinking: "adaptive" });
    expect(body["output_config"]).toEqual({ effort: "low" });
    expect(body).not.toHaveProperty("temperature");
  });

  it("holds nothing of the environment", async () => {
    vi.stubEnv("ANTHROPIC_API_KEY", "sk-ambient");
    vi.stubEnv("ANTHROPIC_AUTH_TOKEN", "token-ambient");
    vi.stubEnv("ANTHROPIC_CUSTOM_HEADERS", "X-Ambient: ambient");
    vi.stubEnv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1");
    for (const apiKey of ["sk-named", undefined]) {
      let headers: Record<string, unknown> = {};
      server.answer = (request, response) => {
        headers = request.headers;
        response.writeHead(200, sseHeaders).end(sseEvents(messageStart(), ...messageEnd("end_turn")));
      };
      const { apiKey: _, ...options } = serverOptions(server.url.replace("/v1", ""));
      await drain(anthropicClient({ ...options, ...(apiKey !== undefined && { apiKey }) }), asking("hi"));
      const keys = [headers["authorization"], headers["x-api-key"]].filter((key) => key !== undefined);
      expect(keys.map((key) => (typeof key === "string" ? key.replace("Bearer ", "") : key))).toEqual(
        apiKey === undefined ? [] : [apiKey],
      );
      expect(JSON.stringify(headers)).not.toMatch(/ambient/);
      expect(headers["anthropic-version"]).toBeDefined();
    }
  });
});
