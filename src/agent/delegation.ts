import { defaultDepth } from "../model/defaults.ts";
import type { AgentRunIds } from "../model/ids.ts";
import type { Agent, Team as TeamPlan } from "../model/plan.ts";
import type { Budget, Tool } from "../model/ports.ts";
import type { TeamEvent } from "../model/team.ts";
import type { Assignment, Parent, Shared } from "./assignment.ts";
import { Children } from "./children.ts";
import type { AgentBody } from "./equipment.ts";
import { Mail } from "./mail.ts";
import type { Prepared } from "./prepared.ts";
import { Team } from "./team/team.ts";
import { leadTools, memberTools } from "./team/tools.ts";

/** Whom an agent run has below it, and the tools by which it deals with them. */
export interface Delegation {
  readonly children: Children;
  readonly team: Team | undefined;
  readonly tools: readonly Tool[];
}

/** What bounds an agent run, and all below it. */
export interface Bounds {
  readonly ids: AgentRunIds;
  readonly budget: Budget | undefined;
  /** Aborted as soon as the run is, also alone. */
  readonly self: AbortSignal;
  /** Aborted when all below the run is. */
  readonly below: AbortSignal;
  readonly stop: () => void;
  readonly tell: (event: TeamEvent) => void;
}

export function delegationOf(shared: Shared, assignment: Assignment, about: Prepared & Bounds): Delegation {
  const { attempt, parent, membership } = assignment;
  const { agent, ids, below, tell, recorded } = about;
  const depth = depthOf(agent, attempt.step.limits.depth, parent);
  const children = new Children({
    ...shared,
    ...about,
    attempt: { ...attempt, signal: below },
    lineage: { names: [...(parent?.names ?? []), agent.name], depth },
    level: (parent?.spawned.depth ?? 0) + 1,
    mail: membership?.mail ?? new Mail(),
    ...(parent && { adopt: parent.adopt }),
  });
  const plan = ledBy(about, shared, depth);
  if (plan === undefined)
    return { children, team: undefined, tools: [...children.tools, ...(membership?.tools ?? [])] };
  const { workspace } = attempt;
  const around = { ports: shared.ports, ids, agent, workspace, signal: below, tell, recorded, children };
  const team: Team = new Team({ ...around, plan, toolsOf: (member) => memberTools(team, member) });
  children.lead({ members: team.members, assign: (task, member) => team.tasks.assign(task, member) });
  return { children, team, tools: [...children.tools, ...leadTools(team), ...(membership?.tools ?? [])] };
}

/** A step's own team replaces its agent's. */
function teamOf(agent: Agent, body: AgentBody): TeamPlan | undefined {
  return body.team ?? agent.team;
}

/**
 * The team without those whom the rules let nobody spawn, by what the team calls them or by their agents. Undefined when
 * nobody is left, or no level for them.
 */
function ledBy({ agent, body, rights }: Prepared, { ports }: Shared, depth: number): TeamPlan | undefined {
  const plan = depth < 1 ? undefined : teamOf(agent, body);
  const isDenied = (name: string): boolean => rights?.reach("Task", name) === "deny";
  const nameOf = (key: string): string =>
    (Object.hasOwn(ports.agents, key) ? ports.agents[key]?.name : undefined) ?? key;
  const members = plan?.members.filter(({ name, key }) => !isDenied(name) && !isDenied(nameOf(key)));
  return plan && members && members.length > 0 ? { ...plan, members } : undefined;
}

/** Whether others may come to work below it. */
export function mayDelegate({ agent, body }: Pick<Prepared, "agent" | "body">): boolean {
  return teamOf(agent, body) !== undefined || (agent.subagents ?? []).length > 0;
}

/** What the step says goes before the agent; a child never has more levels below it than its parent leaves. */
export function depthOf(agent: Agent, ofStep: number | undefined, parent: Pick<Parent, "depth"> | undefined): number {
  if (parent) return Math.min(parent.depth - 1, agent.limits.depth ?? Infinity);
  return ofStep ?? agent.limits.depth ?? defaultDepth;
}
