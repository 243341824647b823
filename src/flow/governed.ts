import { defaultDepth } from "../model/defaults.ts";
import { bySpan, type Diagnostic, type Span } from "../model/diagnostic.ts";
import type { Json } from "../model/json.ts";
import type { Agent, Limits, Plan, Scope, Step } from "../model/plan.ts";
import { err, ok, type Result } from "../model/result.ts";
import { covers, symbolsOf, wildcardsOf } from "../permissions/pattern.ts";
import { builtInCatalog, type Catalog, parseModel } from "../providers/catalog.ts";
import { type AllowList, lowest, type Managed } from "./managed-read.ts";
import { agentSteps } from "./asking.ts";
import { serversOfPlan } from "./plan-servers.ts";

/** What a managed file is held against. */
export interface Governing {
  readonly managed: Managed;
  readonly catalog: Catalog;
  /** False: a script or a log stands for every model, and none is asked. */
  readonly asksModels: boolean;
}

/**
 * The plan within the limits of this machine, or everything in it that is not allowed here. Its digest stays that of what
 * was written: another machine's bounds make no other plan.
 */
export function governed(plan: Plan, governing: Governing): Result<Plan, readonly Diagnostic[]> {
  const { managed, asksModels } = governing;
  const problems = [...(asksModels ? wrongModels(plan, governing) : []), ...wrongServers(plan, managed)];
  if (problems.length > 0) return err(problems.sort((a, b) => bySpan(a.at, b.at)));
  return Object.keys(managed.limits).length === 0 ? ok(plan) : ok(bounded(plan, managed.limits));
}

/** Why a model may not be asked here; undefined where it may. A script is no model. */
export function forbiddenModel(model: Json, { managed, catalog }: Omit<Governing, "asksModels">): string | undefined {
  if (managed.models.length === 0) return undefined;
  const subject = subjectOf(model, catalog);
  const list = subject === undefined ? undefined : managed.models.find((it) => !isOn(it, subject));
  return list && notAllowed(`the model \`${subject ?? ""}\``, list);
}

/** Why an MCP server may not be started here; undefined where it may. */
export function forbiddenServer(name: string, managed: Managed): string | undefined {
  const list = managed.servers.find(({ allowed }) => !allowed.includes(name));
  return list && notAllowed(`the MCP server \`${name}\``, list);
}

function notAllowed(what: string, { allowed, at }: AllowList): string {
  const names = allowed.map((name) => `\`${name}\``).join(", ");
  return `${what} is not allowed on this machine: ${at.file}:${at.line} allows ${names === "" ? "none" : `only ${names}`}`;
}

function isOn({ allowed }: AllowList, subject: string): boolean {
  return allowed.some((pattern) => covers(wildcardsOf(pattern), symbolsOf(subject)));
}

/**
 * `provider/name` of a provider that is where everybody knows it to be; of any other the address it is asked at, because
 * a repository can give a server any name.
 */
function subjectOf(model: Json, catalog: Catalog): string | undefined {
  const choice = parseModel(model, catalog);
  if (!choice.ok || choice.value.kind === "scripted") return undefined;
  const { id, provider, baseUrl, name } = choice.value;
  const known = Object.hasOwn(builtInCatalog.providers, provider) ? builtInCatalog.providers[provider] : undefined;
  return known?.baseUrl === baseUrl ? id : `${new URL(baseUrl).href.replace(/\/$/, "")}/${name}`;
}

function wrongModels(plan: Plan, governing: Governing): Diagnostic[] {
  const ofSteps = [...agentSteps(plan)].flatMap(({ step }) =>
    step.body.kind === "agent" ? [{ who: `step \`${step.id}\``, models: step.body.models, at: step.at }] : [],
  );
  // An agent that another one may spawn has no step.
  const ofAgents = Object.values(plan.agents).map(({ name, models, at }) => ({ who: `agent \`${name}\``, models, at }));
  const asked = new Set(ofSteps.flatMap(({ models }) => models));
  const owners = [...ofSteps, ...ofAgents.map((it) => ({ ...it, models: it.models.filter((one) => !asked.has(one)) }))];
  return owners.flatMap(({ who, models, at }) =>
    models.flatMap((model) => {
      // What is an expression is judged when it is asked.
      const problem = model.type === "data" ? forbiddenModel(model.json, governing) : undefined;
      return problem === undefined ? [] : [diagnostic(`${who}: ${problem}`, at)];
    }),
  );
}

function wrongServers(plan: Plan, managed: Managed): Diagnostic[] {
  return serversOfPlan(plan).flatMap(({ name, at }) => {
    const problem = forbiddenServer(name, managed);
    return problem === undefined ? [] : [diagnostic(problem, at)];
  });
}

function diagnostic(message: string, at: Span): Diagnostic {
  return { code: "FLOW8010", severity: "error", message, at };
}

function bounded(plan: Plan, { turns, depth, children, ...ofRun }: Limits): Plan {
  const spawning = { ...(depth !== undefined && { depth }), ...(children !== undefined && { children }) };
  const workflows = Object.entries(plan.workflows).map(([key, workflow]) => {
    const scope = boundedScope(workflow.scope, spawning);
    if (key !== plan.root) return [key, { ...workflow, scope }] as const;
    const own = workflow.limits.turns === 0 ? { ...workflow.limits, turns: Infinity } : workflow.limits;
    return [
      key,
      { ...workflow, scope, limits: lowest(own, { ...ofRun, ...(turns !== undefined && { turns }) }) },
    ] as const;
  });
  const agents = Object.entries(plan.agents).map(([key, agent]) => [key, boundedAgent(agent, spawning)] as const);
  return { ...plan, workflows: Object.fromEntries(workflows), agents: Object.fromEntries(agents) };
}

/** A step's own word on its agent's depth and children goes before the agent's. */
function boundedScope(scope: Scope, most: Limits): Scope {
  const { depth = Infinity, children = Infinity } = most;
  const steps = scope.steps.map((step): Step => {
    const limits = lowest(step.limits, {
      ...(step.limits.depth !== undefined && { depth }),
      ...(step.limits.children !== undefined && { children }),
    });
    if (step.scope === undefined || !("inline" in step.scope)) return { ...step, limits };
    return { ...step, limits, scope: { inline: boundedScope(step.scope.inline, most) } };
  });
  return { ...scope, steps };
}

/** Levels below an agent that says nothing; with more allowed it stays at that. */

function boundedAgent(agent: Agent, { depth, ...limits }: Limits): Agent {
  const isBounded = depth !== undefined && (agent.limits.depth !== undefined || depth < defaultDepth);
  return { ...agent, limits: lowest(agent.limits, isBounded ? { ...limits, depth } : limits) };
}
