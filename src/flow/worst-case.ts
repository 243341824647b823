import { defaultTurns } from "../model/defaults.ts";
import { isJsonObject } from "../model/json.ts";
import { itemLimit, expandMatrix, matrixProblem } from "../model/matrix.ts";
import type { Agent, Limits, Plan, Scope, Step, Template } from "../model/plan.ts";
import type { ModelFacts } from "../model/ports.ts";
import { mostSpawned } from "../model/spawning.ts";
import type { Most, Spendings, StepWorst, WorstCase } from "../model/worst-case.ts";
import { askingIn, askingOf } from "./asking.ts";
import type { FactsOf } from "./prices.ts";

const nothing: Spendings = { tokens: { most: 0 }, cost: { most: 0 } };

/** The worst case of a plan: turns × the window of the model at list price, under the limits that are written. */
export async function worstCase(plan: Plan, factsOf: FactsOf): Promise<WorstCase> {
  const steps: StepWorst[] = [];
  const inScope = async (scope: Scope, place: Place): Promise<Spendings> => {
    let sum = nothing;
    for (const step of scope.steps) sum = added(sum, await ofStep(step, place));
    return sum;
  };
  const inWorkflow = async (key: string, place: Omit<Place, "workflow">): Promise<Spendings> => {
    const workflow = plan.workflows[key];
    if (workflow === undefined) return nothing;
    const turns = fewer(place.turns, workflow.limits.turns);
    return capped(await inScope(workflow.scope, { ...place, turns, workflow: key }), workflow.limits);
  };
  const ofStep = async (step: Step, place: Place): Promise<Spendings> => {
    const path = place.path === "" ? step.id : `${place.path}/${step.id}`;
    const often = timesOf(step);
    const runs = times(place.runs, often);
    const inside: Place = { ...place, path, runs, turns: fewer(place.turns, step.limits.turns) };
    const agent = step.body.kind === "agent" ? plan.agents[step.body.agent] : undefined;
    if (agent !== undefined) {
      const one = await ofAgent(step, agent, { plan, factsOf, ...place });
      const whole = capped(spendTimes(one, often), step.limits);
      const { calls, children } = one;
      steps.push({ path, calls, ...(children && { children }), runs, ...spendTimes(whole, place.runs) });
      return whole;
    }
    if (step.scope === undefined) return nothing;
    const once =
      "inline" in step.scope ? await inScope(step.scope.inline, inside) : await inWorkflow(step.scope.workflow, inside);
    return capped(spendTimes(once, often), step.limits);
  };
  const run = await inWorkflow(plan.root, { path: "", runs: { most: 1 }, turns: undefined });
  return { steps, run };
}

interface Place {
  readonly path: string;
  readonly workflow: string;
  readonly runs: Most;
  /** The fewest turns of the limits around. */
  readonly turns: number | undefined;
}

interface AgentPlace extends Pick<Place, "workflow" | "turns"> {
  readonly plan: Plan;
  readonly factsOf: FactsOf;
}

type AgentWorst = Spendings & Pick<StepWorst, "calls" | "children">;

async function ofAgent(step: Step, agent: Agent, place: AgentPlace): Promise<AgentWorst> {
  const { body, limits } = step;
  if (body.kind !== "agent") return { calls: { most: 0 }, ...nothing };
  const own = await ofOne({ agent, models: body.models, turns: limits.turns }, place);
  const children = spawnedAtMost(step, agent, place.plan);
  if (children === 0) return { ...own, ...capped(own, agent.limits) };
  // A call may ask for any model of the plan.
  const models = [...askingOf(place.plan)].flatMap((asking) => asking.models);
  let dearest = nothing;
  for (const asking of askingIn(step, place.plan))
    if (asking.isSpawned) {
      const one = await ofOne({ agent: asking.agent, models: [...asking.models, ...models], turns: undefined }, place);
      dearest = dearer(dearest, capped(one, asking.agent.limits));
    }
  const all = added(own, spendTimes(dearest, { most: children }));
  return { calls: own.calls, children: { most: children }, ...capped(all, agent.limits) };
}

/** Agent runs below one run of a step's agent. Whoever leads a team is not held to `limits.children` in it. */
function spawnedAtMost(step: Step, agent: Agent, { agents }: Plan): number {
  if (step.body.kind !== "agent") return 0;
  const { team = agent.team } = step.body;
  if (team !== undefined) return mostSpawned;
  const below = ({ subagents = [], limits }: Agent, depth: number, own: Limits): number => {
    if (depth < 1 || subagents.length === 0) return 0;
    const each = Math.min(own.children ?? limits.children ?? mostSpawned, mostSpawned);
    const deeper = subagents.flatMap(({ value }) => {
      const child = Object.hasOwn(agents, value) ? agents[value] : undefined;
      return child?.team
        ? [mostSpawned]
        : child
          ? [below(child, Math.min(depth - 1, child.limits.depth ?? depth), {})]
          : [];
    });
    return Math.min(mostSpawned, each * (1 + Math.max(0, ...deeper)));
  };
  return below(agent, step.limits.depth ?? agent.limits.depth ?? 1, step.limits);
}

interface One {
  readonly agent: Agent;
  readonly models: readonly Template[];
  /** What the step says in the place of the agent. */
  readonly turns: number | undefined;
}

/** One agent run, without what it spawns. */
async function ofOne({ agent, models, turns: said }: One, place: AgentPlace): Promise<Spendings & { calls: Most }> {
  const own = said ?? agent.limits.turns ?? defaultTurns;
  const turns = fewer(own === 0 ? undefined : own, place.turns);
  // At the cap the agent may say one thing more.
  const calls: Most = turns === undefined ? { unbounded: "`limits.turns` is 0" } : { most: turns + 1 };
  let call = nothing;
  for (const model of models.length === 0 ? [undefined] : models)
    call = dearer(call, await ofCall(model, { ...place, agent }));
  return { calls, ...spendTimes(call, calls) };
}

/** A model reads and writes at most its window, and writes at most its longest reply of it. */
async function ofCall(
  model: Template | undefined,
  { factsOf, workflow, agent }: AgentPlace & { readonly agent: Agent },
): Promise<Spendings> {
  if (model !== undefined && model.type !== "data") return unknown("the model is known only when its step runs");
  const facts = await factsOf(model?.json, workflow);
  if (facts?.window === undefined) return { ...unknown("the window of the model is unknown"), ...freeOf(facts) };
  const output = Math.min(agent.maxOutput ?? facts.maxOutput ?? facts.window, facts.window);
  const none = { cacheRead: 0, cacheWrite: 0, reasoning: 0, output };
  const cost = facts.cost({ ...none, input: facts.window - output });
  return {
    tokens: { most: facts.window },
    cost: cost === null ? { unbounded: "the price of the model is unknown" } : { most: cost },
  };
}

/** A model that costs nothing costs nothing, however much it reads. */
function freeOf(facts: ModelFacts | undefined): Partial<Spendings> {
  const some = { input: 1e6, output: 1e6, cacheRead: 0, cacheWrite: 1e6, reasoning: 0 };
  return facts?.cost(some) === 0 ? { cost: { most: 0 } } : {};
}

function unknown(unbounded: string): Spendings {
  return { tokens: { unbounded }, cost: { unbounded } };
}

/** How often the body of a step runs. */
function timesOf({ foreach, repeat, retry }: Step): Most {
  const tries = (repeat?.max ?? 1) * ((retry?.max ?? 0) + 1);
  return times(foreach === undefined ? { most: 1 } : itemsOf(foreach.items, foreach.matrix), { most: tries });
}

function itemsOf(items: Template, isMatrix: boolean): Most {
  const list = constantOf(items);
  if (Array.isArray(list)) return { most: list.length };
  if (isMatrix && isJsonObject(list) && matrixProblem(list) === undefined) return { most: expandMatrix(list).length };
  return { unbounded: `there may be up to ${itemLimit} items` };
}

function constantOf(template: Template): unknown {
  return template.type === "data" ? template.json : undefined;
}

function fewer(a: number | undefined, b: number | undefined): number | undefined {
  const bounds = [a, b].filter((turns) => turns !== undefined && turns > 0);
  return bounds.length === 0 ? undefined : Math.min(...bounds.map((turns) => turns ?? Infinity));
}

function times(a: Most, b: Most): Most {
  if ("unbounded" in a) return "most" in b && b.most === 0 ? b : a;
  if ("unbounded" in b) return a.most === 0 ? a : b;
  return { most: a.most * b.most };
}

function spendTimes({ tokens, cost }: Spendings, often: Most): Spendings {
  return { tokens: times(tokens, often), cost: times(cost, often) };
}

function plus(a: Most, b: Most): Most {
  if ("unbounded" in a) return a;
  return "unbounded" in b ? b : { most: a.most + b.most };
}

function added(a: Spendings, b: Spendings): Spendings {
  return { tokens: plus(a.tokens, b.tokens), cost: plus(a.cost, b.cost) };
}

function larger(a: Most, b: Most): Most {
  if ("unbounded" in a) return a;
  return "unbounded" in b || b.most > a.most ? b : a;
}

function dearer(a: Spendings, b: Spendings): Spendings {
  return { tokens: larger(a.tokens, b.tokens), cost: larger(a.cost, b.cost) };
}

function capped({ tokens, cost }: Spendings, limits: Limits): Spendings {
  return { tokens: least(tokens, limits.tokens), cost: least(cost, limits.cost) };
}

function least(most: Most, limit: number | undefined): Most {
  if (limit === undefined) return most;
  return "most" in most && most.most <= limit ? most : { most: limit };
}
