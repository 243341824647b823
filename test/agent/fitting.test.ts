import { describe, expect, it } from "vitest";
import type { AgentRun } from "../../src/agent/agent-run.ts";
import { Conversations } from "../../src/agent/conversations.ts";
import type { Recorded } from "../../src/agent/recorded.ts";
import { hints } from "../../src/agent/hints.ts";
import type { AgentEvent } from "../../src/model/agent-event.ts";
import type { LogLine } from "../../src/model/event.ts";
import type { ModelClient, ModelRequest } from "../../src/model/ports.ts";
import { loadScript } from "../../src/providers/script.ts";
import { scriptedClient } from "../../src/providers/scripted.ts";
import { clock, type Ran, running, tool } from "./running.ts";

interface Played {
  readonly client: ModelClient;
  readonly asked: ModelRequest[];
}

function script(text: string): Played {
  const loaded = loadScript(Buffer.from(text), "replies.yaml");
  if (!loaded.ok) throw new Error(loaded.error.map(({ message }) => message).join("\n"));
  const inner = scriptedClient(loaded.value, clock);
  const asked: ModelRequest[] = [];
  const { provider, facts } = inner;
  const client: ModelClient = {
    provider,
    facts,
    stream(request, signal) {
      asked.push(request);
      return inner.stream(request, signal);
    },
  };
  return { client, asked };
}

const word = "lorem ipsum ";
/** Turns with a read each: what is said has about `said` tokens, the result about `tokens`. */
function reads(count: number, tokens: number, said = 0): string {
  const turn = (index: number): string =>
    `    - { text: "Finding: number ${index}\\n${word.repeat(said / 3)}", calls: [{ name: Read, args: { text: "${index} ${tokens / 3}" } }] }\n`;
  return Array.from({ length: count }, (_, index) => turn(index)).join("");
}

type Compressed = Extract<AgentEvent, { type: "context.compressed" }>;

function compressed({ events }: Ran): Compressed[] {
  return events.flatMap((event) => (event.type === "context.compressed" ? [event] : []));
}

const tools = [
  tool("Read", {
    run({ text }) {
      const said = typeof text === "string" ? text : "";
      const times = Number(said.split(" ")[1] ?? 1);
      return Promise.resolve({
        ok: true,
        value: { blocks: [{ type: "text", text: `${said} ${word.repeat(times)}` }] },
      });
    },
  }),
];

describe("a conversation that nears the window", () => {
  it("loses old results at 65 %, without a model call", async () => {
    const { client, asked } = script(`window: 10000\nagents:\n  writer:\n${reads(18, 400)}    - text: done\n`);
    const ran = await running(client, { tools });
    expect(ran.result).toMatchObject({ outcome: "done", text: "done", turns: 19 });
    const [first] = compressed(ran);
    expect(first).toMatchObject({ how: "trimmed", tokens: { limit: 10_000 } });
    expect(first?.tokens.before).toBeGreaterThanOrEqual(6_500);
    expect(first?.tokens.after).toBeLessThan(first?.tokens.before ?? 0);
    expect(compressed(ran).every(({ how }) => how === "trimmed")).toBe(true);
    const last = asked.at(-1)?.messages ?? [];
    expect(JSON.stringify(last[2])).toContain("characters were left out here");
    expect(JSON.stringify(last.slice(-6))).not.toContain("characters were left out here");
  });

  const long = `window: 6000\nagents:\n  writer:\n${reads(30, 450, 300)}    - text: done\n  compact:\n    - text: first summary\n`;

  it("is summarised at 80 %, with the first message and what was written down kept", async () => {
    const { client, asked } = script(long);
    const messages: AgentRun["messages"] = [
      { role: "system", blocks: [{ type: "text", text: "THE RULES" }] },
      { role: "user", blocks: [{ type: "text", text: "THE PROMPT" }] },
    ];
    const ran = await running(client, { tools, messages });
    expect(ran.result).toMatchObject({ outcome: "done", text: "done", turns: 31 });
    const summaries = compressed(ran).filter(({ how }) => how === "summarised");
    expect(summaries.length).toBeGreaterThanOrEqual(2);
    for (const { tokens } of summaries) expect(tokens.after).toBeLessThan(6_000 * 0.8);
    const request = asked.findLast(({ agent }) => agent === "writer");
    expect(request?.messages.slice(0, 2)).toEqual(messages);
    const summary = request?.messages[2];
    expect(JSON.stringify(summary)).toContain("first summary");
    // What was found in the part that was summarised first survives the second summary too.
    const pins = summary?.blocks[1];
    expect(pins).toMatchObject({ type: "text", text: expect.stringMatching(/Finding: number 0\n/) as string });
    const largest = Math.max(...asked.map(({ messages: sent }) => JSON.stringify(sent).length / 4));
    expect(largest).toBeLessThan(6_000 * 1.25);
    const compact = asked.filter(({ agent }) => agent === "compact");
    expect(compact[0]).toMatchObject({ step: "draft/compact", tools: [] });
  });

  it("pays for its summaries", async () => {
    const { client } = script(long.replace("text: first summary", "{ text: s, usage: { input: 1000000, output: 5 } }"));
    const ran = await running(client, { tools });
    expect(ran.result.usage.input).toBeGreaterThan(1_000_000);
  });

  it("keeps the list of the agent", async () => {
    const plan = "    - calls: [{ name: TodoWrite, args: { todos: [{ content: Read all, status: pending }] } }]\n";
    const { client, asked } = script(long.replace("  writer:\n", `  writer:\n${plan}`));
    const todo = tool("TodoWrite", {
      parameters: { type: "object" },
      run: () => Promise.resolve({ ok: true, value: { blocks: [] } }),
    });
    await running(client, { tools: [...tools, todo] });
    const summary = asked.findLast(({ agent }) => agent === "writer")?.messages[1];
    expect(JSON.stringify(summary)).toContain(JSON.stringify(`${hints.pins}`).slice(1, -1));
    expect(JSON.stringify(summary)).toContain("- [pending] Read all");
  });

  it("leaves the oldest findings out when there are too many to work on", async () => {
    const text = long.replaceAll(/Finding: number (\d+)\\n/g, (_, number: string) => {
      const lines = Array.from({ length: 30 }, (__, line) => `Finding: number ${number}, line ${line} of thirty`);
      return `${lines.join("\\n")}\\n`;
    });
    expect(text).not.toBe(long);
    const { client, asked } = script(text);
    const ran = await running(client, { tools });
    expect(ran.result).toMatchObject({ outcome: "done" });
    const summary = JSON.stringify(asked.findLast(({ agent }) => agent === "writer")?.messages[1]);
    expect(summary).toContain("older findings were left out");
    expect(summary).not.toContain("Finding: number 0, line 0 ");
    for (const { tokens } of compressed(ran)) expect(tokens.after).toBeLessThan(6_000);
  });

  it("that cannot be made to fit is overflow, and nothing is sent", async () => {
    const { client, asked } = script("window: 100\nagents: { writer: [{ text: done }] }");
    const messages: AgentRun["messages"] = [{ role: "user", blocks: [{ type: "text", text: word.repeat(200) }] }];
    const ran = await running(client, { messages });
    expect(ran.result.outcome).toBe("overflow");
    expect(ran.result.reason).toMatch(/has about 60\d tokens and 100 fit/);
    expect(asked).toEqual([]);
  });

  it("says why it could not be summarised", async () => {
    const { client } = script(long.replace("    - text: first summary\n", "    - error: 401\n"));
    const ran = await running(client, { tools });
    expect(ran.result).toMatchObject({ outcome: "provider_error" });
    expect(ran.result.reason).toContain("could not be summarised");
    const empty = script(long.replace("first summary", "''"));
    expect((await running(empty.client, { tools })).result).toMatchObject({ outcome: "overflow" });
  });
});

describe("a provider that finds the conversation too long", () => {
  const turns = `${reads(6, 100)}    - error: overflow\n`;

  it("gets a shorter one, once", async () => {
    const text = `agents:\n  writer:\n${turns}    - text: done\n  compact: [{ text: summary }]\n`;
    const ran = await running(script(text).client, { tools });
    expect(ran.result).toMatchObject({ outcome: "done", text: "done" });
    expect(compressed(ran).map(({ how, tokens }) => [how, tokens.limit])).toEqual([
      ["trimmed", null],
      ["summarised", null],
    ]);
  });

  it("ends it as overflow the second time, or when nothing can be left out", async () => {
    const twice = `agents:\n  writer:\n${turns}    - error: overflow\n    - text: done\n  compact: [{ text: summary }]\n`;
    expect((await running(script(twice).client, { tools })).result).toMatchObject({ outcome: "overflow" });
    const short = "agents: { writer: [{ error: overflow }, { text: done }] }";
    const ran = await running(script(short).client, {});
    expect(ran.result).toMatchObject({ outcome: "overflow", turns: 1 });
    expect(compressed(ran)).toEqual([]);
  });

  it("may do so again after a reply", async () => {
    const again = `agents:\n  writer:\n${turns}${reads(6, 100)}    - error: overflow\n    - text: done\n  compact: [{ text: summary }]\n`;
    expect((await running(script(again).client, { tools })).result).toMatchObject({ outcome: "done" });
  });
});

describe("an agent that was cut off behind any of its events", () => {
  const list = "{ name: TodoWrite, args: { todos: [{ content: Read all, status: STATUS }] } }";
  const text = `window: 3000
agents:
  writer:
    - calls: [${list.replace("STATUS", "pending")}]
${reads(9, 240, 210)}    - { calls: [{ name: Read, args: { text: same } }, { name: Nothing }] }
    - { calls: [{ name: Read, args: { text: same } }] }
    - { calls: [{ name: Read, args: { text: same } }] }
    - text: prose
    - calls: [{ name: finish, args: { n: x } }]
    - calls: [{ name: finish, args: { n: 1 } }]
    - calls: [{ name: finish, args: { n: 2 } }]
    - calls: [${list.replace("STATUS", "completed")}]
    - calls: [{ name: finish, args: { n: 3 } }]
  compact:
    - text: a summary
`;
  const todo = tool("TodoWrite", {
    readOnly: false,
    parameters: { type: "object" },
    run: () => Promise.resolve({ ok: true, value: { blocks: [{ type: "text", text: "written" }] } }),
  });

  function more(recorded?: Recorded): Partial<AgentRun> {
    const ids = { step: "draft", agent: recorded === undefined ? "draft@1" : "draft@2", parent: null };
    const output = { type: "object", required: ["n"], properties: { n: { type: "integer" } } };
    let checks = recorded?.history.failedChecks ?? 0;
    const run = (): Promise<{ status: "passed" | "failed"; text: string }> =>
      Promise.resolve(checks++ === 0 ? { status: "failed", text: "no" } : { status: "passed", text: "" });
    return {
      ids,
      output,
      tools: [...tools, todo],
      check: { script: "test", max: 3, run },
      ...(recorded && { recorded }),
    };
  }

  function fold(events: readonly AgentEvent[]): Recorded | undefined {
    const conversations = new Conversations();
    const { step, agent, parent } = { step: "draft", agent: "draft@1", parent: null };
    const started = {
      type: "agent.started",
      step,
      agent,
      parent,
      name: "writer",
      model: "m",
      provider: "p",
      tools: [],
    };
    for (const event of [started, ...events]) conversations.add(JSON.parse(JSON.stringify(event)) as LogLine);
    return conversations.take("draft");
  }

  /** The turns with what was sent in each. */
  function sent({ events }: { readonly events: readonly AgentEvent[] }): Map<number, string> {
    return new Map(events.flatMap((event) => (event.type === "turn.started" ? [[event.turn, event.request]] : [])));
  }

  it("goes on with the same conversation, to the same end", async () => {
    const whole = await running(script(text).client, more());
    expect(whole.result).toMatchObject({ outcome: "done", output: { n: 3 } });
    const kinds = new Set(whole.events.map((event) => (event.type === "context.compressed" ? event.how : event.type)));
    expect([...kinds]).toEqual(expect.arrayContaining(["trimmed", "summarised", "guard", "check.finished"]));
    const expected = sent(whole);
    let resumed = 0;
    const open = new Set<string>();
    for (const [index, last] of whole.events.entries()) {
      // A call that was running is not made again, so that what follows is another story.
      if (last.type === "tool.started") open.add(last.id);
      if (last.type === "tool.finished") open.delete(last.id);
      if (last.type === "message.delta" || open.size > 0) continue;
      const recorded = fold(whole.events.slice(0, index + 1).filter(({ type }) => type !== "message.delta"));
      if (recorded === undefined) continue;
      const rest = await running(script(text).client, more(recorded));
      expect([index, last.type, rest.result.outcome, rest.result.output]).toEqual([index, last.type, "done", { n: 3 }]);
      expect([index, last.type, rest.result.turns]).toEqual([index, last.type, whole.result.turns]);
      expect([index, last.type, rest.result.usage]).toEqual([index, last.type, whole.result.usage]);
      for (const [turn, request] of sent(rest))
        expect([index, last.type, turn, request]).toEqual([index, last.type, turn, expected.get(turn)]);
      resumed++;
    }
    expect(resumed).toBeGreaterThan(80);
  });
});
