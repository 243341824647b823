import type { Agent, Plan, Step, Template } from "../model/plan.ts";

/** An agent that comes to run in a step, or may be spawned there, with the models it would ask. */
export interface Asking {
  readonly step: Step;
  /** Key of the workflow the step is written in. */
  readonly workflow: string;
  readonly agent: Agent;
  readonly models: readonly Template[];
  /** False on the agent of the step itself. */
  readonly isSpawned: boolean;
}

/** Of every agent step of a plan: its agent, and whoever may be spawned below it. */
export function* askingOf(plan: Plan): Generator<Asking> {
  for (const { step, workflow } of agentSteps(plan))
    for (const asking of askingIn(step, plan)) yield { step, workflow, ...asking };
}

/** A spawned agent asks what its own file names, or else what its parent asks. */
export function* askingIn(step: Step, { agents }: Plan): Generator<Omit<Asking, "step" | "workflow">> {
  const { body } = step;
  if (body.kind !== "agent") return;
  const seen = new Set<string>();
  const left = [{ key: body.agent, models: body.models, team: body.team }];
  for (let next = left.shift(); next !== undefined; next = left.shift()) {
    const { key, models } = next;
    const agent = Object.hasOwn(agents, key) ? agents[key] : undefined;
    const visit = JSON.stringify([key, models]);
    if (agent === undefined || seen.has(visit)) continue;
    const isSpawned = seen.size > 0;
    seen.add(visit);
    yield { agent, models, isSpawned };
    for (const child of spawnedBy(agent, next.team ?? agent.team)) {
      const own = Object.hasOwn(agents, child) ? (agents[child]?.models ?? []) : [];
      left.push({ key: child, models: own.length > 0 ? own : models, team: undefined });
    }
  }
}

/** Keys of those an agent may spawn or leads. */
export function spawnedBy({ subagents = [] }: Agent, team: Agent["team"]): string[] {
  return [...subagents.map(({ value }) => value), ...(team?.members ?? []).map(({ key }) => key)];
}

/** Whom a message is about: a step, or an agent that may be spawned in it. */
export function who({ step, agent, isSpawned }: Pick<Asking, "step" | "agent" | "isSpawned">): string {
  return isSpawned ? `agent \`${agent.name}\` below step \`${step.id}\`` : `step \`${step.id}\``;
}

/** Every agent step of a plan, with the key of its workflow. */
export function* agentSteps(plan: Plan): Generator<{ readonly step: Step; readonly workflow: string }> {
  for (const [key, workflow] of Object.entries(plan.workflows)) {
    for (const step of within(workflow.scope.steps)) if (step.kind === "agent") yield { step, workflow: key };
  }
}

function* within(steps: readonly Step[]): Generator<Step> {
  for (const step of steps) {
    yield step;
    if (step.scope && "inline" in step.scope) yield* within(step.scope.inline.steps);
  }
}
