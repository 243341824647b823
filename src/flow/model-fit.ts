import type { Diagnostic } from "../model/diagnostic.ts";
import { isJsonObject, type Json } from "../model/json.ts";
import type { Agent, Plan, Step, Template } from "../model/plan.ts";
import type { ModelFacts } from "../model/ports.ts";
import { askingOf, who } from "./asking.ts";
import { type FactsOf, unpricedModels } from "./prices.ts";

/** What a plan asks of its models that they cannot do; models that are expressions are judged when they are called. */
export async function misfits(plan: Plan, factsOf: FactsOf): Promise<readonly Diagnostic[]> {
  const found = [...(await unpricedModels(plan, factsOf))];
  for (const { step, workflow, agent, models, isSpawned } of askingOf(plan)) {
    for (const model of models) {
      if (model.type !== "data") continue;
      const facts = await factsOf(model.json, workflow);
      if (facts === undefined) continue;
      const asked: Asked = { step, agent, isSpawned, model: modelName(model.json), facts };
      found.push(...refusedSchema(asked), ...longPrompt(asked));
    }
  }
  return found;
}

interface Asked {
  readonly step: Step;
  readonly agent: Agent;
  readonly isSpawned: boolean;
  readonly model: string;
  readonly facts: ModelFacts;
}

function refusedSchema({ step, agent, isSpawned, model, facts }: Asked): Diagnostic[] {
  const ofStep = step.body.kind === "agent" && !isSpawned ? step.body.output : undefined;
  const schema = (ofStep ?? agent.output)?.json;
  if (!isJsonObject(schema)) return [];
  const keyword = facts.refusedAtRoot?.find((name) => Object.hasOwn(schema, name));
  if (keyword === undefined) return [];
  return [
    {
      code: "FLOW6013",
      severity: "error",
      message: `${who({ step, agent, isSpawned })}: the provider of \`${model}\` refuses \`${keyword}\` at the root of an output schema`,
      at: step.at,
      suggestion: `move it into a property: \`{ type: object, required: [answer], properties: { answer: { ${keyword}: … } } }\``,
    },
  ];
}

/** What no tokenizer gets below, for prose: a prompt that is said to be too long is. */
const bytesPerToken = 4;

function longPrompt({ step, agent, isSpawned, model, facts }: Asked): Diagnostic[] {
  if (facts.window === undefined) return [];
  const prompt = isSpawned ? "" : constantText(promptOf(step) ?? agent.prompt);
  const tokens = Math.ceil((Buffer.byteLength(agent.instructions ?? "") + Buffer.byteLength(prompt)) / bytesPerToken);
  if (tokens <= facts.window) return [];
  const [asked, most] = [tokens, facts.window].map((count) => count.toLocaleString("en-US"));
  return [
    {
      code: "FLOW6014",
      severity: "error",
      message: `${who({ step, agent, isSpawned })}: instructions and prompt take about ${asked} tokens, and \`${model}\` has a window of ${most}`,
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
