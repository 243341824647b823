import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { Tool } from "../../src/model/ports.ts";
import { unknownFacts } from "../../src/model/ports.ts";
import { ok } from "../../src/model/result.ts";
import { running, tool } from "./running.ts";

/** A tool that notes when it begins and ends. */
function noting(
  name: string,
  log: string[],
  { ms = 10, readOnly = true }: { ms?: number; readOnly?: boolean } = {},
): Tool {
  return tool(name, {
    readOnly,
    async run() {
      log.push(`${name} begins`);
      await sleep(ms);
      log.push(`${name} ends`);
      return ok({ blocks: [{ type: "text", text: name }] });
    },
  });
}

async function calling(calls: string, tools: readonly Tool[]): ReturnType<typeof running> {
  return running(`- calls: ${calls}\n- text: the end`, { tools });
}

describe("the calls of one message", () => {
  it("run together when they only read, and are answered in the model's order", async () => {
    const log: string[] = [];
    const tools = [noting("Slow", log, { ms: 60 }), noting("Fast", log)];
    const { results, events } = await calling("[{ name: Slow }, { name: Fast }]", tools);
    expect(log).toEqual(["Slow begins", "Fast begins", "Fast ends", "Slow ends"]);
    expect(results.map(({ text }) => text)).toEqual(["Slow", "Fast"]);
    const finished = events.flatMap((event) => (event.type === "tool.finished" ? [event.name] : []));
    expect(finished).toEqual(["Fast", "Slow"]);
  });

  it("run one after another, in their place, when they write", async () => {
    const log: string[] = [];
    const tools = [noting("Read", log), noting("Write", log, { readOnly: false })];
    await calling("[{ name: Read }, { name: Write }, { name: Read }, { name: Write }]", tools);
    const order = ["Read", "Write", "Read", "Write"];
    expect(log).toEqual(order.flatMap((name) => [`${name} begins`, `${name} ends`]));
  });

  it("are at most sixteen at a time", async () => {
    let running = 0;
    let most = 0;
    const counting = tool("Count", {
      async run() {
        most = Math.max(most, ++running);
        await sleep(2);
        running--;
        return ok({ blocks: [] });
      },
    });
    const { results } = await calling(`[${"{ name: Count },".repeat(40)}]`, [counting]);
    expect(most).toBe(16);
    expect(results).toHaveLength(40);
  });
});

describe("an image that a tool gives", () => {
  const image = (size: number): { readonly type: "image"; readonly mediaType: string; readonly data: string } => ({
    type: "image",
    mediaType: "image/png",
    data: "a".repeat(size),
  });

  it("goes to the model beside the text, unless it is too large", async () => {
    const seeing = tool("See", {
      run: () => Promise.resolve(ok({ blocks: [{ type: "text", text: "two" }, image(8), image(6 * 1024 * 1024)] })),
    });
    const { events } = await calling("[{ name: See, args: {} }]", [seeing]);
    const blocks = events.flatMap((event) => (event.type === "message" ? event.message.blocks : []));
    expect(blocks.find(({ type }) => type === "result")).toMatchObject({
      blocks: [{ type: "text", text: "two\n(an image that is too large to be shown)" }, image(8)],
    });
  });

  it("needs no text beside it", async () => {
    const seeing = tool("See", { run: () => Promise.resolve(ok({ blocks: [image(8)] })) });
    const { events } = await calling("[{ name: See, args: {} }]", [seeing]);
    const blocks = events.flatMap((event) => (event.type === "message" ? event.message.blocks : []));
    expect(blocks.find(({ type }) => type === "result")).toMatchObject({ blocks: [image(8)] });
  });
});

describe("a call that cannot run becomes a result the model can read", () => {
  const tools = [tool("Read"), tool("Write", { readOnly: false })];

  it.each([
    ["read", "There is no tool `read`. Did you mean `Read`? On offer: Read, Write."],
    ["Reed", "There is no tool `Reed`. Did you mean `Read`? On offer: Read, Write."],
    ["''", "There is no tool ``. On offer: Read, Write."],
    ["constructor", "There is no tool `constructor`. On offer: Read, Write."],
  ])("an unknown tool: %s", async (name, text) => {
    const { results, events, result } = await calling(`[{ name: ${name}, args: { text: x } }]`, tools);
    expect(results).toEqual([{ id: "call_1_1", text, error: true }]);
    expect(result.outcome).toBe("done");
    expect(events.some(({ type }) => type === "tool.started")).toBe(false);
    expect(events.find((event) => event.type === "tool.finished")).toMatchObject({ status: "error", text });
  });

  it("a name of 10 KB, without repeating all of it", async () => {
    const { results } = await calling(`[{ name: ${"x".repeat(10_240)} }]`, tools);
    expect(results[0]?.text.length).toBeLessThan(200);
  });

  it.each([
    ['{"a":1}{"a":1}', "position 7"],
    ['{"text": "x",}', "position 13"],
    ["hello", "position 0"],
    ['{"text": [1, x]}', "position 13"],
    ["", "position 0 (the end"],
    ['{"text": "unfinish', "position 18 (the end"],
    ['{"text": tr', "position 11 (the end"],
    ["[1]", "one JSON object"],
    ["null", "one JSON object"],
    ['{"__proto__": {"polluted": true}}', "`__proto__`"],
    ['{"text": "x", "deep": [{"\\u005f_proto__": 1}]}', "`__proto__`"],
    [`{"text": ${"[".repeat(100_000)}${"]".repeat(100_000)}}`, "deeper than 64"],
  ])("arguments that are no object: %.40s", async (raw, words) => {
    const { results, events } = await running(
      `- calls: [{ name: Read, raw: ${JSON.stringify(raw)}, }]\n- text: the end`,
      { tools },
    );
    expect(results).toMatchObject([{ error: true }]);
    expect(results[0]?.text).toContain(words);
    expect(events.some(({ type }) => type === "tool.started")).toBe(false);
    expect(Object.hasOwn(Object.prototype, "polluted")).toBe(false);
    const call = events
      .flatMap((event) => (event.type === "message" ? event.message.blocks : []))
      .find(({ type }) => type === "call");
    expect(call).toMatchObject({ raw, args: null });
  });

  it("arguments over 1 MiB, of which no more is kept", async () => {
    const raw = JSON.stringify({ text: "x".repeat(3 * 1024 * 1024) });
    const client = {
      provider: "fake",
      facts: unknownFacts,
      async *stream({ messages }: { messages: readonly unknown[] }) {
        await Promise.resolve();
        const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0, estimated: false, cost: 0 };
        if (messages.length > 1) yield { type: "text" as const, text: "the end" };
        else {
          yield { type: "call" as const, index: 0, id: "c", name: "Read" };
          for (let at = 0; at < raw.length; at += 65_536)
            yield { type: "args" as const, index: 0, text: raw.slice(at, at + 65_536) };
        }
        yield { type: "done" as const, stop: "end" as const, usage };
      },
    };
    const { results, events, result } = await running(client, { tools });
    expect(results[0]?.text).toContain("larger than 1048576 bytes");
    expect(result.outcome).toBe("done");
    const call = events
      .flatMap((event) => (event.type === "message" ? event.message.blocks : []))
      .find(({ type }) => type === "call");
    expect(call?.type === "call" && call.raw.length).toBe(1024 * 1024 + 1);
  });

  it("arguments that do not fit the parameters, with at most five of the errors", async () => {
    const properties = Object.fromEntries("abcdefg".split("").map((key) => [key, { type: "number" }]));
    const strict = tool("Strict", { parameters: { type: "object", properties, additionalProperties: false } });
    const args = "{ a: x, b: x, c: x, d: x, e: x, f: x, g: x }";
    const { results, events } = await calling(`[{ name: Strict, args: ${args} }]`, [strict]);
    expect(results[0]?.error).toBe(true);
    const lines = results[0]?.text.split("\n") ?? [];
    expect(lines).toHaveLength(7);
    expect(lines[1]).toContain("a");
    expect(lines[6]).toBe("- and 2 more");
    expect(events.some(({ type }) => type === "tool.started")).toBe(false);
  });

  it.each([
    [
      "throws",
      () => {
        throw new Error("disk on fire");
      },
    ],
    ["rejects", () => Promise.reject(new Error("disk on fire"))],
  ])("a tool that %s", async (_, run) => {
    const { results, result } = await calling("[{ name: Bad }]", [tool("Bad", { run })]);
    expect(results).toEqual([{ id: "call_1_1", text: "`Bad` failed: disk on fire", error: true }]);
    expect(result.outcome).toBe("done");
  });

  it("does not stop its neighbours", async () => {
    const { results } = await calling("[{ name: Nope }, { name: Read, args: { text: a } }, { name: Read }]", tools);
    expect(results.map(({ text, error }) => [text.slice(0, 16), error])).toEqual([
      ["There is no tool", true],
      ["a", false],
      ["no text was give", true],
    ]);
  });
});

describe("a long result", () => {
  async function resultOf(
    text: string,
  ): Promise<{ shown: string; spilled: readonly string[]; file: string | undefined }> {
    const long = tool("Long", { run: () => Promise.resolve(ok({ blocks: [{ type: "text", text }] })) });
    const { results, spilled, events } = await calling("[{ name: Long }]", [long]);
    const finished = events.find((event) => event.type === "tool.finished");
    return {
      shown: results[0]?.text ?? "",
      spilled,
      file: finished?.type === "tool.finished" ? finished.file : undefined,
    };
  }

  it("is whole up to 2,000 lines and 50 KB", async () => {
    for (const text of ["line\n".repeat(2_000), "x".repeat(50 * 1024)]) {
      expect(await resultOf(text)).toEqual({ shown: text, spilled: [], file: undefined });
    }
  });

  it("is cut after 2,000 lines and lies whole in a file", async () => {
    const text = "line\n".repeat(2_500);
    const { shown, spilled, file } = await resultOf(text);
    expect(shown.split("\n")).toHaveLength(2_001);
    expect(shown).toContain("2000 of 2501 lines");
    expect(shown).toContain("files/1.txt");
    expect({ spilled, file }).toEqual({ spilled: [text], file: "files/1.txt" });
  });

  it("is cut at 50 KB, between two characters", async () => {
    const { shown, spilled } = await resultOf(`x${"🌍".repeat(20_000)}`);
    const head = shown.slice(0, shown.indexOf("\n[cut"));
    expect(Buffer.byteLength(head)).toBe(1 + 4 * 12_799);
    expect(head.isWellFormed()).toBe(true);
    expect(spilled).toHaveLength(1);
  });

  it("that is empty is said in words", async () => {
    expect((await resultOf("")).shown).toBe("(no output)");
  });
});
