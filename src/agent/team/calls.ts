import { inTeam, type TeamState } from "../../model/team.ts";

/** What brings about the run of a member, in the place of the tool call that brings about a sub-agent. */

/** A task of the team. */
export function taskCall(team: Pick<TeamState, "round">, task: string): string {
  return `task:${inTeam(team, task)}`;
}

/** Messages to a member that is free, by their ids. */
export function talkCall(member: string, messages: readonly string[]): string {
  return `talk:${member}:${messages.join(",")}`;
}

export function isTaskCall(call: string): boolean {
  return call.startsWith("task:");
}

export function isTeamCall(call: string): boolean {
  return isTaskCall(call) || call.startsWith("talk:");
}

/** The ids of the messages that a run of a member began with; none of one that has a task. */
export function messagesOf(call: string): readonly string[] {
  const [, ids] = /^talk:[^:]*:(.+)$/.exec(call) ?? [];
  return ids?.split(",") ?? [];
}
