import type { Agent, Body, Plan } from "./plan.ts";

/** The agent of a step and every agent that may come to run below it: by their keys in the plan, each once, its own first. */
export function agentsAt(body: Body, agents: Plan["agents"]): ReadonlyMap<string, Agent> {
  const found = new Map<string, Agent>();
  if (body.kind !== "agent") return found;
  const left = [body.agent, ...(body.team?.members ?? []).map(({ key }) => key)];
  for (let key = left.shift(); key !== undefined; key = left.shift()) {
    const agent = Object.hasOwn(agents, key) ? agents[key] : undefined;
    if (agent === undefined || found.has(key)) continue;
    found.set(key, agent);
    const { subagents = [], team } = agent;
    left.push(...subagents.map(({ value }) => value), ...(team?.members ?? []).map((member) => member.key));
  }
  return found;
}
