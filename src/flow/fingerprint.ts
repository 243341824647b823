import { hash } from "node:crypto";
import type { FingerprintOf } from "../engine/resume.ts";
import { canonicalJson, type Json } from "../model/json.ts";
import { agentsAt } from "../model/agents-at.ts";
import type { Agent, Plan, Step } from "../model/plan.ts";
import { withoutPositions } from "../model/positions.ts";
import { maskData } from "../runlog/mask-event.ts";

/**
 * What stands for an execution in the log. The definition is what the kind executes: body and agent, without positions
 * and texts for people, and without limits: what was done within others stays done. The inputs count as they were resolved, so how they are written does not; a secret in them is
 * masked, so that a new key of the same name changes nothing.
 */
export function createFingerprint(plan: Plan, mask: ((text: string) => string) | undefined): FingerprintOf {
  const definitions = new WeakMap<Step, string>();
  return (step, inputs, item) => {
    const definition = definitions.get(step) ?? digest(definitionOf(step, plan));
    definitions.set(step, definition);
    const values = [inputs, item];
    return { definition, given: digest(mask === undefined ? values : maskData(values, mask)) };
  };
}

function definitionOf({ kind, body, isolation }: Step, { agents }: Plan): Json {
  const [own, ...below] = [...agentsAt(body, agents)].map(([key, agent]) => ({ key, agent: unlimited(agent) }));
  const { description: _, ...agent } = own?.agent ?? {};
  // Whoever may be spawned is a part of what is done, and their descriptions are told to who spawns them.
  const others = below.length === 0 ? {} : { below };
  return withoutPositions({ kind, body, isolation, agent, ...others } as unknown as Json);
}

function unlimited(agent: Agent): Omit<Agent, "limits"> {
  const { limits: _, ...acting } = agent;
  return acting;
}

function digest(value: Json): string {
  return hash("sha256", canonicalJson(value)).slice(0, 16);
}
