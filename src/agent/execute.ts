import { createEvaluator } from "../expr/template.ts";
import type { Evaluator } from "../expr/template.ts";
import type { AgentRunIds } from "../model/event.ts";
import type { Json, JsonObject } from "../model/json.ts";
import { isJsonObject, own } from "../model/json.ts";
import type { AgentOutcome } from "../model/message.ts";
import type { Failure, StepResult } from "../model/outcome.ts";
import type { Agent, Body, Plan } from "../model/plan.ts";
import type { Attempt, Clock, Emit, Execute, ModelClient, Tool } from "../model/ports.ts";
import { elapsed } from "../model/ports.ts";
import type { Result } from "../model/result.ts";
import { err, ok } from "../model/result.ts";
import { runAgent } from "./loop.ts";
import type { AgentResult, AgentRun } from "./loop.ts";
import { finishName } from "./output.ts";
import { firstMessages } from "./prompt.ts";
import type { Conversations } from "./recorded.ts";

/** What agent steps need from the rest of the house; one for each run. */
export interface AgentExecuteOptions {
  readonly agents: Plan["agents"];
  /**
   * The client of a model as `model:` names it: an id, or a map of `id`, `base-url`, `key`; undefined when neither step,
   * agent nor workflow names one. `step` is the step path, for a model whose file is named relative to a workflow.
   */
  readonly client: (model: Json | undefined, step: string) => Promise<Result<ModelClient, Failure>>;
  /** The tools of these names; the default ones when undefined. */
  readonly tools: (names: readonly string[] | undefined) => ToolsFound | Promise<ToolsFound>;
  readonly workspace: string;
  readonly emit: Emit;
  readonly clock: Clock;
  /** Keeps a text too long for the model and gives the path to read it at. */
  readonly spill: (text: string) => string;
  /** What the log has of the agents before the run was resumed. */
  readonly before?: Pick<Conversations, "runsOf" | "take">;
}
export type ToolsFound = Result<readonly Tool[], Failure>;

type AgentBody = Extract<Body, { kind: "agent" }>;

/** Runs the attempts of agent steps. Every outcome of an agent but `done` and `cancelled` is a failure of that kind. */
export function createAgentExecute(options: AgentExecuteOptions): Execute {
  const evaluator = createEvaluator();
  const runsOf = new Map<string, number>();

  return async ({ step, path, inputs, signal, resumes }: Attempt): Promise<StepResult> => {
    const { body } = step;
    if (body.kind !== "agent") throw new Error(`an agent cannot run the ${body.kind} step ${path}`);
    const agent = Object.hasOwn(options.agents, body.agent) ? options.agents[body.agent] : undefined;
    if (agent === undefined) throw new Error(`the plan has no agent ${body.agent}`);
    const messages = await firstMessages(agent, inputs, evaluator);
    if (!messages.ok) return { outcome: "failure", error: messages.error };
    const equipment = await equip({ ...options, evaluator }, { agent, body, inputs, path });
    if (!equipment.ok) return { outcome: "failure", error: equipment.error };

    const recorded = resumes === true ? options.before?.take(path) : undefined;
    const count = (runsOf.get(path) ?? options.before?.runsOf(path) ?? 0) + 1;
    runsOf.set(path, count);
    const { workspace, clock, spill } = options;
    const maxTurns = step.limits.turns ?? agent.limits.turns;
    const result = await reported(options, {
      ...equipment.value,
      ids: { step: path, agent: `${path}@${count}`, parent: null },
      name: agent.name,
      messages: messages.value,
      ...(recorded && { recorded }),
      ...(maxTurns === undefined ? {} : { maxTurns }),
      sampling: samplingOf(agent),
      workspace,
      signal,
      clock,
      spill,
    });
    return stepResult(result);
  };
}

interface Asked {
  readonly agent: Agent;
  readonly body: AgentBody;
  readonly inputs: JsonObject;
  readonly path: string;
}
type Equipment = Pick<AgentRun, "client" | "model" | "tools" | "output">;

async function equip(
  options: AgentExecuteOptions & { readonly evaluator: Evaluator },
  asked: Asked,
): Promise<Result<Equipment, Failure>> {
  const { agent, body, path } = asked;
  const schema = (body.output ?? agent.output)?.json;
  const tools = await options.tools(toolNames(agent, body.overrides.json));
  if (!tools.ok) return tools;
  if (isJsonObject(schema) && tools.value.some(({ name }) => name === finishName))
    return err({
      kind: "input",
      message: `agent \`${agent.name}\` has an \`output\`, so no tool of it may be called \`${finishName}\``,
    });
  const model = firstModel(asked, options.evaluator);
  if (!model.ok) return model;
  const client = await options.client(model.value, path);
  if (!client.ok) return client;
  const label = modelLabel(model.value) ?? client.value.provider;
  return ok({
    client: client.value,
    model: label,
    tools: tools.value,
    ...(isJsonObject(schema) ? { output: schema } : {}),
  });
}

/** The engine resolves a step's models as `inputs.models`; where it gave none, the plan's own constants count. */
function firstModel({ agent, body, inputs }: Asked, evaluator: Evaluator): Result<Json | undefined, Failure> {
  const resolved = own(inputs, "models");
  if (Array.isArray(resolved) && resolved.length > 0) return ok(resolved[0]);
  const template = body.models[0] ?? agent.models[0];
  if (template === undefined) return ok(undefined);
  const value = evaluator.resolve(template, { contexts: {} });
  if (value.ok) return value;
  return err({ kind: "expression", message: value.error.message, position: value.error.at });
}

function modelLabel(model: Json | undefined): string | undefined {
  const id = isJsonObject(model) ? own(model, "id") : model;
  return typeof id === "string" ? id : undefined;
}

/** A step's own list replaces the agent's. */
function toolNames(agent: Agent, overrides: Json): readonly string[] | undefined {
  const tools = isJsonObject(overrides) ? own(overrides, "tools") : undefined;
  if (!Array.isArray(tools)) return agent.tools;
  return tools.filter((name) => typeof name === "string");
}

function samplingOf({ temperature, topP, maxOutput, effort }: Agent): NonNullable<AgentRun["sampling"]> {
  return {
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { topP }),
    ...(maxOutput === undefined ? {} : { maxOutput }),
    ...(effort === undefined ? {} : { effort }),
  };
}

/** The run with its first and last event around it. */
async function reported({ emit, clock }: AgentExecuteOptions, run: AgentRun): Promise<AgentResult> {
  const ids: AgentRunIds = run.ids;
  const start = clock.monotonic();
  const tools = run.tools.map(({ name }) => name).sort();
  const { name, model, client, recorded } = run;
  const continues = recorded && { continues: recorded.agent };
  emit({ ...ids, type: "agent.started", name, model, provider: client.provider, tools, ...continues });
  const events = runAgent(run);
  let next = await events.next();
  for (; next.done !== true; next = await events.next()) emit(next.value);
  const { outcome, reason, turns, usage, text, output } = next.value;
  const answer = output === undefined ? { text } : { text, output };
  const duration = elapsed(clock, start);
  emit({ ...ids, type: "agent.finished", outcome, reason, turns, usage, ...answer, duration });
  return next.value;
}

function stepResult({ outcome, reason, turns, usage, text, output }: AgentResult): StepResult {
  if (outcome === "cancelled") return { outcome };
  if (outcome !== "done") return { outcome: "failure", error: { kind: failureKind(outcome), message: reason } };
  const { cost, ...tokens } = usage;
  const result: JsonObject = { text, output: output ?? null, turns, usage: tokens, cost };
  return { outcome: "success", result, outputs: output ?? { text } };
}

/** The words are the same; this is where the compiler proves it. */
function failureKind(outcome: Exclude<AgentOutcome, "done" | "cancelled">): Failure["kind"] {
  return outcome;
}
