import { defaultDepth } from "../../model/defaults.ts";
import type { Span } from "../../model/diagnostic.ts";
import { deepestSpawned } from "../../model/spawning.ts";
import type { MemberLink } from "../link-agents.ts";
import { stepsOf } from "../linked.ts";
import type { AgentShape, StepShape, Word } from "../shape.ts";
import type { Check, CheckSource } from "./check.ts";

/** A member that leads a team itself has room for it: each team takes one of the levels below the agent of a step. */
export const checkTeamLevels: Check = (source) => {
  const { workflow } = source;
  const told = new Set<Word>();
  for (const { step } of stepsOf(workflow.scope)) {
    const agent = workflow.agents.get(step);
    const undo = workflow.undoAgents.get(step);
    if (agent) {
      const members = step.team ? (workflow.teams.get(step) ?? []) : membersOf(agent, source);
      checkBelow(members, { above: [agent], bound: ofStep(step, agent), told }, source);
    }
    if (undo) checkBelow(membersOf(undo, source), { above: [undo], bound: ofAgent(undo, 0), told }, source);
  }
};

/** Whose word bounds the levels, and how many levels below the step that one works. */
interface Bound {
  readonly depth: number;
  readonly level: number;
  readonly who: string;
  readonly at: Span;
}

interface Way {
  /** The leads, from the agent of the step on. */
  readonly above: readonly AgentShape[];
  readonly bound: Bound;
  /** Those told already: several steps may have the same lead. */
  readonly told: Set<Word>;
}

function checkBelow(members: readonly MemberLink[], { above, bound, told }: Way, source: CheckSource): void {
  const level = above.length;
  for (const { shape, member } of members) {
    // A team in itself is refused as that.
    if (shape.team === undefined || above.includes(shape) || told.has(member.agent)) continue;
    const own = shape.agent.limits.depth === undefined ? undefined : ofAgent(shape, level);
    const next = own && own.level + own.depth < bound.level + bound.depth ? own : bound;
    if (next.level + next.depth > level) {
      checkBelow(membersOf(shape, source), { above: [...above, shape], bound: next, told }, source);
      continue;
    }
    told.add(member.agent);
    const needed = level + 1 - next.level;
    const message = `\`${member.name.text}\` leads a team: its members are level ${needed} below ${next.who}, which may have ${next.depth} (\`limits.depth\`)`;
    source.report("FLOW6004", member.agent.at, message, {
      related: [{ message: "its levels are counted from here", at: next.at }],
      suggestion:
        needed > deepestSpawned
          ? `teams in teams go ${deepestSpawned} levels deep at most: give the work to one further up`
          : `write \`limits: { depth: ${needed} }\` there, or name an agent without a \`team\``,
    });
  }
}

function membersOf(agent: AgentShape, { workflow }: CheckSource): readonly MemberLink[] {
  return workflow.crews.get(agent)?.members ?? [];
}

/** What the step says goes before its agent; a team of its own is bounded at the step in any case. */
function ofStep({ id, idAt: at, step, team }: StepShape, agent: AgentShape): Bound {
  const { depth } = step.limits;
  if (depth === undefined && (team === undefined || agent.agent.limits.depth !== undefined)) return ofAgent(agent, 0);
  return { depth: depth ?? defaultDepth, level: 0, who: `the step \`${id}\``, at };
}

function ofAgent({ agent, node }: AgentShape, level: number): Bound {
  const { name, limits } = agent;
  return { depth: limits.depth ?? defaultDepth, level, who: `the agent \`${name}\``, at: node.at };
}
