import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ok } from "../../src/model/result.ts";
import { openaiClient } from "../../src/providers/openai.ts";
import { choice, sse, sseHeaders, sseServer } from "../providers/sse-server.ts";
import type { SseServer } from "../providers/sse-server.ts";
import { serverOptions } from "../providers/server-options.ts";
import { hastyClock, running, tool } from "./running.ts";

let server: SseServer;
beforeAll(async () => {
  server = await sseServer();
});
afterAll(() => server.close());

const call = (args: string): unknown =>
  choice({
    content: "I write.",
    tool_calls: [{ index: 0, id: "call_1", function: { name: "Write", arguments: args } }],
  });

describe("an agent over an OpenAI-compatible server", () => {
  it("calls a tool, reads its result and answers", async () => {
    const bodies: unknown[] = [];
    server.answer = (_, response, body) => {
      bodies.push(JSON.parse(body));
      const reply =
        bodies.length === 1
          ? sse(call('{"text":'), choice({ tool_calls: [{ index: 0, function: { arguments: '"a"}' } }] }, "stop"))
          : sse(choice({ content: "Done." }, "stop"));
      response.writeHead(200, sseHeaders).end(reply);
    };
    const client = openaiClient(serverOptions(server.url));
    const { result } = await running(client, { tools: [tool("Write", { readOnly: false })] });
    expect(result).toMatchObject({ outcome: "done", text: "Done.", turns: 2, usage: { estimated: true, cost: null } });
    expect(bodies[1]).toMatchObject({
      messages: [
        { role: "user", content: "Write." },
        {
          role: "assistant",
          content: "I write.",
          tool_calls: [{ id: "call_1", function: { name: "Write", arguments: '{"text":"a"}' } }],
        },
        { role: "tool", tool_call_id: "call_1", content: "a" },
      ],
    });
  });

  it("sends arguments that did not parse back as an empty object, with the error as result", async () => {
    const bodies: string[] = [];
    server.answer = (_, response, body) => {
      bodies.push(body);
      response
        .writeHead(200, sseHeaders)
        .end(
          bodies.length === 1
            ? sse(call('{"text": "unfin'), choice({}, "length"))
            : sse(choice({ content: "Sorry." }, "stop")),
        );
    };
    const client = openaiClient(serverOptions(server.url));
    const { result, results } = await running(client, { tools: [tool("Write")] });
    expect(result).toMatchObject({ outcome: "done", text: "Sorry." });
    expect(results[0]).toMatchObject({ error: true });
    expect(JSON.parse(bodies[1] ?? "")).toMatchObject({
      messages: [
        {},
        { tool_calls: [{ function: { arguments: "{}" } }] },
        { role: "tool", content: expect.stringMatching(/^Error: .*position/) as string },
      ],
    });
  });

  it("runs no tool and is never done, wherever the stream is cut", { timeout: 120_000 }, async () => {
    const bytes = Buffer.from(sse(call('{"text":"a"}'), choice({}, "tool_calls")));
    const complete = bytes.indexOf("[DONE]") + "[DONE]".length;
    let ran = 0;
    const write = tool("Write", {
      run: () => {
        ran++;
        return Promise.resolve(ok({ blocks: [] }));
      },
    });
    const outcomes = new Set<string>();
    for (let cut = 0; cut < complete; cut++) {
      server.answer = (_, response) => response.writeHead(200, sseHeaders).end(bytes.subarray(0, cut));
      const client = openaiClient(serverOptions(server.url));
      outcomes.add((await running(client, { tools: [write], clock: hastyClock })).result.outcome);
    }
    expect([...outcomes]).toEqual(["provider_error"]);
    expect(ran).toBe(0);
  });
});
