import type { AgentEvent, SandboxState, SpawnedBy } from "../model/agent-event.ts";
import type { LogLine } from "../model/event.ts";
import type { Json } from "../model/json.ts";
import { addUsage, type AgentOutcome, noUsage, type Usage } from "../model/message.ts";
import { foldTeam, type TeamEvent, type TeamState } from "../model/team.ts";

export interface AgentNode {
  readonly agent: string;
  readonly parent: string | null;
  readonly name: string;
  /** How it came to be spawned; absent on the agent of a step. */
  readonly spawned?: SpawnedBy;
  /** The agent run whose conversation it goes on with. */
  readonly continues?: string;
  /** Those it took the place of in a resume: what they spawned is its. */
  readonly was: readonly string[];
  /** What it was asked, the beginning of it. */
  input: string | undefined;
  /** What it answered: its last text, the beginning of it, or its structured answer. */
  output: Json | undefined;
  readonly model: string;
  readonly provider: string;
  /** What its commands ran in, as far as the log has it. */
  readonly sandbox: SandboxState | undefined;
  /** The attempt of the step it belongs to, from 1. */
  readonly attempt: number;
  readonly started: number;
  outcome: AgentOutcome | undefined;
  reason: string;
  turns: number;
  usage: Usage;
  duration: number | undefined;
  /** The last team it led, and those before it. */
  team: TeamState | undefined;
  earlierTeams: readonly TeamState[];
}

/** The agents of a step. {@link growAgent} and {@link growTeam} alone write to them. */
export interface AgentsOfStep {
  agents: AgentNode[];
  /** Agent runs of earlier starts, but for those that `agents` go on with. */
  earlier: readonly AgentNode[];
  readonly attempts: readonly { readonly attempt: number }[];
}

export function isTeamEvent(line: LogLine): line is TeamEvent & LogLine {
  return line.type.startsWith("team.");
}

export function isAgentEvent(line: LogLine): line is AgentEvent & LogLine {
  return "agent" in line;
}

export function growAgent(node: AgentsOfStep, event: AgentEvent, time: number): void {
  if (event.type === "agent.started") {
    const { agent, parent, name, spawned, continues, model, provider } = event;
    // Only where there were commands to run.
    const sandbox = event.tools.includes("Bash") ? event.sandbox : undefined;
    const attempt = node.attempts.at(-1)?.attempt ?? 1;
    const before = [...node.earlier, ...node.agents].findLast((it) => it.agent === continues);
    // One that had ended is asked something else, and counts for itself.
    const cutOff = spawned && before?.outcome !== undefined && before.outcome !== "cancelled" ? undefined : before;
    if (cutOff) takeOver(node, cutOff);
    const unknown = { outcome: undefined, reason: "", turns: 0, duration: undefined, output: undefined };
    const origin = { ...(spawned && { spawned }), ...(continues !== undefined && { continues }) };
    const taken = {
      team: cutOff?.team,
      earlierTeams: cutOff?.earlierTeams ?? [],
      input: cutOff?.input,
      usage: cutOff?.usage ?? noUsage,
      was: cutOff ? [cutOff.agent, ...cutOff.was] : [],
    };
    node.agents.push({
      agent,
      parent,
      name,
      ...origin,
      ...taken,
      model,
      provider,
      sandbox,
      attempt,
      started: time,
      ...unknown,
    });
    return;
  }
  const agent = node.agents.findLast((it) => it.agent === event.agent);
  if (agent === undefined) return;
  if (event.type === "message") agent.input ??= askedIn(event);
  else if (event.type === "turn.finished") {
    agent.turns = event.turn;
    agent.usage = addUsage(agent.usage, event.usage);
  } else if (event.type === "model.retry" || event.type === "model.failed") {
    agent.usage = addUsage(agent.usage, event.usage ?? noUsage);
  } else if (event.type === "model.fallback") {
    Object.assign(agent, { model: event.model, provider: event.provider });
  } else if (event.type === "context.compressed" && event.how === "summarised") {
    agent.usage = addUsage(agent.usage, event.usage);
  } else if (event.type === "agent.finished") {
    const { outcome, reason, turns, usage, duration, text, output = cutText(text) } = event;
    Object.assign(agent, { outcome, reason, turns, usage, duration, output });
  }
}

/** What an agent run that was cut off had spawned, and has ended, belongs to the one that goes on with it. */
function takeOver(node: AgentsOfStep, cutOff: AgentNode): void {
  const ended = ({ agent, outcome }: AgentNode): boolean =>
    agent.startsWith(`${cutOff.agent}.`) && outcome !== undefined && outcome !== "cancelled";
  node.agents.push(...node.earlier.filter(ended));
  node.earlier = node.earlier.filter((agent) => agent !== cutOff && !ended(agent));
}

export function growTeam({ agents }: AgentsOfStep, event: TeamEvent): void {
  const lead = agents.findLast(({ agent }) => agent === event.agent);
  if (lead === undefined) return;
  if (event.type === "team.started" && lead.team) lead.earlierTeams = [...lead.earlierTeams, lead.team];
  lead.team = foldTeam(lead.team, event);
}

/** Whoever wants the whole of it reads the log. */
const longestText = 4000;

function cutText(text: string): string {
  return text.length > longestText ? `${text.slice(0, longestText)}…` : text;
}

/** What somebody asks of an agent, and no results of its calls. */
function askedIn({ message, usage }: Extract<AgentEvent, { type: "message" }>): string | undefined {
  if (message.role !== "user" || usage !== undefined) return undefined;
  const texts = message.blocks.flatMap((block) => (block.type === "text" ? [block.text] : []));
  return texts.length < message.blocks.length || texts.length === 0 ? undefined : cutText(texts.join("\n"));
}

/** What an agent run spawned. */
export function childrenOf(agents: readonly AgentNode[], { agent, was }: AgentNode): readonly AgentNode[] {
  return agents.filter(({ parent }) => parent !== null && (parent === agent || was.includes(parent)));
}

/** Tokens and money of one agent run and of all that it spawned; each counts once, whatever a log says of parents. */
export function familyUsage(agents: readonly AgentNode[], agent: AgentNode): Usage {
  const family = new Set([agent]);
  for (const one of family) for (const child of childrenOf(agents, one)) family.add(child);
  return [...family].reduce((sum, { usage }) => addUsage(sum, usage), noUsage);
}
