import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../src/model/json.ts";
import { unknownFacts } from "../../src/model/ports.ts";
import { running, tool } from "./running.ts";

const output: JsonObject = {
  type: "object",
  required: ["ok"],
  properties: { ok: { type: "boolean" } },
  additionalProperties: false,
};

describe("an agent with an output schema", () => {
  it("is done when it calls finish with what fits", async () => {
    const { result, events } = await running("- { text: Here it is., calls: [{ name: finish, args: { ok: true } }] }", {
      output,
    });
    expect(result).toMatchObject({ outcome: "done", output: { ok: true }, text: "Here it is.", turns: 1 });
    expect(events.at(-1)?.type).toBe("turn.finished");
  });

  it("is offered finish beside its tools, with the schema as parameters", async () => {
    const offered: unknown[] = [];
    const client = {
      provider: "fake",
      facts: unknownFacts,
      async *stream({ tools }: { tools: readonly unknown[] }) {
        await Promise.resolve();
        offered.push(...tools);
        yield { type: "failed" as const, failure: { kind: "provider_error" as const, message: "x", transient: false } };
      },
    };
    await running(client, { output, tools: [tool("Read")] });
    expect(offered).toMatchObject([{ name: "Read" }, { name: "finish", parameters: output }]);
  });

  it("reads the schema's complaints and may try twice more", async () => {
    const { result, results } = await running(
      "- calls: [{ name: finish, args: { ok: maybe } }]\n- calls: [{ name: finish, args: {} }]\n- calls: [{ name: finish, args: { ok: false } }]",
      { output },
    );
    expect(result).toMatchObject({ outcome: "done", output: { ok: false }, turns: 3 });
    expect(results.map(({ error }) => error)).toEqual([true, true, false]);
    expect(results[0]?.text).toContain("ok");
  });

  it("is invalid_output after the third finish that does not fit, with its text kept", async () => {
    const bad = "- { text: trying, calls: [{ name: finish, args: { ok: maybe } }] }\n";
    const { result } = await running(`${bad.repeat(5)}`, { output });
    expect(result).toMatchObject({ outcome: "invalid_output", turns: 3, text: "trying" });
    expect(result.reason).toContain("`finish`");
    expect(result).not.toHaveProperty("output");
  });

  it("runs the calls beside finish in their place", async () => {
    const { result, results } = await running(
      "- calls: [{ name: Write, args: { text: a } }, { name: finish, args: { ok: true } }, { name: finish, args: { ok: false } }]",
      { output, tools: [tool("Write", { readOnly: false })] },
    );
    expect(result.output).toEqual({ ok: true });
    expect(results.map(({ error }) => error)).toEqual([false, false, true]);
  });

  it.each([
    ["bare", '{"ok": true}'],
    ["fenced", 'Here:\n```json\n{"ok": true}\n```\nDone.'],
    ["in a sentence", 'The answer is {"ok": true}, I think.'],
    ["fenced last", '```\n{"ok": false}\n```\nNo, rather:\n```json\n{"ok": true}\n```'],
  ])("may answer in prose: %s", async (_, text) => {
    const { result } = await running(`- text: ${JSON.stringify(text)}`, { output });
    expect(result).toMatchObject({ outcome: "done", output: { ok: true }, text });
  });

  it.each([
    ["no JSON at all", "All is well.", "nor a JSON object"],
    ["JSON that does not fit", '{"ok": "yes"}', "does not fit"],
    ["two objects", '{"ok": true} {"ok": false}', "nor a JSON object"],
    ["__proto__", '{"ok": true, "__proto__": {}}', "nor a JSON object"],
  ])("is invalid_output for prose with %s", async (_, text, words) => {
    const { result } = await running(`- text: ${JSON.stringify(text)}\n`.repeat(3), { output });
    expect(result).toMatchObject({ outcome: "invalid_output", text, turns: 3 });
    expect(result.reason).toContain(words);
  });

  it("is max_turns when the turns run out first", async () => {
    const bad = "- calls: [{ name: finish, args: { ok: maybe } }]\n";
    const { result } = await running(`${bad}- text: '{"ok":true}'`, { output, maxTurns: 1 });
    expect(result).toMatchObject({ outcome: "max_turns" });
    expect(result).not.toHaveProperty("output");
  });

  it("accepts a whole answer from a reply that ended at the output limit", async () => {
    const { result } = await running(`- { text: '{"ok":true}', stop: length }`, { output });
    expect(result).toMatchObject({ outcome: "done", output: { ok: true } });
  });
});
