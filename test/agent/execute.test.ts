import { describe, expect, it } from "vitest";
import type { AgentPorts } from "../../src/agent/agent-ports.ts";
import { createAgentExecute } from "../../src/agent/execute.ts";
import type { Event } from "../../src/model/event.ts";
import type { Json, JsonObject } from "../../src/model/json.ts";
import type { StepResult } from "../../src/model/outcome.ts";
import type { Agent, Body, Step } from "../../src/model/plan.ts";
import { ok } from "../../src/model/result.ts";
import { clock, playing, tool } from "./running.ts";

const at = { file: "flow.yaml", line: 1, column: 1, endLine: 1, endColumn: 2 };

const writer: Agent = {
  name: "writer",
  mode: "all",
  inputs: [
    { name: "topic", schema: { json: { type: "string" } }, at },
    { name: "words", schema: { json: { type: "integer" } }, default: { json: 100 }, at },
  ],
  instructions: "You write.",
  prompt: {
    type: "text",
    parts: ["On ", { source: "inputs.topic", at }, " in ", { source: "inputs.words", at }, " words."],
  },
  models: [],
  limits: {},
  settings: { json: {} },
  at,
};

function stepWith(body: Partial<Extract<Body, { kind: "agent" }>> = {}, limits: Step["limits"] = {}): Step {
  const agentBody: Body = { kind: "agent", agent: "writer", models: [], overrides: { json: {} }, ...body };
  const inputs: Step["inputs"] = { type: "map", entries: [] };
  return { id: "draft", kind: "agent", at, join: "all", inputs, body: agentBody, continueOnError: false, limits };
}

interface Attempted {
  readonly result: StepResult;
  readonly events: readonly Event[];
  readonly models: readonly (Json | undefined)[];
  readonly asked: readonly (readonly string[] | undefined)[];
}

async function attempting(
  turns: string,
  inputs: JsonObject,
  {
    agent = {},
    step = stepWith(),
    times = 1,
    signal = new AbortController().signal,
    ...more
  }: Partial<AgentPorts> & {
    agent?: Partial<Agent>;
    step?: Step;
    times?: number;
    signal?: AbortSignal;
  } = {},
): Promise<Attempted> {
  const events: Event[] = [];
  const models: (Json | undefined)[] = [];
  const asked: (readonly string[] | undefined)[] = [];
  const execute = createAgentExecute({
    agents: { writer: { ...writer, ...agent } },
    client(model) {
      models.push(model);
      return Promise.resolve(ok(playing(turns)));
    },
    tools(names) {
      asked.push(names);
      return ok([tool("Echo")]);
    },
    workspace: "/workspace",
    emit: (event) => events.push(event),
    clock,
    compact: () => Promise.resolve({ instructions: "Summarise.", models: [] }),
    spill: () => "files/1.txt",
    ...more,
  });
  let result: StepResult = { outcome: "cancelled" };
  for (let attempt = 1; attempt <= times; attempt++)
    result = await execute({ step, path: "draft", attempt, inputs, signal });
  return { result, events, models, asked };
}

describe("an agent step", () => {
  it("gives the agent's prompt its inputs and defaults, and the text as output", async () => {
    const { result, events } = await attempting("- { text: '${{ prompt }}', usage: { input: 3, output: 4 } }", {
      with: { topic: "bees" },
    });
    expect(result).toEqual({
      outcome: "success",
      result: {
        text: "On bees in 100 words.",
        output: null,
        turns: 1,
        usage: { input: 3, output: 4, cacheRead: 0, cacheWrite: 0, reasoning: 0, estimated: false },
        cost: 0,
      },
      outputs: { text: "On bees in 100 words." },
    });
    expect(events[0]).toMatchObject({
      type: "agent.started",
      step: "draft",
      agent: "draft@1",
      parent: null,
      name: "writer",
      provider: "scripted",
      tools: ["Echo"],
    });
    expect(events[1]).toMatchObject({ type: "message", turn: 0, message: { role: "system" } });
    expect(events.at(-1)).toMatchObject({
      type: "agent.finished",
      outcome: "done",
      turns: 1,
      text: "On bees in 100 words.",
    });
  });

  it("takes the step's own prompt instead", async () => {
    const { result } = await attempting("- text: ${{ prompt }}", { prompt: "Just this." }, { agent: { inputs: [] } });
    expect(result).toMatchObject({ outcome: "success", outputs: { text: "Just this." } });
  });

  it("gives the fields of its output", async () => {
    const schema = { type: "object", required: ["ok"], properties: { ok: { type: "boolean" } } };
    const turns = "- calls: [{ name: finish, args: { ok: true } }]";
    const { result, events } = await attempting(
      turns,
      { with: { topic: "x" } },
      { step: stepWith({ output: { json: schema } }) },
    );
    expect(result).toMatchObject({ outcome: "success", outputs: { ok: true }, result: { output: { ok: true } } });
    expect(events.at(-1)).toMatchObject({ output: { ok: true } });
  });

  it.each([
    ["an input that is missing", {}, "needs the input `topic`"],
    ["an input it does not have", { topic: "x", tone: "y" }, "no input `tone`"],
    ["an input of the wrong type", { topic: "x", words: "many" }, "`words`"],
  ])("fails as input for %s, before the model is asked", async (_, values, words) => {
    const { result, events, models } = await attempting("- text: x", { with: values });
    expect(result).toMatchObject({ outcome: "failure", error: { kind: "input" } });
    expect(result.outcome === "failure" && result.error.message).toContain(words);
    expect({ events, models }).toEqual({ events: [], models: [] });
  });

  it("fails with the position of an expression in the prompt that has no value", async () => {
    const prompt = { type: "expression", source: "fromJSON('{')", at } as const;
    const { result } = await attempting("- text: x", { with: { topic: "x" } }, { agent: { prompt } });
    expect(result).toMatchObject({
      outcome: "failure",
      error: { kind: "expression", position: { file: "flow.yaml", line: 1 } },
    });
  });

  it.each([
    ["error: 401", "provider_error"],
    ["error: unreachable", "provider_error"],
    ["text: ''", "invalid_output"],
    ["{ text: no, stop: refusal }", "refused"],
  ])("that ends with `%s` fails as %s", async (turn, kind) => {
    const { result, events } = await attempting(`- ${turn}`, { with: { topic: "x" } });
    expect(result).toMatchObject({ outcome: "failure", error: { kind } });
    expect(events.at(-1)).toMatchObject({ type: "agent.finished", outcome: kind });
  });

  it("is cancelled when its signal is", async () => {
    const { result, events } = await attempting("- text: x", { with: { topic: "x" } }, { signal: AbortSignal.abort() });
    expect(result).toEqual({ outcome: "cancelled" });
    expect(events.at(-1)).toMatchObject({ type: "agent.finished", outcome: "cancelled" });
  });

  it("has an agent id of its own for every attempt", async () => {
    const { events } = await attempting("- error: 401", { with: { topic: "x" } }, { times: 2 });
    const ids = events.flatMap((event) => (event.type === "agent.started" ? [event.agent] : []));
    expect(ids).toEqual(["draft@1", "draft@2"]);
  });

  it("takes the turns of the step before those of the agent", async () => {
    const turns = "- calls: [{ name: Echo, args: { text: x } }]\n".repeat(4);
    const { result } = await attempting(
      turns,
      { with: { topic: "x" } },
      { agent: { limits: { turns: 9 } }, step: stepWith({}, { turns: 1 }) },
    );
    expect(result).toMatchObject({ outcome: "failure", error: { kind: "max_turns" } });
  });

  it("asks for the model the engine resolved, else for the plan's own, and the step's tools before the agent's", async () => {
    const constant = (json: Json): { readonly type: "data"; readonly json: Json } => ({ type: "data", json });
    const agent = { models: [constant("openai/of-agent")], tools: ["Read"] };
    const given = { with: { topic: "x" } };
    const resolved = await attempting(
      "- text: x",
      { ...given, models: ["openai/resolved", "openai/second"] },
      { agent },
    );
    expect(resolved.models).toEqual(["openai/resolved", "openai/second"]);
    expect(resolved.asked).toEqual([["Read"]]);
    expect(resolved.events[0]).toMatchObject({ model: "openai/resolved" });
    const step = stepWith({
      models: [constant({ id: "m", "base-url": "http://x" })],
      overrides: { json: { tools: ["Write"] } },
    });
    const own = await attempting("- text: x", given, { agent, step });
    expect(own.models).toEqual([{ id: "m", "base-url": "http://x" }]);
    expect(own.asked).toEqual([["Write"]]);
    expect(own.events[0]).toMatchObject({ model: "m" });
    expect((await attempting("- text: x", given, { agent })).models).toEqual(["openai/of-agent"]);
  });

  it("fails as the model's client says when there is none", async () => {
    const error = { kind: "unavailable", message: "OPENAI_API_KEY is not set" } as const;
    const client = (): Promise<{ ok: false; error: typeof error }> => Promise.resolve({ ok: false, error });
    const { result, events } = await attempting("- text: x", { with: { topic: "x" } }, { client });
    expect(result).toEqual({ outcome: "failure", error });
    expect(events).toEqual([]);
  });
});
