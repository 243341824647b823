import { createEvaluator } from "../expr/template.ts";
import type { Evaluator } from "../expr/template.ts";
import type { AgentRunIds } from "../model/event.ts";
import type { Hooks } from "../model/hooks.ts";
import type { Json, JsonObject } from "../model/json.ts";
import { isJsonObject, own } from "../model/json.ts";
import { type AgentOutcome, noUsage } from "../model/message.ts";
import type { Failure, StepResult } from "../model/outcome.ts";
import type { Agent, Body, Plan } from "../model/plan.ts";
import type { Attempt, Clock, Emit, Execute, ModelClient, Rights, Spend, Tool, ToolCall } from "../model/ports.ts";
import { elapsed } from "../model/ports.ts";
import type { Result } from "../model/result.ts";
import { err, ok } from "../model/result.ts";
import { lasting, limitsOf } from "./limits.ts";
import type { Time } from "./limits.ts";
import type { AgentResult } from "./agent-result.ts";
import type { AgentRun } from "./agent-run.ts";
import { haltedBy } from "./answer.ts";
import { askedModels } from "./asked-models.ts";
import { checkFact } from "./check.ts";
import { guardsOf } from "./guard.ts";
import { runAgent } from "./loop.ts";
import { finishName } from "./output.ts";
import { type RunRights, runRights, withDenials } from "./permission.ts";
import { firstMessages, withTexts } from "./prompt.ts";
import type { Conversations, Recorded } from "./recorded.ts";
import type { Validators } from "./tool-call.ts";

/** What agent steps need from the rest of the house; one for each run. */
export interface AgentExecuteOptions {
  readonly agents: Plan["agents"];
  /**
   * The client of a model as `model:` names it: an id, or a map of `id`, `base-url`, `key`; undefined when neither step,
   * agent nor workflow names one. `step` is the step path, for a model whose file is named relative to a workflow.
   */
  readonly client: (model: Json | undefined, step: string) => Promise<Result<ModelClient, Failure>>;
  /** The tools of these names for the step at that path; the default ones when undefined. */
  readonly tools: (names: readonly string[] | undefined, step: string) => ToolsFound | Promise<ToolsFound>;
  /** Connects the step's MCP servers; `names` are the tools it may have. Without: there are none. */
  readonly servers?: (attempt: Attempt, names: readonly string[] | undefined) => Promise<Result<Served, Failure>>;
  readonly workspace: string;
  readonly emit: Emit;
  readonly clock: Clock;
  /** Keeps a text too long for the model and gives the path to read it at. */
  readonly spill: (text: string) => string;
  /** Runs the script of a step's `check` as a `run` step would be, with the step's `env`. */
  readonly check?: (script: string, attempt: Attempt) => Promise<StepResult>;
  /** What an agent, by its key, is told by files of the project. */
  readonly instructions?: (
    agent: string,
  ) => Result<readonly { readonly path: string; readonly text: string }[], Failure>;
  /** Who is told of an agent run's moments. */
  readonly hooks?: (agent: Agent, place: { readonly step: string; readonly agent: string }) => Hooks | undefined;
  /** What an agent, by its key, has beside: skills, a memory. */
  readonly extras?: (agent: string, names: readonly string[] | undefined) => Extras;
  /** What an agent step may do; everything its tools can when absent. */
  readonly rights?: (attempt: Attempt) => Rights;
  /** What the log has of the agents before the run was resumed. */
  readonly before?: Pick<Conversations, "runsOf" | "take">;
  /** False: nobody wants the pieces of replies, and they are not sent. */
  readonly pieces?: boolean;
  /** A request as the log may hold it: secrets masked. As it is when absent. */
  readonly masked?: NonNullable<AgentRun["masked"]>;
  /** What an agent run of the log has spent; asked for one that is gone on with. */
  readonly spent?: (agent: string) => Spend;
}
/** The tools of the agent's MCP servers; the agent closes them when it is over. */
export interface Served {
  readonly tools: readonly Tool[];
  close(): Promise<void>;
}
/** What an agent has beside its tools and its instructions. */
export interface Extras {
  readonly tools: readonly Tool[];
  /** Texts that stand behind its instructions; `tools` are the names of all it is offered. */
  told(tools: readonly string[]): readonly string[];
}
export type ToolsFound = Result<readonly Tool[], Failure>;

type AgentBody = Extract<Body, { kind: "agent" }>;

/** Runs the attempts of agent steps. Every outcome of an agent but `done` and `cancelled` is a failure of that kind. */
export function createAgentExecute(options: AgentExecuteOptions): Execute {
  const evaluator = createEvaluator();
  const runsOf = new Map<string, number>();
  const validators: Validators = new WeakMap();

  return async (attempt: Attempt): Promise<StepResult> => {
    const { step, path, inputs, signal, resumes, ...around } = attempt;
    const { body } = step;
    if (body.kind !== "agent") throw new Error(`an agent cannot run the ${body.kind} step ${path}`);
    const agent = Object.hasOwn(options.agents, body.agent) ? options.agents[body.agent] : undefined;
    if (agent === undefined) throw new Error(`the plan has no agent ${body.agent}`);
    const files = options.instructions?.(body.agent) ?? ok([]);
    if (!files.ok) return { outcome: "failure", error: files.error };
    const extras = options.extras?.(body.agent, toolNames(agent, body.overrides.json));
    const told = (names: readonly string[]): readonly string[] => extras?.told(names) ?? [];
    const messages = await firstMessages({ agent, inputs, evaluator, files: files.value });
    if (!messages.ok) return { outcome: "failure", error: messages.error };
    const given = options.rights?.(attempt);
    const rights = given && runRights(given);
    const served = await options.servers?.(attempt, toolNames(agent, body.overrides.json));
    if (served?.ok === false)
      return signal.aborted ? { outcome: "cancelled" } : { outcome: "failure", error: served.error };
    const asked = {
      agent,
      body,
      inputs,
      path,
      rights,
      served: [...(served?.value.tools ?? []), ...(extras?.tools ?? [])],
    };
    const equipment = await equip({ ...options, evaluator }, asked);
    if (!equipment.ok) {
      await served?.value.close();
      return { outcome: "failure", error: equipment.error };
    }

    const recorded = resumes === true ? options.before?.take(path) : undefined;
    const count = (runsOf.get(path) ?? options.before?.runsOf(path) ?? 0) + 1;
    runsOf.set(path, count);
    const { workspace, clock, spill } = options;
    if (recorded && rights)
      await narrowAgain(recorded, equipment.value.tools, {
        workspace,
        signal,
        narrow: (rules) => rights.narrow?.(rules),
      });
    const hooks = options.hooks?.(agent, { step: path, agent: `${path}@${count}` });
    const spent = recorded && options.spent?.(recorded.agent);
    const limits = limitsOf(agent, step.limits, { ...around, ...(spent && { spent }) });
    const time = lasting(clock, agent.limits.duration, signal);
    const run = {
      ...equipment.value,
      ids: { step: path, agent: `${path}@${count}`, parent: null },
      name: agent.name,
      messages: withTexts(messages.value, told(equipment.value.tools.map((tool) => tool.name))),
      ...(recorded && { recorded }),
      ...(rights && { rights }),
      ...(hooks && { hooks }),
      ...limits,
      ...judgesOf(options, { agent, body, attempt: { ...attempt, signal: time.signal } }),
      sampling: samplingOf(agent),
      validators,
      workspace,
      signal: time.signal,
      clock,
      spill,
      ...(options.masked && { masked: options.masked }),
      ...(options.pieces !== undefined && { pieces: options.pieces }),
    };
    const opened = await openSession(run);
    const result = "outcome" in opened ? opened : await reported(options, opened, time);
    await run.hooks?.fire({ event: "SessionEnd", subject: result.outcome, fields: { reason: result.outcome } }, signal);
    time.close();
    await served?.value.close();
    return stepResult(result);
  };
}

/** What calls of before a resume took away stays away. */
async function narrowAgain({ messages }: Recorded, tools: readonly Tool[], call: ToolCall): Promise<void> {
  for (const block of messages.flatMap(({ blocks }) => blocks)) {
    const tool = block.type === "call" ? tools.find(({ name, narrows }) => narrows && name === block.name) : undefined;
    if (tool && block.type === "call" && isJsonObject(block.args)) await tool.run(block.args, call);
  }
}

/** What hooks say at the beginning stands behind the instructions; they may also end it there. */
async function openSession(run: AgentRun): Promise<AgentRun | AgentResult> {
  const source = run.recorded ? "resume" : "startup";
  const word = await run.hooks?.fire(
    { event: "SessionStart", subject: source, fields: { source, model: run.model } },
    run.signal,
  );
  const ended = haltedBy(word?.stop);
  if (ended) return { ...ended, turns: 0, usage: noUsage, text: "" };
  return word && word.texts.length > 0 ? { ...run, messages: withTexts(run.messages, word.texts) } : run;
}

interface Asked {
  readonly agent: Agent;
  readonly body: AgentBody;
  readonly inputs: JsonObject;
  readonly path: string;
  readonly rights: RunRights | undefined;
  /** The tools of its MCP servers. */
  readonly served: readonly Tool[];
}
type Equipment = Pick<AgentRun, "client" | "fallbacks" | "model" | "tools" | "output">;

async function equip(
  options: AgentExecuteOptions & { readonly evaluator: Evaluator },
  asked: Asked,
): Promise<Result<Equipment, Failure>> {
  const { agent, body, path } = asked;
  const schema = (body.output ?? agent.output)?.json;
  const names = toolNames(agent, body.overrides.json);
  const found = await options.tools(names, path);
  if (!found.ok) return found;
  const { rights, served } = asked;
  const tools = ok([...permitted(found.value, names !== undefined, rights), ...permitted(served, true, rights)]);
  if (isJsonObject(schema) && tools.value.some(({ name }) => name === finishName))
    return err({
      kind: "input",
      message: `agent \`${agent.name}\` has an \`output\`, so no tool of it may be called \`${finishName}\``,
    });
  const { evaluator } = options;
  const models = await askedModels({ ...asked, evaluator, open: (model) => options.client(model, path) });
  if (!models.ok) return models;
  return ok({
    ...models.value,
    tools: tools.value,
    ...(isJsonObject(schema) ? { output: schema } : {}),
  });
}

/** What can never go ahead is not offered; neither, unless it was asked for by name, what would always need a person. */
function permitted(tools: readonly Tool[], named: boolean, rights: RunRights | undefined): readonly Tool[] {
  if (rights === undefined) return tools;
  return tools.filter(({ name }) => {
    const most = rights.reach(name);
    return most === "allow" || (most === "ask" && named);
  });
}

/** A step's own list replaces the agent's. */
function toolNames(agent: Agent, overrides: Json): readonly string[] | undefined {
  const tools = isJsonObject(overrides) ? own(overrides, "tools") : undefined;
  if (!Array.isArray(tools)) return agent.tools;
  return tools.filter((name) => typeof name === "string");
}

/** What judges the agent beside its model: the guard rails, and the step's own check. */
function judgesOf(
  { check: runCheck }: AgentExecuteOptions,
  { agent, body, attempt }: { readonly agent: Agent; readonly body: AgentBody; readonly attempt: Attempt },
): Pick<AgentRun, "guards" | "check"> {
  const guards = guardsOf(setting(agent, "guards"));
  if (body.check === undefined) return { guards };
  if (runCheck === undefined) throw new Error(`nothing runs the check of ${attempt.path}`);
  const { script, max } = body.check;
  const run = async (signal: AbortSignal): ReturnType<NonNullable<AgentRun["check"]>["run"]> =>
    checkFact(await runCheck(script, { ...attempt, signal }));
  return { guards, check: { script, max, run } };
}

function setting({ settings }: Agent, key: string): Json | undefined {
  return isJsonObject(settings.json) ? own(settings.json, key) : undefined;
}

function samplingOf(agent: Agent): NonNullable<AgentRun["sampling"]> {
  const { temperature, topP, maxOutput, effort } = agent;
  const options = setting(agent, "options");
  return {
    ...(isJsonObject(options) && { options }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { topP }),
    ...(maxOutput === undefined ? {} : { maxOutput }),
    ...(effort === undefined ? {} : { effort }),
  };
}

/** The run with its first and last event around it. */
async function reported({ emit, clock }: AgentExecuteOptions, run: AgentRun, time: Time): Promise<AgentResult> {
  const ids: AgentRunIds = run.ids;
  const start = clock.monotonic();
  const tools = run.tools.map(({ name }) => name).sort();
  const { name, model, client, recorded } = run;
  const continues = recorded && { continues: recorded.agent };
  emit({ ...ids, type: "agent.started", name, model, provider: client.provider, tools, ...continues });
  const events = runAgent(run);
  let next = await events.next();
  for (; next.done !== true; next = await events.next()) emit(next.value);
  const result = withDenials(time.judge(next.value), run.rights);
  const { outcome, reason, turns, usage, text, output } = result;
  const answer = output === undefined ? { text } : { text, output };
  const duration = elapsed(clock, start);
  emit({ ...ids, type: "agent.finished", outcome, reason, turns, usage, ...answer, duration });
  return result;
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
