import type { Evaluator } from "../expr/template.ts";
import type { Json, JsonObject } from "../model/json.ts";
import { isJsonObject, own } from "../model/json.ts";
import type { Failure } from "../model/outcome.ts";
import type { Agent, Body } from "../model/plan.ts";
import type { Attempt, Tool } from "../model/ports.ts";
import type { Result } from "../model/result.ts";
import { err, ok } from "../model/result.ts";
import type { AgentPorts } from "./agent-ports.ts";
import type { AgentRun } from "./agent-run.ts";
import { askedModels, labelOf } from "./asked-models.ts";
import { checkFact } from "./check.ts";
import { guardsOf } from "./guard.ts";
import type { AskedModel } from "./model-chain.ts";
import { finishName } from "./output.ts";
import type { RunRights } from "./permission.ts";

export type AgentBody = Extract<Body, { kind: "agent" }>;

export interface Asked {
  readonly agent: Agent;
  readonly body: AgentBody;
  readonly inputs: JsonObject;
  readonly path: string;
  readonly rights: RunRights | undefined;
  /** Tools that it has beside those of its list: of its MCP servers, its skills, its parent. */
  readonly served: readonly Tool[];
  readonly evaluator: Evaluator;
}

export type Equipment = Pick<AgentRun, "client" | "fallbacks" | "model" | "tools" | "withheld" | "output"> & {
  /** What was named as its models, for those it spawns. */
  readonly models: readonly Json[];
};

/** The models an agent asks and the tools it is offered. */
export async function equip(options: AgentPorts, asked: Asked): Promise<Result<Equipment, Failure>> {
  const { agent, body, path, rights, served } = asked;
  const schema = (body.output ?? agent.output)?.json;
  const names = toolNames(agent, body.overrides.json);
  const found = await options.tools(names, path);
  if (!found.ok) return found;
  const tools = [...permitted(found.value, names !== undefined, rights), ...permitted(served, true, rights)];
  if (isJsonObject(schema) && tools.some(({ name }) => name === finishName))
    return err({
      kind: "input",
      message: `agent \`${agent.name}\` has an \`output\`, so no tool of it may be called \`${finishName}\``,
    });
  const models = await askedModels({ ...asked, open: (model) => options.client(model, path) });
  if (!models.ok) return models;
  const withheld = [...found.value, ...served].filter(({ name }) => rights?.reach(name) === "deny");
  return ok({ ...models.value, tools, withheld, ...(isJsonObject(schema) ? { output: schema } : {}) });
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
export function toolNames(agent: Agent, overrides: Json): readonly string[] | undefined {
  const tools = isJsonObject(overrides) ? own(overrides, "tools") : undefined;
  if (!Array.isArray(tools)) return agent.tools;
  return tools.filter((name) => typeof name === "string");
}

/** Who summarises the conversations of agents at a step; its models are opened when they are needed. */
export function compactOf({ compact, client }: AgentPorts, path: string): AgentRun["compact"] {
  return async () => {
    const { instructions, models } = await compact();
    const opened: AskedModel[] = [];
    for (const model of models) {
      const found = await client(model, path);
      if (!found.ok) return found;
      opened.push({ model: labelOf(model) ?? found.value.provider, client: found.value });
    }
    return ok({ instructions, models: opened });
  };
}

/** What judges the agent beside its model: the guard rails, and the step's own check. */
export function judgesOf(
  { check: runCheck }: AgentPorts,
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

export function samplingOf(agent: Agent): NonNullable<AgentRun["sampling"]> {
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
