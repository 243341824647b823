import { isJsonObject, type Json, own } from "../model/json.ts";
import type { Attempt } from "../model/ports.ts";
import type { Target } from "./task.ts";

export interface ChildOf {
  /** The parent's. */
  readonly attempt: Attempt;
  /** What the parent's models were named as. */
  readonly models: readonly Json[];
}

export interface ChildWork {
  readonly target: Target;
  readonly prompt: string;
  /** Instead of the models it would ask. */
  readonly model?: Json;
}

/** The attempt of a child: its parent's step, run by another agent under limits of its own. */
export function childAttempt({ attempt, models: ofParent }: ChildOf, { target, prompt, model }: ChildWork): Attempt {
  const { step, inputs, resumes: _, budget: __, ...around } = attempt;
  const { key, agent } = target;
  const crew = step.body.kind === "agent" ? step.body.crew : undefined;
  const mcp = crew?.find(({ name }) => name === key)?.value;
  const ofCrew = own(inputs, "crew");
  // It asks what its own file names, or else what its parent asks.
  const inherited = agent.models.length > 0 || ofParent.length === 0 ? undefined : ofParent;
  const given: { readonly [name: string]: Json | undefined } = {
    models: model === undefined ? inherited && [...inherited] : [model],
    mcp: isJsonObject(ofCrew) ? own(ofCrew, key) : undefined,
    crew: ofCrew,
    vars: own(inputs, "vars"),
    env: own(inputs, "env"),
  };
  const present = Object.entries(given).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value] as const],
  );
  const body = { kind: "agent" as const, agent: key, models: [], overrides: { json: {} } };
  return {
    ...around,
    step: { ...step, limits: {}, body: { ...body, ...(mcp && { mcp }), ...(crew && { crew }) } },
    inputs: { prompt, ...Object.fromEntries(present) },
  };
}
