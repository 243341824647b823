import { isJsonObject, type Json, type JsonObject, own } from "../model/json.ts";
import type { Agent, Plan, Scope, Step, Template } from "../model/plan.ts";
import { visible } from "./display.ts";
import { textGraph } from "./graph/text.ts";

/** What a run would start with: the graph, its inputs, and for each agent step the agent, its models and tools. */
export function renderDryRun(plan: Plan, inputs: JsonObject, script: string | undefined): string {
  const given = Object.entries(inputs).map(([name, value]) => `  ${name}: ${visible(JSON.stringify(value))}`);
  const agents = agentSteps(plan).map(({ path, agent, models, tools }) => {
    const model = script === undefined ? (models.length === 0 ? "no model" : models.join(", ")) : `script ${script}`;
    return `  ${path}: agent ${visible(agent.name)}, ${visible(model)}, tools ${visible(tools)}`;
  });
  const parts = [textGraph(plan).trimEnd(), section("inputs", given), section("agents", agents), "nothing was run"];
  return `${parts.filter((part) => part !== "").join("\n\n")}\n`;
}

export function dryRunJson(plan: Plan, inputs: JsonObject, script: string | undefined): Json {
  return {
    schemaVersion: 1,
    workflow: plan.root,
    digest: plan.digest,
    inputs,
    agents: agentSteps(plan).map(({ path, agent, models, tools }) => ({
      step: path,
      agent: agent.name,
      models: script === undefined ? models : [`script ${script}`],
      tools,
    })),
  };
}

function section(title: string, lines: readonly string[]): string {
  return lines.length === 0 ? "" : `${title}\n${lines.join("\n")}`;
}

interface AgentStep {
  readonly path: string;
  readonly agent: Agent;
  readonly models: string[];
  readonly tools: string;
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
      yield { path, agent, models: step.body.models.map(modelText), tools: toolsOf(step, agent) };
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
