import { depthOf } from "../agent/delegation.ts";
import type { Agent, Plan, Team } from "../model/plan.ts";
import type { Attempt, Rights } from "../model/ports.ts";

/** An agent that may come to work below another, as far as rights go. */
export interface Below {
  readonly agent: Agent;
  readonly rights: Rights;
  /** Names of those it works for, the one of the step first. */
  readonly above: readonly string[];
}

interface Seat extends Below {
  readonly team: Team | undefined;
  /** Levels that are left below it. */
  readonly depth: number;
}

type Top = Pick<Attempt, "step" | "path" | "signal"> & Pick<Below, "agent" | "rights">;

/** Everybody that may come to work below a step's agent, each once: as near to it as can be, where its rights are widest. */
export function* agentsBelow({ step, path, signal, agent, rights }: Top, { agents }: Plan): Generator<Below> {
  const ofStep = step.body.kind === "agent" ? step.body.team : undefined;
  const depth = depthOf(agent, step.limits.depth, undefined);
  const left: Seat[] = [{ agent, rights, above: [], depth, team: ofStep ?? agent.team }];
  const seen = new Set<string>();
  for (let lead = left.shift(); lead !== undefined; lead = left.shift()) {
    if (lead.depth < 1) continue;
    const above = [...lead.above, lead.agent.name];
    for (const { name, key } of crewOf(lead)) {
      const child = Object.hasOwn(agents, key) ? agents[key] : undefined;
      if (child === undefined || seen.has(key) || above.includes(child.name)) continue;
      if (lead.rights.reach("Task", name) === "deny" || lead.rights.child === undefined) continue;
      seen.add(key);
      const body = { kind: "agent" as const, agent: key, models: [], overrides: { json: {} } };
      const attempt = { step: { ...step, limits: {}, body }, path, signal, attempt: 1, inputs: {} };
      const seat: Seat = {
        agent: child,
        rights: lead.rights.child(attempt),
        above,
        team: child.team,
        depth: depthOf(child, undefined, lead),
      };
      left.push(seat);
      yield seat;
    }
  }
}

function crewOf({ agent, team }: Seat): readonly { readonly name: string; readonly key: string }[] {
  return [...(agent.subagents ?? []).map(({ name, value }) => ({ name, key: value })), ...(team?.members ?? [])];
}
