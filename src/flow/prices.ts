import type { Diagnostic } from "../model/diagnostic.ts";
import type { Json } from "../model/json.ts";
import type { Limits, Plan, Scope, Step, Template } from "../model/plan.ts";
import type { ModelFacts } from "../model/ports.ts";
import { type Asking, askingIn, who } from "./asking.ts";

/** What is known of a model that a step of a workflow names; undefined when it cannot be opened. */
export type FactsOf = (model: Json | undefined, workflow: string) => Promise<ModelFacts | undefined>;

/** Every model under a limit on cost that has no price; models that are expressions are judged when they are called. */
export async function unpricedModels(plan: Plan, factsOf: FactsOf): Promise<readonly Diagnostic[]> {
  const problems: Diagnostic[] = [];
  for (const metered of meteredSteps(plan)) {
    for (const { agent, models, isSpawned } of askingIn(metered.step, plan)) {
      // The limit of an agent that is spawned bounds itself and what it spawns.
      const of = metered.of ?? limited(agent.limits, `agent \`${agent.name}\``);
      if (of === undefined) continue;
      for (const model of models.length === 0 ? [undefined] : models) {
        if (model !== undefined && model.type !== "data") continue;
        const facts = await factsOf(model?.json, metered.workflow);
        if (facts?.cost(one) === null) problems.push(unpriced(nameOf(model), { ...metered, agent, isSpawned, of }));
      }
    }
  }
  return problems;
}

const one = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, reasoning: 0 };

/** An agent step, the key of its workflow, and whose limit on cost it is under, as a message says it. */
interface Metered {
  readonly step: Step;
  readonly workflow: string;
  /** Undefined where none of those around it has one. */
  readonly of: string | undefined;
}

/** The limit may be the step's own, its agent's, or one of a group, a workflow or the run around. */
function meteredSteps(plan: Plan): Iterable<Metered> {
  const found = new Map<Step, Metered>();
  const seen = new Set<string>();
  const enter = (key: string, outer: string | undefined): void => {
    const workflow = plan.workflows[key];
    const of = outer ?? limited(workflow?.limits, key === plan.root ? "the run" : `workflow \`${workflow?.name}\``);
    const visit = JSON.stringify([key, of ?? null]);
    if (workflow === undefined || seen.has(visit)) return;
    seen.add(visit);
    walk(workflow.scope, key, of);
  };
  const walk = (scope: Scope, workflow: string, outer: string | undefined): void => {
    for (const step of scope.steps) {
      const around = outer ?? limited(step.limits, `step \`${step.id}\``);
      const agent = step.body.kind === "agent" ? plan.agents[step.body.agent] : undefined;
      const of = around ?? limited(agent?.limits, `agent \`${agent?.name}\``);
      if (agent !== undefined && (of !== undefined || !found.has(step))) found.set(step, { step, workflow, of });
      if (step.scope === undefined) continue;
      if ("inline" in step.scope) walk(step.scope.inline, workflow, around);
      else enter(step.scope.workflow, around);
    }
  };
  enter(plan.root, undefined);
  return found.values();
}

function limited(limits: Limits | undefined, of: string): string | undefined {
  return limits?.cost === undefined ? undefined : of;
}

function unpriced(
  model: string,
  { step, agent, isSpawned, of }: Metered & Pick<Asking, "agent" | "isSpawned">,
): Diagnostic {
  return {
    code: "FLOW6006",
    severity: "error",
    message: `${who({ step, agent, isSpawned })}: \`limits.cost\` of ${of} cannot be kept, because the price of the model \`${model}\` is unknown`,
    at: step.at,
    suggestion: `give it in US dollars for a million tokens, as in \`model: { id: ${model}, price: { input: 1.25, output: 10 } }\`, or limit \`tokens\` instead`,
  };
}

function nameOf(model: Extract<Template, { type: "data" }> | undefined): string {
  const json = model?.json ?? "?";
  const id = typeof json === "object" && !Array.isArray(json) ? json["id"] : json;
  return typeof id === "string" ? id : JSON.stringify(id);
}
