import { itemLimit, expandMatrix, matrixProblem } from "../model/matrix.ts";
import { isJsonObject } from "../model/json.ts";
import type { Agent, Limits, Plan, Scope, Step, Template } from "../model/plan.ts";
import type { ModelFacts } from "../model/ports.ts";
import type { Most, Spendings, StepWorst, WorstCase } from "../model/worst-case.ts";
import type { FactsOf } from "./prices.ts";

const defaultTurns = 50;
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
      const one = await ofAgent(step, agent, { factsOf, ...place });
      const whole = capped(spendTimes(one, often), step.limits);
      steps.push({ path, calls: one.calls, runs, ...spendTimes(whole, place.runs) });
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

type AgentPlace = Pick<Place, "workflow" | "turns"> & { readonly factsOf: FactsOf };

async function ofAgent(step: Step, agent: Agent, place: AgentPlace): Promise<Spendings & { readonly calls: Most }> {
  const own = step.limits.turns ?? agent.limits.turns ?? defaultTurns;
  const turns = fewer(own === 0 ? undefined : own, place.turns);
  // At the cap the agent may say one thing more.
  const calls: Most = turns === undefined ? { unbounded: "`limits.turns` is 0" } : { most: turns + 1 };
  const models = step.body.kind === "agent" ? step.body.models : [];
  let call = nothing;
  for (const model of models.length === 0 ? [undefined] : models)
    call = dearer(call, await ofCall(model, { ...place, agent }));
  return { calls, ...capped(spendTimes(call, calls), agent.limits) };
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
