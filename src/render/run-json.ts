import type { Json } from "../model/json.ts";
import { runLimits, stepLimits } from "./budget.ts";
import { isOver, runState, type RunView, stateOf } from "./run-state.ts";
import { type AgentNode, childrenOf, familyUsage } from "./agent-tree.ts";
import { type StepNode, totalUsage } from "./run-tree.ts";
import { teamView } from "./team.ts";
import type { Explanation } from "./why.ts";

/** The tree of a run as data: what {@link runText} draws, with nothing left out. Durations are milliseconds. */
export function runJson(view: RunView): Json {
  const { start, end, started, root, resumes } = view.tree;
  return plain({
    schemaVersion: 1,
    run: start?.run,
    workflow: start?.workflow,
    name: start?.name,
    state: runState(view).text,
    outcome: end?.outcome,
    exitCode: end?.exitCode,
    started: stamp(started),
    duration: end?.duration,
    error: end?.error,
    usage: end?.usage ?? totalUsage(root),
    budget: someOf(runLimits(view.tree)),
    resumed: resumes.length,
    steps: root.children.map((node) => stepJson(view, node)),
  });
}

/** An explanation as data. */
export function whyJson(run: string | undefined, why: Explanation): Json {
  return plain({ schemaVersion: 1, run, ...why });
}

function stepJson(view: RunView, node: StepNode): unknown {
  const {
    path,
    kind,
    conclusion,
    started,
    duration,
    attempts,
    agents,
    earlier,
    reason,
    error,
    undone,
    worktrees,
    reused,
    cache,
    asked,
    answer,
    again,
    children,
  } = node;
  return {
    path,
    kind,
    state: stateOf(node, isOver(view)).text,
    conclusion,
    started: stamp(started),
    duration,
    usage: totalUsage(node),
    budget: someOf(stepLimits(view.tree, node)),
    attempts,
    agents: agents.map((agent) => agentJson(view, agents, agent)),
    earlierAgents: someOf(earlier.map((agent) => agentJson(view, earlier, agent))),
    reason,
    error,
    undone,
    worktrees: someOf(worktrees),
    reused,
    cache,
    asked,
    answer,
    ...(again > 0 && { startedAgain: again }),
    inner: children.map((child) => stepJson(view, child)),
  };
}

/** Nothing is said of a list without anything in it. */
function someOf<T>(list: readonly T[]): readonly T[] | undefined {
  return list.length === 0 ? undefined : list;
}

function agentJson(view: RunView, agents: readonly AgentNode[], node: AgentNode): unknown {
  const { started, spawned, duration, team, earlierTeams, was: _, ...agent } = node;
  const { outcome, reason } = agent;
  return {
    ...agent,
    spawned,
    root: rootOf(agents, node),
    depth: spawned?.depth ?? 0,
    status: outcome === undefined ? (isOver(view) ? "interrupted" : "running") : endWord(outcome),
    ...(outcome !== undefined && outcome !== "done" && { error: reason }),
    total: familyUsage(agents, node),
    started: stamp(started),
    duration,
    ended: duration === undefined ? undefined : stamp(started + duration),
    team: team && teamView(team),
    earlierTeams: someOf(earlierTeams.map(teamView)),
  };
}

function endWord(outcome: NonNullable<AgentNode["outcome"]>): string {
  if (outcome === "done") return "completed";
  return outcome === "cancelled" ? outcome : "failed";
}

/** The agent of the step, above all that it spawned. */
function rootOf(agents: readonly AgentNode[], node: AgentNode): string {
  const seen = new Set([node]);
  let top = node;
  for (const below of seen) {
    top = below;
    const above = agents.find((other) => childrenOf(agents, other).includes(below));
    if (above) seen.add(above);
  }
  return top.parent ?? top.agent;
}

function stamp(time: number | undefined): string | undefined {
  return time === undefined || Number.isNaN(time) ? undefined : new Date(time).toISOString();
}

/** Without the fields that are undefined. */
function plain(value: object): Json {
  return JSON.parse(JSON.stringify(value)) as Json;
}
