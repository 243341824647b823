import { hash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { requestHash, RequestHashes } from "../../src/agent/request.ts";
import { canonicalJson, type Json } from "../../src/model/json.ts";
import type { Message } from "../../src/model/message.ts";
import type { ModelRequest } from "../../src/model/ports.ts";
import { maskEvent } from "../../src/runlog/mask-event.ts";

const masked = (request: ModelRequest): ModelRequest =>
  maskEvent(request, (text) => text.replaceAll("hunter2", "***")) as ModelRequest;

const conversation: readonly Message[] = [
  { role: "system", blocks: [{ type: "text", text: "You. hunter2" }] },
  { role: "user", blocks: [{ type: "text", text: "go" }] },
  {
    role: "assistant",
    blocks: [
      { type: "thinking", text: "…", model: "m" },
      { type: "call", id: "c", name: "Read", args: { z: 1, a: "hunter2" }, raw: '{"z":1,"a":"hunter2"}' },
    ],
  },
  { role: "user", blocks: [{ type: "result", id: "c", blocks: [{ type: "text", text: "hunter2" }], error: true }] },
];

function request(messages: readonly Message[], more: Partial<ModelRequest> = {}): ModelRequest {
  const tools = [{ name: "Read", description: "Reads.", parameters: { type: "object", properties: {} } }];
  return { model: "m", agent: "a", step: "s", messages: [...messages], tools, ...more };
}

/** What the hash stands for, without any memory. */
function plainHash({ agent: _agent, step: _step, earlier: _earlier, ...seen }: ModelRequest): string {
  return hash("sha256", canonicalJson(JSON.parse(JSON.stringify(seen)) as Json));
}

describe("the hash of a request", () => {
  it("is that of its canonical JSON, masked, at every turn of a conversation", () => {
    const hashes = new RequestHashes(masked);
    for (let turn = 1; turn <= conversation.length; turn++) {
      const asked = request(conversation.slice(0, turn), { temperature: turn > 2 ? 0.5 : 0 });
      expect(hashes.of(asked)).toBe(plainHash(masked(asked)));
      expect(requestHash(asked, masked)).toBe(plainHash(masked(asked)));
      expect(requestHash(asked)).toBe(plainHash(asked));
    }
  });

  it("is another when the tools or the schema of the answer change between two turns", () => {
    const hashes = new RequestHashes();
    const asked = [request(conversation), request(conversation, { tools: [] })];
    asked.push(request(conversation, { answerSchema: { type: "object" } }), request(conversation));
    expect(asked.map((one) => hashes.of(one))).toEqual(asked.map(plainHash));
    expect(new Set(asked.map(plainHash)).size).toBe(3);
  });

  it("knows nothing of who asks", () => {
    const asked = request(conversation);
    expect(requestHash({ ...asked, agent: "b", step: "t", earlier: 3 })).toBe(requestHash(asked));
  });
});
