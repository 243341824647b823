import { agentsAt } from "../model/agents-at.ts";
import type { Json } from "../model/json.ts";
import type { Agent, Plan, Scope, Step, Workflow } from "../model/plan.ts";
import { withoutPositions } from "../model/positions.ts";
import type { NamedValue } from "./parts.ts";

/** What a step is: itself, and every agent and workflow that can run inside it. */
export interface Definition {
  readonly values: readonly NamedValue[];
  readonly agents: readonly Agent[];
  /** By key in the plan. */
  readonly workflows: readonly string[];
}

/**
 * What is executed inside the cache, without positions and texts for people. What bounds the step from outside (`if`,
 * `retry`, `timeout`, `limits`) does not change what a success is. Inputs count by their values where those are known.
 */
export function definitionOf(step: Step, plan: Plan): Definition {
  const found = new Found(plan);
  found.step(step);
  const { kind, body, outputs, repeat, isolation, scope, inputs } = step;
  const isInside = repeat !== undefined || (scope !== undefined && "inline" in scope);
  // The models are among the inputs.
  const own = {
    kind,
    body: { ...body, models: undefined },
    outputs,
    repeat,
    isolation,
    scope: acting(scope),
    ...(isInside && { inputs }),
  };
  const agents = [...found.agents].sort(byKey);
  const workflows = [...found.workflows].sort(byKey);
  return {
    values: [
      { name: "definition", value: plain(own) },
      ...agents.map(([key, agent]) => ({ name: `agent ${key}`, value: plain({ ...agent, description: undefined }) })),
      ...workflows.map(([key, workflow]) => ({ name: `workflow ${key}`, value: plain(actingWorkflow(workflow)) })),
    ],
    agents: agents.map(([, agent]) => agent),
    workflows: workflows.map(([key]) => key),
  };
}

/** Agents and workflows that a step reaches, each once. */
class Found {
  readonly agents = new Map<string, Agent>();
  readonly workflows = new Map<string, Workflow>();
  readonly #plan: Plan;

  constructor(plan: Plan) {
    this.#plan = plan;
  }

  step({ body, scope }: Step): void {
    const { agents, workflows } = this.#plan;
    for (const [key, agent] of agentsAt(body, agents)) this.agents.set(key, agent);
    if (scope === undefined) return;
    if ("inline" in scope) return this.scope(scope.inline);
    const workflow = Object.hasOwn(workflows, scope.workflow) ? workflows[scope.workflow] : undefined;
    if (workflow === undefined || this.workflows.has(scope.workflow)) return;
    this.workflows.set(scope.workflow, workflow);
    this.scope(workflow.scope);
  }

  scope({ steps }: Scope): void {
    for (const step of steps) this.step(step);
  }
}

/** Texts that nothing is done by. */
const forPeople = { name: undefined, description: undefined };

function acting(scope: Step["scope"]): unknown {
  return scope === undefined || "workflow" in scope ? scope : { inline: actingScope(scope.inline) };
}

function actingScope(scope: Scope): unknown {
  const steps = scope.steps.map((step) => ({ ...step, ...forPeople, scope: acting(step.scope) }));
  return { ...scope, steps };
}

function actingWorkflow(workflow: Workflow): unknown {
  return { ...workflow, ...forPeople, scope: actingScope(workflow.scope) };
}

function plain(value: unknown): Json {
  return withoutPositions(value as Json);
}

function byKey([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
