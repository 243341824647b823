import { isJsonObject, type Json, type JsonObject, own } from "../model/json.ts";
import type { Agent, Plan, Scope, Step, Template } from "../model/plan.ts";
import { visible } from "./display.ts";
import type { Spendings, StepWorst, WorstCase } from "../model/worst-case.ts";
import { count, money } from "./words.ts";
import { textGraph } from "./graph/text.ts";

/** What a run would start with, and what it could take. */
export interface DryRun {
  readonly plan: Plan;
  readonly inputs: JsonObject;
  readonly script: string | undefined;
  readonly worst: WorstCase;
}

/** The graph, the inputs, for each agent step the agent, its models, its tools and the most it can take, and that of the run. */
export function renderDryRun({ plan, inputs, script, worst }: DryRun): string {
  const given = Object.entries(inputs).map(([name, value]) => `  ${name}: ${visible(JSON.stringify(value))}`);
  const agents = agentSteps(plan).map(({ path, agent, models, tools, subagents, team }) => {
    const model = script === undefined ? (models.length === 0 ? "no model" : models.join(", ")) : `script ${script}`;
    const most = worst.steps.find((step) => step.path === path);
    const spawns = subagents.length === 0 ? "" : `, may spawn ${visible(subagents.join(" "))}`;
    const leads = team.length === 0 ? "" : `, leads ${visible(team.join(" "))}`;
    const line = `  ${path}: agent ${visible(agent.name)}, ${visible(model)}, tools ${visible(tools)}${spawns}${leads}`;
    return most === undefined ? line : `${line}\n    ${stepWorst(most)}`;
  });
  const whole = agents.length === 0 ? "" : section("at most", [`  ${spendings(worst.run)}`]);
  const parts = [
    textGraph(plan).trimEnd(),
    section("inputs", given),
    section("agents", agents),
    whole,
    "nothing was run",
  ];
  return `${parts.filter((part) => part !== "").join("\n\n")}\n`;
}

function stepWorst({ calls, children, runs, ...most }: StepWorst): string {
  const often = "unbounded" in runs ? `, ${runs.unbounded}` : runs.most === 1 ? "" : ` × ${runs.most} agent runs`;
  const each = "unbounded" in calls ? `any number of calls (${calls.unbounded})` : `${calls.most} calls`;
  const below =
    children === undefined || "unbounded" in children ? "" : `, each with up to ${children.most} sub-agents`;
  return `at most ${each}${often}${below}: ${spendings(most)}`;
}

/** Nobody is told a number that is none. */
function spendings({ tokens, cost }: Spendings): string {
  const shown = "unbounded" in tokens ? "" : `${count(tokens.most)} tokens`;
  const price = "unbounded" in cost ? "" : money(cost.most);
  if (shown !== "" && price !== "") return `${shown}, ${price}`;
  const why = "unbounded" in tokens ? tokens.unbounded : "unbounded" in cost ? cost.unbounded : "";
  if (shown === "" && price === "") return `unbounded: ${why}`;
  return shown === "" ? `${price}; tokens are unbounded: ${why}` : `${shown}; the cost is unbounded: ${why}`;
}

export function dryRunJson({ plan, inputs, script, worst }: DryRun): Json {
  return {
    schemaVersion: 1,
    workflow: plan.root,
    digest: plan.digest,
    inputs,
    agents: agentSteps(plan).map(({ path, agent, models, tools, subagents, team }) => ({
      step: path,
      agent: agent.name,
      models: script === undefined ? models : [`script ${script}`],
      tools,
      ...(subagents.length > 0 && { subagents }),
      ...(team.length > 0 && { team }),
      worst: worstJson(worst.steps.find((step) => step.path === path)),
    })),
    worst: worstJson(worst.run),
  };
}

function worstJson(worst: StepWorst | Spendings | undefined): Json {
  return worst === undefined ? null : (JSON.parse(JSON.stringify(worst)) as Json);
}

function section(title: string, lines: readonly string[]): string {
  return lines.length === 0 ? "" : `${title}\n${lines.join("\n")}`;
}

interface AgentStep {
  readonly path: string;
  readonly agent: Agent;
  readonly models: string[];
  readonly tools: string;
  /** Whom it may spawn, by the names it has for them. */
  readonly subagents: string[];
  /** Members of the team it leads. */
  readonly team: string[];
}

function agentSteps(plan: Plan): AgentStep[] {
  const root = plan.workflows[plan.root];
  return root ? [...agentStepsIn(plan, root.scope, "")] : [];
}

function* agentStepsIn(plan: Plan, scope: Scope, prefix: string): Generator<AgentStep> {
  for (const step of scope.steps) {
    const path = prefix + step.id;
    const agent = step.body.kind === "agent" ? plan.agents[step.body.agent] : undefined;
    if (step.body.kind === "agent" && agent) {
      const subagents = step.limits.depth === 0 ? [] : (agent.subagents ?? []).map(({ name }) => name);
      const team = ((step.body.team ?? agent.team)?.members ?? []).map(({ name }) => name);
      yield { path, agent, models: step.body.models.map(modelText), tools: toolsOf(step, agent), subagents, team };
    }
    if (!step.scope) continue;
    const inner = "inline" in step.scope ? step.scope.inline : plan.workflows[step.scope.workflow]?.scope;
    if (inner) yield* agentStepsIn(plan, inner, `${path}/`);
  }
}

function toolsOf(step: Step, agent: Agent): string {
  const overrides =
    step.body.kind === "agent" && isJsonObject(step.body.overrides.json)
      ? step.body.overrides.json["tools"]
      : undefined;
  const tools = Array.isArray(overrides) ? overrides.map(String) : agent.tools;
  if (tools === undefined) return "the default ones";
  return tools.length === 0 ? "none" : tools.join(" ");
}

function modelText(template: Template): string {
  switch (template.type) {
    case "data":
      return constantModel(template.json);
    case "expression":
      return `\${{ ${template.source} }}`;
    case "text":
      return template.parts.map((part) => (typeof part === "string" ? part : `\${{ ${part.source} }}`)).join("");
    case "list":
    case "map":
      return "a model with expressions";
  }
}

function constantModel(model: Json): string {
  if (!isJsonObject(model)) return typeof model === "string" ? model : JSON.stringify(model);
  const [id, server] = [own(model, "id"), own(model, "base-url")].map((it) => (typeof it === "string" ? it : ""));
  return server === "" ? `${id}` : `${id} at ${server}`;
}
