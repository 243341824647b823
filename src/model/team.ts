import type { AgentRunIds } from "./ids.ts";

/** A piece of a team's work. */
export interface TeamTask {
  /** `1`, `2`, … in the order they were added. */
  readonly id: string;
  readonly subject: string;
  readonly description: string;
  /** What it is called while somebody works on it. */
  readonly activeForm?: string;
  /** `failed`: whoever worked on it came to no end; it waits for the lead's word. */
  readonly status: TaskStatus;
  /** The member whose it is. */
  readonly owner?: string;
  /** Tasks that have to be completed before. */
  readonly dependsOn: readonly string[];
  /** What its owner says of it. */
  readonly report?: string;
}

export const taskStatuses = ["pending", "in_progress", "completed", "failed"] as const;
export type TaskStatus = (typeof taskStatuses)[number];

/** `idle`: it has nothing to do; `waiting`: for a place; `stopped`: it gets nothing any more. */
export type MemberState = "idle" | "waiting" | "working" | "stopped";

/** What a member is, but for what it does. */
export interface MemberTerms {
  readonly name: string;
  /** Name of its agent. */
  readonly agent: string;
  /** `read`: it changes nothing; `edit`: it changes files and runs no commands. Absent: what its agent may. */
  readonly mode?: "read" | "edit";
  /** The only places where it may change files, from the workspace. */
  readonly paths?: readonly string[];
  /** It changes nothing before the lead has approved its plan. */
  readonly plan?: true;
  /** It works in a git worktree of its own. */
  readonly isolation?: "worktree";
}

export interface TeamMember extends MemberTerms {
  readonly state: MemberState;
  /** The task it works on. */
  readonly task?: string;
  /** Its agent run, of now or the last. */
  readonly agentRun?: string;
  /** The folder it works in, where that is its own. */
  readonly worktree?: string;
  /** The lead has approved what it plans for its task. */
  readonly approved?: boolean;
}

export const messageKinds = [
  "message",
  "broadcast",
  "shutdown_request",
  "shutdown_response",
  "plan_request",
  "plan_response",
] as const;
export type TeamMessageKind = (typeof messageKinds)[number];

export interface TeamMessage {
  /** `message:SENDER:1`, `message:SENDER:2`, …; in the second team of a lead `message:2.SENDER:1`. */
  readonly id: string;
  readonly from: string;
  /** A member, the lead (`lead`), or `all`. */
  readonly to: string;
  readonly kind: TeamMessageKind;
  readonly content: string;
  readonly summary?: string;
  /** Of a response: yes or no. */
  readonly approve?: boolean;
}

/** Why a team came to its end. */
export const teamEnds = ["done", "deleted", "deadlock", "wakes", "cancelled", "failed"] as const;
export type TeamEnd = (typeof teamEnds)[number];

/** `agent` is the lead's run. */
export type TeamEvent = AgentRunIds &
  (
    | { readonly type: "team.started"; readonly name: string; readonly description: string; readonly parallel: number }
    | { readonly type: "team.member.added"; readonly member: MemberTerms }
    /** What changed of it. */
    | { readonly type: "team.member.updated"; readonly member: string; readonly change: MemberChange }
    | { readonly type: "team.member.removed"; readonly member: string; readonly reason: string }
    | { readonly type: "team.task.added"; readonly task: TeamTask }
    /** What changed of it, by whose doing: a member, `lead`, or `team`. */
    | { readonly type: "team.task.updated"; readonly task: string; readonly by: string; readonly change: TaskChange }
    | { readonly type: "team.message"; readonly message: TeamMessage }
    /** The lead, which had answered, was given what came in meanwhile; `count` is from 1. */
    | { readonly type: "team.woken"; readonly count: number }
    | { readonly type: "team.finished"; readonly end: TeamEnd; readonly reason: string }
  );

/** Null takes away. */
export interface MemberChange {
  readonly state?: MemberState;
  readonly task?: string | null;
  readonly agentRun?: string;
  readonly worktree?: string | null;
  readonly approved?: boolean;
}
export interface TaskChange {
  readonly status?: TaskStatus;
  readonly owner?: string | null;
  readonly report?: string;
  readonly subject?: string;
  readonly description?: string;
  readonly activeForm?: string;
  readonly dependsOn?: readonly string[];
}

/** A team as its events tell it: the same live and after a resume. */
export interface TeamState {
  /** Which team of the lead's it is, from 1. */
  readonly round: number;
  readonly name: string;
  readonly description: string;
  readonly parallel: number;
  readonly members: ReadonlyMap<string, TeamMember>;
  readonly tasks: ReadonlyMap<string, TeamTask>;
  /** In the order they were sent. */
  readonly messages: readonly TeamMessage[];
  readonly wakes: number;
  readonly end?: { readonly end: TeamEnd; readonly reason: string };
}

/** The team after an event. Undefined: there is none yet. */
export function foldTeam(state: TeamState | undefined, event: TeamEvent): TeamState | undefined {
  if (event.type === "team.started") {
    const { name, description, parallel } = event;
    return {
      round: (state?.round ?? 0) + 1,
      name,
      description,
      parallel,
      members: new Map(),
      tasks: new Map(),
      messages: [],
      wakes: state?.wakes ?? 0,
    };
  }
  if (state === undefined) return undefined;
  if (event.type === "team.finished") return { ...state, end: { end: event.end, reason: event.reason } };
  // After an end its lead goes on with it: the run was resumed.
  const { end: _, ...open } = state;
  return changedBy(open, event);
}

function changedBy(state: TeamState, event: Exclude<TeamEvent, { type: "team.started" | "team.finished" }>): TeamState {
  switch (event.type) {
    case "team.member.added":
      return { ...state, members: withEntry(state.members, event.member.name, { ...event.member, state: "idle" }) };
    case "team.member.updated":
      return { ...state, members: patched(state.members, event.member, event.change) };
    case "team.member.removed":
      return { ...state, members: patched(state.members, event.member, { state: "stopped" }) };
    case "team.task.added":
      return { ...state, tasks: withEntry(state.tasks, event.task.id, event.task) };
    case "team.task.updated":
      return { ...state, tasks: patched(state.tasks, event.task, event.change) };
    case "team.message":
      return { ...state, messages: [...state.messages, event.message] };
    case "team.woken":
      return { ...state, wakes: event.count };
  }
}

function withEntry<T>(map: ReadonlyMap<string, T>, key: string, value: T): ReadonlyMap<string, T> {
  return new Map(map).set(key, value);
}

/** An entry with what has changed of it; null takes away. */
function patched<T extends object>(map: ReadonlyMap<string, T>, key: string, change: object): ReadonlyMap<string, T> {
  const value = map.get(key);
  if (value === undefined) return map;
  const entries = Object.entries({ ...value, ...change }).filter(([, it]) => it !== null);
  return withEntry(map, key, Object.fromEntries(entries) as T);
}

export function isOfTeam<E extends { readonly type: string }>(event: E): event is E & TeamEvent {
  return event.type.startsWith("team.");
}

/** What tells a task or a message of this team from those of teams the lead had before. */
export function inTeam({ round }: Pick<TeamState, "round">, id: string): string {
  return round === 1 ? id : `${round}.${id}`;
}

/** What keeps a task from being taken up, in one sentence; undefined when it may be. */
export function obstacle({ dependsOn, status }: TeamTask, tasks: TeamState["tasks"]): string | undefined {
  if (status !== "pending") return `it is ${status}`;
  const open = dependsOn.find((id) => tasks.get(id)?.status !== "completed");
  if (open === undefined) return undefined;
  const other = tasks.get(open);
  return other
    ? `it depends on task ${open}, which is ${other.status}`
    : `it depends on task ${open}, which does not exist`;
}

/** Whether `id` would come to depend on itself. */
export function isCyclic(id: string, dependsOn: readonly string[], tasks: TeamState["tasks"]): boolean {
  const seen = new Set<string>();
  const queue = [...dependsOn];
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    if (next === id) return true;
    if (seen.has(next)) continue;
    seen.add(next);
    queue.push(...(tasks.get(next)?.dependsOn ?? []));
  }
  return false;
}
