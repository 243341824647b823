import type { Json } from "../model/json.ts";
import type { Message } from "../model/message.ts";
import type { Failure } from "../model/outcome.ts";
import type { Agent } from "../model/plan.ts";
import type { Attempt, Rights, Tool } from "../model/ports.ts";
import { ok, type Result } from "../model/result.ts";
import type { AgentPorts } from "./agent-ports.ts";
import type { Assignment, Membership, Parent, Shared } from "./assignment.ts";
import { type AgentBody, equip, type Equipment, toolNames } from "./equipment.ts";
import { type RunRights, runRights } from "./permission.ts";
import { firstMessages } from "./prompt.ts";
import { copied, type Recorded } from "./recorded.ts";

/** What an agent run begins with, but for those it may spawn. */
export interface Prepared {
  readonly agent: Agent;
  readonly body: AgentBody;
  /** A copy that is its own. */
  readonly recorded: Recorded | undefined;
  readonly messages: readonly Message[];
  readonly rights: RunRights | undefined;
  readonly asks: Omit<Equipment, "tools" | "models">;
  /** What was named as its models, for those it spawns. */
  readonly models: readonly Json[];
  readonly tools: readonly Tool[];
  /** Those of `tools` that MCP servers serve, for those it spawns. */
  readonly served: readonly Tool[];
  /** What it is told behind its instructions; `tools` are the names of all it is offered. */
  readonly told: (tools: readonly string[]) => readonly string[];
  /** Gives back what is its own: its servers. */
  readonly close: () => Promise<void>;
}

/** Gathers what an agent works with. The error is an agent that cannot begin; nothing of it is left behind then. */
export async function prepare(shared: Shared, assignment: Assignment): Promise<Result<Prepared, Failure>> {
  const { ports, evaluator } = shared;
  const { attempt, parent, membership, more } = assignment;
  const { agent, body } = agentOf(ports, attempt);
  const files = ports.instructions?.(body.agent) ?? ok([]);
  if (!files.ok) return files;
  const messages = await firstMessages({ agent, inputs: attempt.inputs, evaluator, files: files.value });
  if (!messages.ok) return messages;
  const recorded = assignment.recorded && copied(assignment.recorded, more !== undefined);
  const granted = rightsOf(ports, assignment);
  const rights = granted && runRights(granted, recorded?.wanting);
  const names = toolNames(agent, body.overrides.json);
  const servers = await ports.servers?.(attempt, names);
  if (servers?.ok === false) return servers;
  const own = servers?.value.tools ?? [];
  const served = [...own, ...joining(parent, own, names)];
  const extras = ports.extras?.(body.agent, names);
  const { inputs, path } = attempt;
  const beside = [...served, ...(extras?.tools ?? [])];
  const equipment = await equip(ports, { agent, body, inputs, path, rights, evaluator, served: beside });
  if (!equipment.ok) {
    await servers?.value.close();
    return equipment;
  }
  const { models, tools, ...asks } = equipment.value;
  return ok({
    agent,
    body,
    recorded,
    rights,
    asks,
    models,
    tools,
    served,
    messages: messages.value,
    told: (offered) => [...(extras?.told(offered) ?? []), ...(membership ? [membership.told] : [])],
    close: async () => servers?.value.close(),
  });
}

function agentOf({ agents }: AgentPorts, { step, path }: Attempt): Pick<Prepared, "agent" | "body"> {
  const { body } = step;
  if (body.kind !== "agent") throw new Error(`an agent cannot run the ${body.kind} step ${path}`);
  const agent = Object.hasOwn(agents, body.agent) ? agents[body.agent] : undefined;
  if (agent === undefined) throw new Error(`the plan has no agent ${body.agent}`);
  return { agent, body };
}

/** Of a spawned agent never more than its parent has. */
function rightsOf(ports: AgentPorts, { attempt, parent, membership }: Assignment): Rights | undefined {
  if (parent === undefined) return ports.rights?.(attempt);
  return parent.rights && gatedBy(childOf(parent.rights, attempt, parent.spawned.name), membership);
}

function childOf(rights: Rights, attempt: Attempt, name: string | undefined): Rights {
  const child = rights.child?.(attempt, name);
  if (child === undefined) throw new Error(`nobody can be spawned within the rights at ${attempt.path}`);
  return child;
}

/** What a team forbids its member, it forbids whomever the member spawns. */
function gatedBy(rights: Rights, membership: Membership | undefined): Rights {
  if (membership === undefined) return rights;
  const child = (attempt: Attempt, name?: string): Rights => gatedBy(childOf(rights, attempt, name), membership);
  return { ...rights, judge: membership.gate(rights.judge), child };
}

/** The parent's servers serve its children too, unless their list of tools leaves them out; of one name the own is taken. */
function joining(
  parent: Parent | undefined,
  own: readonly Tool[],
  names: readonly string[] | undefined,
): readonly Tool[] {
  const isNamed = (tool: string): boolean => names === undefined || names.some((name) => serves(name, tool));
  return (parent?.served ?? []).filter(({ name }) => isNamed(name) && !own.some((tool) => tool.name === name));
}

/** `mcp__server` and `mcp__server__*` stand for all tools of a server. */
function serves(name: string, tool: string): boolean {
  return name === tool || (name.startsWith("mcp__") && tool.startsWith(`${name.replace(/__\*$/, "")}__`));
}
