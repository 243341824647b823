import type { AgentEvent } from "../../src/model/agent-event.ts";
import type { JsonObject } from "../../src/model/json.ts";
import type { Clock, ModelClient, Tool } from "../../src/model/ports.ts";
import { err, ok } from "../../src/model/result.ts";
import { runAgent } from "../../src/agent/loop.ts";
import type { AgentResult } from "../../src/agent/agent-result.ts";
import type { AgentRun } from "../../src/agent/agent-run.ts";
import { loadScript } from "../../src/providers/script.ts";
import { scriptedClient } from "../../src/providers/scripted.ts";

export const clock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms, callback) {
    const timer = setTimeout(callback, ms);
    return () => clearTimeout(timer);
  },
};

/** For tests that are not about time: every wait is a thousand times shorter. */
export const hastyClock: Clock = { ...clock, after: (ms, callback) => clock.after(ms / 1_000, callback) };

/** A client that plays `turns`, YAML of a list of turns, to any agent called `writer`. */
export function playing(turns: string): ModelClient {
  const script = loadScript(Buffer.from(`agents:\n  writer:\n${turns.replaceAll(/^/gm, "    ")}`), "replies.yaml");
  if (!script.ok) throw new Error(script.error.map(({ at, message }) => `${at.line}: ${message}`).join("\n"));
  return scriptedClient(script.value, clock);
}

/** A tool that answers with what it was given, or as `run` says. */
export function tool(name: string, more: Partial<Tool> = {}): Tool {
  const parameters: JsonObject = { type: "object", properties: { text: { type: "string" } } };
  const echo: Tool["run"] = ({ text }) =>
    Promise.resolve(typeof text === "string" ? ok({ blocks: [{ type: "text", text }] }) : err("no text was given"));
  return { name, description: `The tool ${name}.`, parameters, readOnly: true, run: echo, ...more };
}

export interface Ran {
  readonly result: AgentResult;
  readonly events: readonly AgentEvent[];
  /** What the model saw of each finished call, in the order of the results. */
  readonly results: readonly { readonly id: string; readonly text: string; readonly error: boolean }[];
  readonly spilled: readonly string[];
}

export async function running(
  client: ModelClient | string,
  more: Partial<AgentRun> = {},
  onEvent: (event: AgentEvent) => void = () => {},
): Promise<Ran> {
  const spilled: string[] = [];
  const run: AgentRun = {
    ids: { step: "draft", agent: "draft@1", parent: null },
    name: "writer",
    model: "scripted/replies.yaml",
    client: typeof client === "string" ? playing(client) : client,
    messages: [{ role: "user", blocks: [{ type: "text", text: "Write." }] }],
    tools: [],
    workspace: "/workspace",
    signal: new AbortController().signal,
    clock,
    compact: () => Promise.resolve(ok({ instructions: "Summarise.", models: [] })),
    spill(text) {
      spilled.push(text);
      return `files/${spilled.length}.txt`;
    },
    ...more,
  };
  const events: AgentEvent[] = [];
  const generator = runAgent(run);
  let next = await generator.next();
  for (; next.done !== true; next = await generator.next()) {
    events.push(next.value);
    onEvent(next.value);
  }
  return { result: next.value, events, results: events.flatMap(resultsIn), spilled };
}

function resultsIn(event: AgentEvent): Ran["results"] {
  if (event.type !== "message") return [];
  return event.message.blocks.flatMap((block) => {
    if (block.type !== "result") return [];
    const text = block.blocks.map((inner) => (inner.type === "text" ? inner.text : "")).join("");
    return [{ id: block.id, text, error: block.error === true }];
  });
}
