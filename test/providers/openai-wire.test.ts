import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import type { ModelClient } from "../../src/model/ports.ts";
import { openaiClient } from "../../src/providers/openai.ts";
import type { ServerOptions } from "../../src/providers/server.ts";
import { drain, requestWith } from "./drain.ts";
import type { Drained } from "./drain.ts";
import { choice, sse, sseHeaders, sseServer } from "./sse-server.ts";
import type { SseServer } from "./sse-server.ts";
import { serverOptions } from "./server-options.ts";

let server: SseServer;
beforeAll(async () => {
  server = await sseServer();
});
afterAll(() => server.close());
afterEach(() => {
  vi.unstubAllEnvs();
});

function client(more: Partial<ServerOptions> = {}): ModelClient {
  return openaiClient(serverOptions(server.url, { apiKey: "sk-secret", ...more }));
}

function replying(body: string | Buffer): void {
  server.answer = (_, response) => response.writeHead(200, sseHeaders).end(body);
}

async function reading(...chunks: readonly unknown[]): Promise<Drained> {
  replying(sse(...chunks));
  return drain(client(), requestWith("hi"));
}

const whole = sse(
  choice({ role: "assistant", content: "Grüße 🌍" }),
  choice({
    tool_calls: [{ index: 0, id: "call_1", type: "function", function: { name: "write", arguments: '{"text":"' } }],
  }),
  choice({ tool_calls: [{ index: 0, function: { arguments: '🌍é"}' } }] }),
  choice({}, "tool_calls"),
  { choices: [], usage: { prompt_tokens: 9, completion_tokens: 4 } },
);

describe("a stream that is cut", { timeout: 120_000 }, () => {
  const bytes = Buffer.from(whole);
  const complete = bytes.indexOf("[DONE]") + "[DONE]".length;

  /** The cuts after which a reply was taken for whole; the address of each call says where to cut. */
  async function acceptedCuts(): Promise<number[]> {
    const accepted: number[] = [];
    let next = 0;
    const calls = Array.from({ length: 16 }, async () => {
      while (next < complete) {
        const cut = next++;
        const { end } = await drain(client({ baseUrl: `${server.url}/${cut}` }), requestWith("hi"));
        if (end?.type !== "failed") accepted.push(cut);
      }
    });
    await Promise.all(calls);
    return accepted;
  }
  const cutOf = (url = ""): number => Number(url.split("/")[2]);

  it("is whole only with its last mark, wherever a server ends it in good order", async () => {
    server.answer = ({ url }, response) => response.writeHead(200, sseHeaders).end(bytes.subarray(0, cutOf(url)));
    expect(await acceptedCuts()).toEqual([]);
    replying(bytes.subarray(0, complete));
    expect((await drain(client(), requestWith("hi"))).end).toMatchObject({ type: "done", stop: "calls" });
  });

  it("is a failure wherever the socket breaks", async () => {
    server.answer = ({ url }, response) => {
      response.writeHead(200, { ...sseHeaders, "content-length": bytes.length });
      response.flushHeaders();
      response.write(bytes.subarray(0, cutOf(url)), () => response.destroy());
    };
    expect(await acceptedCuts()).toEqual([]);
  });

  it("reads the same wherever it is split, also inside a character", async () => {
    for (let split = 1; split < bytes.length; split++) {
      const pieces = [bytes.subarray(0, split), bytes.subarray(split)];
      const body = new ReadableStream({
        pull(stream) {
          const piece = pieces.shift();
          if (piece === undefined) stream.close();
          else stream.enqueue(new Uint8Array(piece));
        },
      });
      const fetch = (): Promise<Response> => Promise.resolve(new Response(body, { headers: sseHeaders }));
      const drained = await drain(client({ fetch }), requestWith("hi"));
      expect(drained.text).toBe("Grüße 🌍");
      expect(drained.calls).toEqual([{ id: "call_1", name: "write", raw: '{"text":"🌍é"}' }]);
      expect(drained.end).toMatchObject({ type: "done", usage: { input: 9, output: 4, estimated: false } });
    }
  });

  it.each([
    ["a finish reason", sse(choice({ content: "half" }))],
    ["the closing mark", sse(choice({ content: "half" }, "stop")).replace("data: [DONE]\n\n", "")],
  ])("says that %s is missing", async (missing, body) => {
    replying(body);
    const { end } = await drain(client(), requestWith("hi"));
    expect(end).toMatchObject({ type: "failed", failure: { kind: "provider_error" } });
    expect(end?.type === "failed" && end.failure.message).toContain(
      missing === "the closing mark" ? "[DONE]" : missing,
    );
  });

  it("is not taken for whole because its text quotes the mark", async () => {
    replying(sse(choice({ content: "data: [DONE]\n" }, "stop")).replace("data: [DONE]\n\n", ""));
    expect((await drain(client(), requestWith("hi"))).end).toMatchObject({ type: "failed" });
  });
});

const call = (name: string, args: unknown, more: object = {}): object => ({
  function: { name, arguments: args },
  ...more,
});

describe("calls of servers that are not OpenAI's", () => {
  it("without an index or an id each begin with their name", async () => {
    const { calls, end } = await reading(
      choice({ tool_calls: [call("a", '{"x":'), call("b", "{}")] }),
      choice({ tool_calls: [{ function: { arguments: " " } }] }, "stop"),
    );
    expect(calls.map(({ name, raw }) => [name, raw])).toEqual([
      ["a", '{"x":'],
      ["b", "{} "],
    ]);
    expect(new Set(calls.map(({ id }) => id)).size).toBe(2);
    expect(end).toMatchObject({ type: "done", stop: "calls" });
  });

  it("with ids and no index are kept apart by their ids", async () => {
    const { calls } = await reading(
      choice({ tool_calls: [call("a", "{", { id: "1" }), call("b", "[", { id: "2" })] }),
      choice({ tool_calls: [{ id: "1", function: { arguments: "}" } }] }, "stop"),
    );
    expect(calls).toEqual([
      { id: "1", name: "a", raw: "{}" },
      { id: "2", name: "b", raw: "[" },
    ]);
  });

  it("that all have index 0 are kept apart by their ids", async () => {
    const { calls } = await reading(
      choice({ tool_calls: [call("a", "{}", { index: 0, id: "1" })] }),
      choice({ tool_calls: [call("b", "{}", { index: 0, id: "2" })] }, "tool_calls"),
    );
    expect(calls.map(({ id, name }) => [id, name])).toEqual([
      ["1", "a"],
      ["2", "b"],
    ]);
  });

  it("come interleaved and out of order", async () => {
    const { calls } = await reading(
      choice({ tool_calls: [call("b", "{", { index: 1, id: "2" }), call("a", "{", { index: 0, id: "1" })] }),
      choice(
        {
          tool_calls: [
            { index: 0, function: { arguments: '"x":1}' } },
            { index: 1, function: { arguments: "}" } },
          ],
        },
        "stop",
      ),
    );
    expect(calls).toEqual([
      { id: "1", name: "a", raw: '{"x":1}' },
      { id: "2", name: "b", raw: "{}" },
    ]);
  });

  it("get an id of their own where two share one", async () => {
    const { calls } = await reading(
      choice({ tool_calls: [call("a", "{}", { index: 0, id: "1" }), call("b", "{}", { index: 1, id: "1" })] }, "stop"),
    );
    expect(new Set(calls.map(({ id }) => id)).size).toBe(2);
  });

  it("may send the name after the arguments, and the arguments as an object", async () => {
    const { calls } = await reading(
      choice({ tool_calls: [{ index: 0, function: { arguments: "{}" } }] }),
      choice({ tool_calls: [call("late", "", { index: 0 }), call("whole", { x: 1 }, { index: 1 })] }, "stop"),
    );
    expect(calls.map(({ name, raw }) => [name, raw])).toEqual([
      ["late", "{}"],
      ["whole", '{"x":1}'],
    ]);
  });

  it("without any name are still calls", async () => {
    const { calls } = await reading(choice({ tool_calls: [{ index: 0, function: { arguments: "{}" } }] }, "stop"));
    expect(calls).toMatchObject([{ name: "", raw: "{}" }]);
  });
});

describe("fields that differ between servers", () => {
  it.each(["reasoning_content", "reasoning", "reasoning_text"])("takes thinking from %s", async (field) => {
    const { deltas, thinking } = await reading(choice({ [field]: "hm" }), choice({ content: "x" }, "stop"));
    expect(thinking).toBe("hm");
    expect(deltas[0]).toEqual({ type: "thinking", text: "hm", field });
  });

  const usage = {
    prompt_tokens: 10,
    completion_tokens: 5,
    prompt_tokens_details: { cached_tokens: 4 },
    completion_tokens_details: { reasoning_tokens: 2 },
  };
  const disjoint = { input: 6, output: 5, cacheRead: 4, cacheWrite: 0, reasoning: 2, estimated: false, cost: null };
  it.each([
    ["the chunk", [choice({ content: "x" }, "stop"), { choices: [], usage }]],
    ["the choice", [choice({ content: "x" }, "stop", { usage })]],
    [
      "x_groq",
      [choice({ content: "x" }), { choices: [{ index: 0, delta: {}, finish_reason: "stop" }], x_groq: { usage } }],
    ],
  ])("takes usage from %s, in parts that do not overlap", async (_, chunks) => {
    expect((await reading(...chunks)).end).toMatchObject({ usage: disjoint });
  });

  it.each([
    ["none", undefined],
    ["zero", { prompt_tokens: 0, completion_tokens: 0 }],
    ["negative", { prompt_tokens: -5, completion_tokens: 1 }],
    ["endless", { prompt_tokens: 1e12, completion_tokens: 1 }],
    ["text", { prompt_tokens: "9", completion_tokens: "9" }],
  ])("estimates usage and says so when the server's is %s", async (_, reported) => {
    const { end } = await reading(choice({ content: "x".repeat(400) }, "stop"), { choices: [], usage: reported });
    expect(end).toMatchObject({ usage: { estimated: true, cost: null } });
    expect(end?.type === "done" && end.usage.input).toBeGreaterThan(0);
    expect(end?.type === "done" && end.usage.output).toBeGreaterThan(30);
  });

  it("survives chunks of the wrong shape", async () => {
    const odd = [
      null,
      7,
      "x",
      [],
      {},
      { choices: null },
      { choices: [null] },
      choice(null),
      choice({ tool_calls: [null, 3] }),
      choice({ content: 5 }),
    ];
    const { text, end } = await reading(...odd, choice({ content: "fine" }, "stop"));
    expect({ text, end: end?.type }).toEqual({ text: "fine", end: "done" });
  });
});

describe("a server or network in trouble", () => {
  it.each([
    ["an overload", { message: "overloaded", type: "overloaded_error" }, "provider_error"],
    ["a rate limit", { message: "slow down", code: "rate_limit_exceeded" }, "rate_limit"],
  ])("reports %s in the middle of a good stream as a failure", async (_, error, kind) => {
    replying(`${sse(choice({ content: "a" })).replace("data: [DONE]\n\n", "")}data: ${JSON.stringify({ error })}\n\n`);
    const { end } = await drain(client(), requestWith("hi"));
    expect(end).toMatchObject({ type: "failed", failure: { kind } });
  });

  it("reports a piece that is not JSON", async () => {
    replying('data: {"choices":\n\ndata: [DONE]\n\n');
    const { end } = await drain(client(), requestWith("hi"));
    expect(end).toMatchObject({ type: "failed", failure: { kind: "provider_error" } });
    expect(end?.type === "failed" && end.failure.message).toContain("not JSON");
  });

  it("keeps an error page out of the message beyond 2 KB", async () => {
    server.answer = (_, response) =>
      response.writeHead(502, { "content-type": "text/html" }).end(`<p>${"x".repeat(50_000)}`);
    const { end } = await drain(client(), requestWith("hi"));
    expect(end).toMatchObject({ type: "failed", failure: { kind: "provider_error", status: 502 } });
    expect(end?.type === "failed" && end.failure.message.length).toBeLessThan(2_200);
  });

  it.each([
    ["retry-after", "2", 2_000],
    ["retry-after", "0.5", 500],
    ["retry-after-ms", "1500", 1_500],
  ])("reads the wait from %s: %s", async (name, value, wait) => {
    server.answer = (_, response) => response.writeHead(429, { [name]: value, "x-should-retry": "true" }).end("{}");
    const { end } = await drain(client(), requestWith("hi"));
    expect(end).toMatchObject({ failure: { kind: "rate_limit", retryAfter: wait } });
  });

  it("does not follow a redirect", async () => {
    let visits = 0;
    server.answer = (_, response) => {
      visits++;
      response.writeHead(307, { location: `${server.url}/elsewhere` }).end();
    };
    expect((await drain(client(), requestWith("hi"))).end).toMatchObject({ type: "failed" });
    expect(visits).toBe(1);
  });

  it("is unavailable when nobody listens or the host does not exist", async () => {
    const gone = await sseServer();
    await gone.close();
    for (const baseUrl of [gone.url, "http://no-such-host.invalid/v1"]) {
      const { end } = await drain(client({ baseUrl }), requestWith("hi"));
      expect(end).toMatchObject({ type: "failed", failure: { kind: "unavailable" } });
      expect(end?.type === "failed" && end.failure.message).toContain(baseUrl);
    }
  });

  it("times out when no byte comes, before the reply and inside it", async () => {
    server.answer = () => {};
    expect((await drain(client({ idleTimeout: 100 }), requestWith("hi"))).end).toMatchObject({
      failure: { kind: "timeout" },
    });
    server.answer = (_, response) =>
      response.writeHead(200, sseHeaders).write(sse(choice({ content: "a" })).slice(0, 40));
    expect((await drain(client({ idleTimeout: 100 }), requestWith("hi"))).end).toMatchObject({
      failure: { kind: "timeout" },
    });
  });

  it("takes comments for life", async () => {
    const talk = async (response: ServerResponse): Promise<void> => {
      response.writeHead(200, sseHeaders);
      for (let ping = 0; ping < 8; ping++) {
        response.write(": ping\n\n");
        await sleep(60);
      }
      response.end(sse(choice({ content: "at last" }, "stop")));
    };
    server.answer = (_, response) => void talk(response);
    const { text, end } = await drain(client({ idleTimeout: 250 }), requestWith("hi"));
    expect({ text, end: end?.type }).toEqual({ text: "at last", end: "done" });
  });
});

describe("what is sent", () => {
  async function headersWith(more: Partial<ServerOptions>): Promise<Record<string, unknown>> {
    let headers: Record<string, unknown> = {};
    server.answer = (request, response) => {
      headers = request.headers;
      response.writeHead(200, sseHeaders).end(sse(choice({ content: "x" }, "stop")));
    };
    await drain(openaiClient(serverOptions(server.url, more)), requestWith("hi"));
    return headers;
  }

  it("holds nothing of the environment", async () => {
    vi.stubEnv("OPENAI_API_KEY", "sk-ambient");
    vi.stubEnv("OPENAI_ADMIN_KEY", "sk-admin");
    vi.stubEnv("OPENAI_ORG_ID", "org-ambient");
    vi.stubEnv("OPENAI_PROJECT_ID", "proj-ambient");
    vi.stubEnv("OPENAI_CUSTOM_HEADERS", "X-Ambient: ambient");
    vi.stubEnv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1");
    const withKey = await headersWith({ apiKey: "sk-named" });
    expect(withKey["authorization"]).toBe("Bearer sk-named");
    expect(JSON.stringify(withKey)).not.toMatch(/ambient|sk-admin/);
    const without = await headersWith({});
    expect(without).not.toHaveProperty("authorization");
    expect(JSON.stringify(without)).not.toMatch(/ambient|sk-admin/);
  });
});
