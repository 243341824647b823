import type { LogLine } from "../../src/model/event.ts";
import type { Json } from "../../src/model/json.ts";

/** One call of the tool that spawns, as a script writes it. */
export function task(agent: string, more: { readonly [key: string]: Json } = {}): string {
  const args = { description: "some work", prompt: "Do it.", subagent_type: agent, ...more };
  return `{ name: Task, args: ${JSON.stringify(args)} }`;
}

/** A script of replies: for each agent its turns, as YAML in braces. */
export function replies(agents: { readonly [name: string]: readonly string[] }, head = ""): string {
  const lists = Object.entries(agents).map(
    ([name, turns]) => `  ${name}:\n${turns.map((turn) => `    - ${turn}\n`).join("")}`,
  );
  return `${head}agents:\n${lists.join("")}`;
}

export function of<T extends LogLine["type"]>(events: readonly LogLine[], type: T): Extract<LogLine, { type: T }>[] {
  return events.filter((event): event is Extract<LogLine, { type: T }> => event.type === type);
}

/** `a@1.1 explore done`: how each agent run ended, in the order they did. */
export function ends(events: readonly LogLine[]): string[] {
  const names = new Map(of(events, "agent.started").map(({ agent, name }) => [agent, name]));
  return of(events, "agent.finished").map(({ agent, outcome }) => `${agent} ${names.get(agent)} ${outcome}`);
}

/** What the calls of the tool gave the agent, in the order they ended. */
export function answers(
  events: readonly LogLine[],
  agent = "a@1",
  tool = "Task",
): { readonly status: string; readonly text: string }[] {
  return of(events, "tool.finished")
    .filter((event) => event.agent === agent && event.name === tool)
    .map(({ status, text }) => ({ status, text }));
}

/** How often a model was asked by each agent run. */
export function turnsOf(events: readonly LogLine[]): { readonly [agent: string]: number } {
  const turns: { [agent: string]: number } = {};
  for (const { agent, usage } of of(events, "message")) if (usage) turns[agent] = (turns[agent] ?? 0) + 1;
  return turns;
}
