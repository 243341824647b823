import { hash } from "node:crypto";
import type { FingerprintOf } from "../engine/resume.ts";
import { canonicalJson, isJsonObject, type Json } from "../model/json.ts";
import type { Plan, Step } from "../model/plan.ts";
import { maskData } from "../runlog/mask-event.ts";

/**
 * What stands for an execution in the log. The definition is what the kind executes: body and agent, without positions
 * and texts for people. The inputs count as they were resolved, so how they are written does not; a secret in them is
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
  const agent = body.kind === "agent" && Object.hasOwn(agents, body.agent) ? agents[body.agent] : undefined;
  const { description: _, ...acting } = agent ?? {};
  return withoutPositions({ kind, body, isolation, agent: acting } as unknown as Json);
}

/** What a user wrote as data lies below `json` and keeps its keys. */
export function withoutPositions(value: Json): Json {
  if (Array.isArray(value)) return value.map(withoutPositions);
  if (!isJsonObject(value)) return value ?? null;
  const entries = Object.entries(value).filter(([key, inner]) => key !== "at" && inner !== undefined);
  return Object.fromEntries(entries.map(([key, inner]) => [key, key === "json" ? inner : withoutPositions(inner)]));
}

function digest(value: Json): string {
  return hash("sha256", canonicalJson(value)).slice(0, 16);
}
