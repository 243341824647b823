import type { Hash } from "node:crypto";
import type { Span } from "../model/diagnostic.ts";
import type { Agent, Member, Named, Plan, Scope, Step, StepServers, Team, Template, Workflow } from "../model/plan.ts";
import { entry, type MapNode } from "../source/document.ts";
import type { LinkedScope } from "./link.ts";
import type { AgentLink, MemberLink } from "./link-agents.ts";
import type { LinkedWorkflow } from "./linked.ts";
import type { Library } from "./load.ts";
import { optional } from "./read/agent.ts";
import { asMap, entriesOf } from "./read/nodes.ts";
import type { AgentShape, StepShape } from "./shape.ts";

/** The plan of linked workflows that have no errors. */
export function createPlan(root: LinkedWorkflow, linked: ReadonlyMap<string, LinkedWorkflow>, library: Library): Plan {
  const agents: { [key: string]: Agent } = {};
  const workflows = Object.fromEntries([...linked].map(([key, workflow]) => [key, workflowOf(workflow, agents)]));
  const compact = root.compact && addAgent(root.compact, root, agents);
  const content = {
    version: 1 as const,
    root: root.shape.file.key,
    workflows,
    agents,
    ...optional("compact", compact),
  };
  const files = library.files.map(({ path, bytes }) => ({ path, sha256: sha256().update(bytes).digest("hex") }));
  return { ...content, digest: digestOf(content), files };
}

function workflowOf(workflow: LinkedWorkflow, agents: { [key: string]: Agent }): Workflow {
  const { shape } = workflow;
  return {
    path: shape.file.key,
    name: shape.name,
    ...optional("description", shape.description),
    inputs: shape.inputs,
    vars: shape.vars,
    env: shape.env,
    secrets: shape.secrets.map((secret) => secret.text),
    limits: shape.limits,
    expect: { steps: shape.expect.steps.map((it) => it.text), outputs: shape.expect.outputs.map((it) => it.text) },
    ...shape.settings,
    scope: scopeOf(workflow.scope, workflow, agents),
  };
}

function scopeOf(scope: LinkedScope, workflow: LinkedWorkflow, agents: { [key: string]: Agent }): Scope {
  return {
    steps: scope.shape.steps.map((step) => stepOf({ shape: step, scope, workflow, agents })),
    edges: scope.edges,
    outputs: scope.shape.outputs.map(({ name, value }) => ({ name, value })),
  };
}

interface StepSource {
  readonly shape: StepShape;
  readonly scope: LinkedScope;
  readonly workflow: LinkedWorkflow;
  readonly agents: { [key: string]: Agent };
}

function stepOf({ shape, scope, workflow, agents }: StepSource): Step {
  const { step } = shape;
  const inner = scope.inner.get(shape.id);
  const target = workflow.workflows.get(shape);
  const undoTarget = workflow.undoWorkflows.get(shape);
  const undoNode = asMap(entry(shape.node, "undo")?.value);
  const undo = step.undo && {
    ...step.undo,
    ...withServers(
      { ...step.undo, ...withAgent(step.undo, workflow.undoAgents.get(shape), { workflow, agents }) },
      { owner: undoNode, crew: spawnedBy(workflow.undoAgents.get(shape), workflow), workflow },
    ),
    ...(undoTarget && { scope: { workflow: undoTarget.shape.file.key } }),
  };
  return {
    ...step,
    ...withServers(
      withTeam(
        { ...step, ...withAgent(step, workflow.agents.get(shape), { workflow, agents }) },
        { shape, workflow, agents },
      ),
      { owner: shape.node, crew: crewOf(shape, workflow), workflow },
    ),
    ...(undo && { undo }),
    ...(inner && { scope: { inline: scopeOf(inner, workflow, agents) } }),
    ...(target && { scope: { workflow: target.shape.file.key } }),
  };
}

/** The agent's key in the body; among the inputs the models to ask: the step's own, the agent's, or the workflow's. */
function withAgent(
  step: Pick<Step, "inputs" | "body">,
  shape: AgentShape | undefined,
  { workflow, agents }: Pick<StepSource, "workflow" | "agents">,
): Partial<Pick<Step, "inputs" | "body">> {
  if (step.body.kind !== "agent" || !shape || step.inputs.type !== "map") return {};
  const key = addAgent(shape, workflow, agents);
  const candidates = [step.body.models, shape.agent.models, workflow.shape.models];
  const models = candidates.find((list) => list.length > 0) ?? [];
  return {
    body: { ...step.body, agent: key, models },
    inputs: {
      type: "map",
      entries: [...step.inputs.entries, { name: "models", value: { type: "list", items: models } }],
    },
  };
}

/** A step's own team replaces the agent's. */
function withTeam(
  { body, inputs }: Pick<Step, "inputs" | "body">,
  { shape, workflow, agents }: Omit<StepSource, "scope">,
): Pick<Step, "inputs" | "body"> {
  const members = workflow.teams.get(shape) ?? [];
  if (!shape.team || members.length === 0 || body.kind !== "agent") return { body, inputs };
  const team: Team = { members: membersOf(members, workflow, agents), parallel: shape.team.parallel };
  return { body: { ...body, team }, inputs };
}

/** Every agent that may come to run below a step, but for its own. */
function crewOf(shape: StepShape, workflow: LinkedWorkflow): ReadonlySet<AgentShape> {
  const led = workflow.teams.get(shape) ?? [];
  return new Set([
    ...spawnedBy(workflow.agents.get(shape), workflow),
    ...led.flatMap((link) => [link.shape, ...spawnedBy(link.shape, workflow)]),
  ]);
}

function spawnedBy(agent: AgentShape | undefined, { crews }: LinkedWorkflow): ReadonlySet<AgentShape> {
  const found = new Set<AgentShape>();
  const queue = agent ? [agent] : [];
  for (let next = queue.shift(); next; next = queue.shift()) {
    const { subagents = [], members = [] } = crews.get(next) ?? {};
    for (const { shape } of [...subagents, ...members]) {
      if (!found.has(shape)) queue.push(shape);
      found.add(shape);
    }
  }
  return found;
}

interface ServersOwner {
  readonly owner: MapNode | undefined;
  /** Who may be spawned there. */
  readonly crew: ReadonlySet<AgentShape>;
  readonly workflow: LinkedWorkflow;
}

/**
 * Which MCP servers a step, and whoever is spawned in it, is given. Among the inputs are their definitions, for what in
 * them is an expression, and what else may be handed on.
 */
function withServers(
  { body, inputs }: Pick<Step, "inputs" | "body">,
  { owner, crew, workflow }: ServersOwner,
): Pick<Step, "inputs" | "body"> {
  if (!owner || (body.kind !== "agent" && body.kind !== "tool") || inputs.type !== "map") return { body, inputs };
  const env = entriesOf(entry(owner, "env")?.value).map(({ key }) => key);
  const own = serversAt(owner, env, workflow);
  const vars = crew.size > 0 ? varsOf(workflow, owner.at) : [];
  const others = [...crew].flatMap((agent) => {
    const given = serversAt(agent.node, env, workflow);
    return given ? [{ key: agentKey(agent, workflow), ...given }] : [];
  });
  if (!own && others.length === 0 && vars.length === 0) return { body, inputs };
  const spawned = others.map(({ key, mcp }) => ({ name: key, value: mcp }));
  const definitions = others.map((it) => ({ name: it.key, value: it.definitions }));
  return {
    body: {
      ...body,
      ...(own && { mcp: own.mcp }),
      ...(body.kind === "agent" && others.length > 0 && { crew: spawned }),
    },
    inputs: {
      type: "map",
      entries: [
        ...inputs.entries,
        ...(own ? [{ name: "mcp", value: own.definitions }] : []),
        ...(vars.length > 0 ? [{ name: "vars", value: { type: "map" as const, entries: vars } }] : []),
        ...(others.length > 0 ? [{ name: "crew", value: { type: "map" as const, entries: definitions } }] : []),
      ],
    },
  };
}

/** The workflow's constants, for an agent that may hand them on. */
function varsOf({ shape }: LinkedWorkflow, at: Span): Named<Template>[] {
  return shape.vars.map(({ name }) => ({ name, value: { type: "expression", source: `vars['${name}']`, at } }));
}

function serversAt(
  owner: MapNode,
  env: readonly string[],
  workflow: LinkedWorkflow,
): { readonly mcp: StepServers; readonly definitions: Template } | undefined {
  const uses = workflow.servers.get(owner) ?? [];
  if (uses.length === 0) return undefined;
  const servers = uses.map(({ shape: { name, file, expands, base }, own }) => ({
    name,
    file: file.startsWith("#") ? workflow.shape.file.key + file : file,
    own,
    expands,
    base,
  }));
  const entries = uses.map(({ shape: { name, definition } }) => ({ name, value: definition }));
  return { mcp: { servers, env }, definitions: { type: "map", entries } };
}

/** The agent with all that it may spawn or lead, and its key. */
function addAgent(shape: AgentShape, workflow: LinkedWorkflow, agents: { [key: string]: Agent }): string {
  const key = agentKey(shape, workflow);
  if (Object.hasOwn(agents, key)) return key;
  agents[key] = shape.agent;
  const { subagents = [], members = [] } = workflow.crews.get(shape) ?? {};
  const named = (links: readonly AgentLink[]): Named<string>[] =>
    links.map(({ name, shape: other }) => ({ name: name.text, value: addAgent(other, workflow, agents) }));
  agents[key] = {
    ...shape.agent,
    ...(subagents.length > 0 && { subagents: named(subagents) }),
    ...(shape.team &&
      members.length > 0 && { team: { members: membersOf(members, workflow, agents), parallel: shape.team.parallel } }),
  };
  return key;
}

function membersOf(
  members: readonly MemberLink[],
  workflow: LinkedWorkflow,
  agents: { [key: string]: Agent },
): Member[] {
  return members.map(({ shape, member }) => ({
    name: member.name.text,
    key: addAgent(shape, workflow, agents),
    ...member.terms,
  }));
}

/** An inline agent's key begins with `#` and belongs to its file. */
function agentKey(agent: AgentShape, workflow: LinkedWorkflow): string {
  return agent.key.startsWith("#") ? workflow.shape.file.key + agent.key : agent.key;
}

/** Loaded with the first plan that is made: to validate a file takes no plan, and this module costs as much as its parsing. */
function sha256(): Hash {
  return process.getBuiltinModule("node:crypto").createHash("sha256");
}

/**
 * sha256 over the canonical JSON of a plan's content without positions; see {@link Plan} for the two rules of its keys.
 * The two maps by path are written as lists, because a file may be called `at`.
 */
export function digestOf({ root, workflows, agents }: Pick<Plan, "root" | "workflows" | "agents">): string {
  const hash = sha256();
  const names = new Map<string, string>();
  // Growing one string here is twice as fast as handing pieces on; hashed before it grows large, for aliases make texts huge.
  let text = "";
  const write = (value: unknown, isData: boolean): void => {
    if (typeof value === "string") text += JSON.stringify(value);
    else if (Array.isArray(value)) {
      text += "[";
      for (const item of value) {
        write(item, isData);
        text += ",";
      }
      text += "]";
    } else if (typeof value === "object" && value !== null) {
      writeMap(value as { readonly [key: string]: unknown }, isData);
    } else text += JSON.stringify(value) ?? "null";
    if (text.length < 65_536) return;
    hash.update(text);
    text = "";
  };
  const writeMap = (map: { readonly [key: string]: unknown }, isData: boolean): void => {
    text += "{";
    for (const key of Object.keys(map).sort()) {
      if (!isData && key === "at") continue;
      text += quotedOnce(key, names);
      write(map[key], isData || key === "json");
      text += ",";
    }
    text += "}";
  };
  writeMap({ version: 1, root, workflows: listed(workflows), agents: listed(agents) }, false);
  return hash.update(text).digest("hex");
}

function quotedOnce(key: string, known: Map<string, string>): string {
  const before = known.get(key);
  if (before !== undefined) return before;
  const quoted = `${JSON.stringify(key)}:`;
  known.set(key, quoted);
  return quoted;
}

function listed(map: object): [string, unknown][] {
  return Object.entries(map).sort(byKey);
}

function byKey([a]: [string, unknown], [b]: [string, unknown]): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
