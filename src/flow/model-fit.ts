import type { Diagnostic } from "../model/diagnostic.ts";
import { isJsonObject, type Json } from "../model/json.ts";
import type { Agent, Plan, Step, Template } from "../model/plan.ts";
import type { ModelFacts } from "../model/ports.ts";
import { type FactsOf, unpricedModels } from "./prices.ts";

/** What a plan asks of its models that they cannot do; models that are expressions are judged when they are called. */
export async function misfits(plan: Plan, factsOf: FactsOf): Promise<readonly Diagnostic[]> {
  const found = [...(await unpricedModels(plan, factsOf))];
  for (const { step, workflow } of agentSteps(plan)) {
    if (step.body.kind !== "agent") continue;
    const agent = plan.agents[step.body.agent];
    if (agent === undefined) continue;
    for (const model of step.body.models) {
      if (model.type !== "data") continue;
      const facts = await factsOf(model.json, workflow);
      if (facts === undefined) continue;
      const asked: Asked = { step, agent, model: modelName(model.json), facts };
      found.push(...refusedSchema(asked), ...longPrompt(asked));
    }
  }
  return found;
}

interface Asked {
  readonly step: Step;
  readonly agent: Agent;
  readonly model: string;
  readonly facts: ModelFacts;
}

function refusedSchema({ step, agent, model, facts }: Asked): Diagnostic[] {
  const schema = (step.body.kind === "agent" ? step.body.output : undefined)?.json ?? agent.output?.json;
  if (!isJsonObject(schema)) return [];
  const keyword = facts.refusedAtRoot?.find((name) => Object.hasOwn(schema, name));
  if (keyword === undefined) return [];
  return [
    {
      code: "FLOW6013",
      severity: "error",
      message: `step \`${step.id}\`: the provider of \`${model}\` refuses \`${keyword}\` at the root of an output schema`,
      at: step.at,
      suggestion: `move it into a property: \`{ type: object, required: [answer], properties: { answer: { ${keyword}: … } } }\``,
    },
  ];
}

/** What no tokenizer gets below, for prose: a prompt that is said to be too long is. */
const bytesPerToken = 4;

function longPrompt({ step, agent, model, facts }: Asked): Diagnostic[] {
  if (facts.window === undefined) return [];
  const prompt = constantText(promptOf(step) ?? agent.prompt);
  const tokens = Math.ceil((Buffer.byteLength(agent.instructions ?? "") + Buffer.byteLength(prompt)) / bytesPerToken);
  if (tokens <= facts.window) return [];
  const [asked, most] = [tokens, facts.window].map((count) => count.toLocaleString("en-US"));
  return [
    {
      code: "FLOW6014",
      severity: "error",
      message: `step \`${step.id}\`: instructions and prompt take about ${asked} tokens, and \`${model}\` has a window of ${most}`,
      at: step.at,
      suggestion: "shorten them, or give the agent `Read` and the name of a file",
    },
  ];
}

function promptOf({ inputs }: Step): Template | undefined {
  return inputs.type === "map" ? inputs.entries.find(({ name }) => name === "prompt")?.value : undefined;
}

/** The parts that are no expression. */
function constantText(template: Template | undefined): string {
  if (template?.type === "data") return typeof template.json === "string" ? template.json : "";
  return template?.type === "text" ? template.parts.filter((part) => typeof part === "string").join("") : "";
}

function modelName(model: Json): string {
  const id = isJsonObject(model) ? model["id"] : model;
  return typeof id === "string" ? id : JSON.stringify(id);
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
