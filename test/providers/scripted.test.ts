import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Message } from "../../src/model/message.ts";
import type { Clock, ModelClient } from "../../src/model/ports.ts";
import { loadScript } from "../../src/providers/script.ts";
import { scriptedClient } from "../../src/providers/scripted.ts";
import { drain, requestWith } from "./drain.ts";

const clock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms, callback) {
    const timer = setTimeout(callback, ms);
    return () => clearTimeout(timer);
  },
};

function playing(yaml: string): ModelClient {
  const script = loadScript(Buffer.from(yaml), "replies.yaml");
  if (!script.ok) throw new Error(JSON.stringify(script.error));
  return scriptedClient(script.value, clock);
}

function problems(yaml: string): string[] {
  const script = loadScript(Buffer.from(yaml), "replies.yaml");
  if (script.ok) return [];
  return script.error.map(
    ({ code, at, message, suggestion }) =>
      `${at.line}:${at.column} ${code} ${message}${suggestion === undefined ? "" : ` (${suggestion})`}`,
  );
}

function said(text: string): Message {
  return { role: "assistant", blocks: [{ type: "text", text }] };
}
function asked(text: string): Message {
  return { role: "user", blocks: [{ type: "text", text }] };
}

describe("the turns of a script", () => {
  const two = "agents: { writer: [{ text: one }, { text: two }] }";

  it("are taken in order, one for each reply in the conversation", async () => {
    const client = playing(two);
    expect((await drain(client, requestWith("go"))).text).toBe("one");
    const messages = [asked("go"), said("one"), asked("more")];
    expect((await drain(client, requestWith("", { messages }))).text).toBe("two");
  });

  it("begin anew for every run of the agent, also at the same time", async () => {
    const client = playing(two);
    const texts = await Promise.all(["a", "b", "a"].map((step) => drain(client, requestWith("go", { step }))));
    expect(texts.map(({ text }) => text)).toEqual(["one", "one", "one"]);
  });

  it("are an error with file, agent, step and turn when they are used up", async () => {
    const messages = [asked("go"), said("one"), asked("x"), said("two"), asked("y")];
    const { end } = await drain(playing(two), requestWith("", { messages }));
    expect(end).toEqual({
      type: "failed",
      failure: {
        kind: "provider_error",
        message: "replies.yaml: agent `writer` (step `draft`), turn 3: the script is used up; it has 2 turns for it",
        transient: false,
      },
    });
  });

  it("are an error when there are none for the agent", async () => {
    const { end } = await drain(playing(two), requestWith("go", { agent: "reader" }));
    expect(end).toMatchObject({ type: "failed", failure: { kind: "provider_error" } });
    expect(end?.type === "failed" && end.failure.message).toContain("no turns for this agent or step");
  });

  it.each([
    ["review[0]#2", "exact"],
    ["review[1]#2", "plain"],
    ["other", "agent"],
  ])("of step %s are those of the %s", async (step, text) => {
    const yaml =
      "steps: { 'review[0]#2': [{ text: exact }], review: [{ text: plain }] }\nagents: { writer: [{ text: agent }] }";
    expect((await drain(playing(yaml), requestWith("go", { step }))).text).toBe(text);
  });

  it("with a `when` are passed over when it does not hold", async () => {
    const yaml = `
agents:
  writer:
    - when: contains(message, 'red')
      text: a stop
    - when: \${{ contains(message, 'green') && turn == 1 }}
      text: a go
    - text: anything`;
    const texts = await Promise.all(["red", "green", "blue"].map((word) => drain(playing(yaml), requestWith(word))));
    expect(texts.map(({ text }) => text)).toEqual(["a stop", "a go", "anything"]);
  });

  it("say where they looked when no `when` holds", async () => {
    const { end } = await drain(playing("agents:\n  writer:\n    - when: turn == 2\n      text: x"), requestWith("go"));
    expect(end?.type === "failed" && end.failure.message).toContain(
      "no turn left in the script fits; looked at the 1 from line 3",
    );
  });

  it("fail when a `when` is not true or false", async () => {
    const { end } = await drain(playing("agents: { writer: [{ when: turn, text: x }] }"), requestWith("go"));
    expect(end).toMatchObject({ type: "failed", failure: { kind: "provider_error" } });
  });

  it("may use the prompt, the message and the results by name", async () => {
    const yaml = `
agents:
  writer:
    - calls: [{ name: Read, args: { path: "\${{ prompt }}.md", list: [1, "\${{ turn }}"] } }]
    - text: \${{ results[0].name }} said \${{ results[0].text }} (\${{ results[0].error }}), \${{ message }}`;
    const client = playing(yaml);
    const first = await drain(client, requestWith("notes"));
    expect(first.calls).toEqual([{ id: "call_1_1", name: "Read", raw: '{"path":"notes.md","list":[1,1]}' }]);
    const messages: Message[] = [
      asked("notes"),
      { role: "assistant", blocks: [{ type: "call", id: "call_1_1", name: "Read", args: {}, raw: "{}" }] },
      {
        role: "user",
        blocks: [{ type: "result", id: "call_1_1", blocks: [{ type: "text", text: "gone" }], error: true }],
      },
    ];
    expect((await drain(client, requestWith("", { messages }))).text).toBe("Read said gone (true), gone");
  });
});

describe("an error turn", () => {
  it.each([
    ["429", "rate_limit"],
    ["529", "provider_error"],
    ["500", "provider_error"],
    ["401", "unavailable"],
    ["timeout", "timeout"],
    ["malformed", "provider_error"],
    ["cut", "provider_error"],
  ])("of `%s` fails as %s after what it had to say", async (error, kind) => {
    const { text, end } = await drain(
      playing(`agents: { writer: [{ text: half, error: ${error} }] }`),
      requestWith("go"),
    );
    expect(text).toBe("half");
    expect(end).toMatchObject({ type: "failed", failure: { kind } });
  });

  it("is met once at each place of the conversation", async () => {
    const client = playing(
      "agents: { writer: [{ error: 429 }, { error: 529 }, { text: one }, { error: cut }, { text: two }] }",
    );
    const ends = [];
    for (let i = 0; i < 3; i++) ends.push((await drain(client, requestWith("go"))).end);
    expect(ends.map((end) => (end?.type === "failed" ? end.failure.status : end?.type))).toEqual([429, 529, "done"]);
    const messages = [asked("go"), said("one"), asked("more")];
    expect((await drain(client, requestWith("", { messages }))).end).toMatchObject({ type: "failed" });
    expect((await drain(client, requestWith("", { messages }))).text).toBe("two");
    expect((await drain(client, requestWith("go", { step: "another" }))).end).toMatchObject({
      failure: { status: 429 },
    });
  });
});

describe("a played turn", () => {
  it("costs nothing and has the usage it names", async () => {
    const { end } = await drain(
      playing("agents: { writer: [{ text: x, usage: { input: 7, output: 3, cache-read: 1 } }] }"),
      requestWith("go"),
    );
    const usage = { input: 7, output: 3, cacheRead: 1, cacheWrite: 0, reasoning: 0, estimated: false, cost: 0 };
    expect(end).toEqual({ type: "done", stop: "end", usage });
  });

  it("has an estimated usage otherwise", async () => {
    const { end } = await drain(playing(`agents: { writer: [{ text: ${"x".repeat(40)} }] }`), requestWith("go"));
    expect(end).toMatchObject({ usage: { output: 10, estimated: true, cost: 0 } });
  });

  it("gives the same message whatever the size of its pieces", async () => {
    const property = fc.asyncProperty(
      fc.string({ unit: "grapheme", minLength: 1 }),
      fc.integer({ min: 1, max: 40 }),
      async (text, chunk) => {
        fc.pre(!text.includes("${{"));
        const turn = { text, chunk, calls: [{ name: "t", args: { text } }] };
        const drained = await drain(playing(JSON.stringify({ agents: { writer: [turn] } })), requestWith("go"));
        expect(drained.text).toBe(text);
        expect(drained.calls).toMatchObject([{ name: "t", raw: JSON.stringify({ text }) }]);
        for (const delta of drained.deltas) if (delta.type === "text") expect(delta.text.isWellFormed()).toBe(true);
      },
    );
    await fc.assert(property, { numRuns: 100 });
  });

  it("waits for its delay, and not once it is cancelled", async () => {
    const client = playing("agents: { writer: [{ text: x, delay: 80ms }] }");
    const start = performance.now();
    await drain(client, requestWith("go"));
    expect(performance.now() - start).toBeGreaterThan(70);
    const slow = playing("agents: { writer: [{ text: x, delay: 1h }] }");
    const { text, end } = await drain(slow, requestWith("go"), { signal: AbortSignal.timeout(20) });
    expect(text).toBe("");
    expect(end).toMatchObject({ type: "failed", failure: { kind: "cancelled" } });
  });

  it("stops between two pieces when it is cancelled", async () => {
    const abort = new AbortController();
    const drained = await drain(playing("agents: { writer: [{ text: abcdef, chunk: 1 }] }"), requestWith("go"), {
      signal: abort.signal,
      onDelta: (delta) => delta.type === "text" && delta.text === "c" && abort.abort(),
    });
    expect(drained.text).toBe("abc");
    expect(drained.end).toMatchObject({ type: "failed", failure: { kind: "cancelled" } });
  });
});

describe("a script with mistakes", () => {
  it.each([
    ["agent: {}", ["1:1 FLOW2002 `agent` is not a key of a script (did you mean `agents`?)"]],
    ["{}", ["1:1 FLOW2003 a script needs `agents` or `steps`"]],
    ["[]", ["1:1 FLOW2001 a script must be a map"]],
    ["agents: { a: { text: x } }", ["1:14 FLOW2001 the turns of `a` must be a list"]],
    ["agents: { a: [] }", ["1:14 FLOW2004 `a` has no turns"]],
    [
      "agents: { a: [{ txt: x }] }",
      [
        "1:15 FLOW2003 a turn needs `text`, `calls` or `error`",
        "1:17 FLOW2002 `txt` is not a key of a turn (did you mean `text`?)",
      ],
    ],
    ["agents: { a: [{ calls: [{ args: {} }] }] }", ["1:25 FLOW2003 a call needs a `name`"]],
    [
      "agents: { a: [{ calls: [{ name: t, args: {}, raw: x }] }] }",
      ["1:36 FLOW2009 `args` and `raw` exclude each other"],
    ],
    ["agents: { a: [{ text: x, chunk: 0 }] }", ["1:33 FLOW2001 `chunk` must be a whole number from 1"]],
    [
      "agents: { a: [{ text: x, delay: 5 }] }",
      ["1:33 FLOW2012 `delay` must be a duration such as `500ms` or `2s`, at most 596h"],
    ],
    [
      "agents: { a: [{ text: x, delay: 700h }] }",
      ["1:33 FLOW2012 `delay` must be a duration such as `500ms` or `2s`, at most 596h"],
    ],
    [
      "agents: { a: [{ error: 200 }] }",
      ["1:24 FLOW2004 `error` is an HTTP status from 400 to 599, or timeout, malformed, cut, overflow, unreachable"],
    ],
    ["price: { input: 1, output: 2 }", ["1:1 FLOW2003 a script needs `agents` or `steps`"]],
    [
      "price: { input: free }\nagents: { a: [{ text: x }] }",
      ["1:8 FLOW2003 a `price` needs `output`", "1:17 FLOW2001 `input` must be US dollars for a million tokens"],
    ],
    ["agents: { a: [{ text: x, stop: never }] }", ["1:32 FLOW2004 `stop` is one of end, length, refusal, unknown"]],
    [
      "agents: { a: [{ text: x, usage: { in: 1 } }] }",
      ["1:35 FLOW2002 `in` is not a key of `usage` (known here: cache-read, cache-write, input, output, reasoning)"],
    ],
    [
      "agents: { a: [{ when: massage == 'x', text: x }] }",
      ["1:23 FLOW5002 Unrecognized named-value: 'massage' (Did you mean `message`?)"],
    ],
  ])("%s", (yaml, expected) => {
    expect(problems(yaml)).toEqual(expected);
  });

  it("has the place of an expression inside a text", () => {
    expect(problems('agents:\n  a:\n    - text: "say ${{ nope }}"')).toEqual([
      expect.stringContaining("3:22 FLOW5002"),
    ]);
  });

  it("names every problem at once", () => {
    expect(problems("agents: { a: [{ text: x, chunk: 0, stop: no }], b: 3 }")).toHaveLength(3);
  });

  it("has the YAML reader's diagnostics when it is not YAML", () => {
    expect(problems("agents: [")).toEqual([expect.stringContaining("FLOW1006")]);
  });
});

describe("the price of a script", () => {
  const tokens = { input: 1000, output: 100, cacheRead: 1000, cacheWrite: 0, reasoning: 0 };

  it.each([
    ["nothing by default", "", 0],
    ["what it says, cached tokens as others", "price: { input: 3, output: 15 }\n", 0.0075],
    ["less for cached tokens, where it says so", "price: { input: 3, output: 15, cache-read: 1 }\n", 0.0055],
  ])("is %s", (_what, price, cost) => {
    const script = loadScript(Buffer.from(`${price}agents: { a: [{ text: x }] }`), "replies.yaml");
    if (!script.ok) throw new Error("the script is wrong");
    const clock: Clock = { now: () => 0, monotonic: () => 0, after: () => () => undefined };
    expect(scriptedClient(script.value, clock).facts.cost(tokens)).toBeCloseTo(cost, 12);
  });
});
