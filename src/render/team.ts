import { unreachable } from "../model/result.ts";
import { obstacle, type TeamEvent, type TeamMember, type TeamState, type TeamTask } from "../model/team.ts";
import { cut } from "./display.ts";
import { oneLine } from "./words.ts";

/** What is said of a team while it works; nothing of what only who looks closely wants to know. */
export function teamText(event: TeamEvent, verbose: number): string[] {
  switch (event.type) {
    case "team.started":
      return [`team ${oneLine(event.name)}: ${event.parallel} at a time`];
    case "team.member.added":
      return verbose > 0 ? [`member ${event.member.name} (${event.member.agent})`] : [];
    case "team.member.updated": {
      const { state, task } = event.change;
      if (verbose < 1 || state === undefined) return [];
      return [`member ${event.member} ${state}${typeof task === "string" ? ` task=${task}` : ""}`];
    }
    case "team.member.removed":
      return [`member ${event.member} has stopped: ${oneLine(event.reason)}`];
    case "team.task.added":
      return [`task ${event.task.id} added: ${oneLine(event.task.subject)}`];
    case "team.task.updated": {
      const { status, owner, report } = event.change;
      if (status === undefined) return verbose > 0 ? [`task ${event.task} changed by ${event.by}`] : [];
      const who = typeof owner === "string" ? ` ${owner}` : "";
      const why = status === "failed" && report !== undefined ? `: ${oneLine(report).slice(0, 120)}` : "";
      return [`task ${event.task} ${status}${who}${why}`];
    }
    case "team.message": {
      const { from, to, kind, content } = event.message;
      return verbose > 0 ? [`${kind} ${from} -> ${to}: ${oneLine(content).slice(0, 120)}`] : [];
    }
    case "team.woken":
      return verbose > 0 ? [`lead woken (${event.count})`] : [];
    case "team.finished":
      return [`team ended (${event.end}): ${oneLine(event.reason)}`];
    default:
      return unreachable(event);
  }
}

const longestReason = 300;
const longestReport = 120;
/** Of a longer list those that are completed are counted and not shown. */
const shownWhole = 20;

/** A team as data. */
export interface TeamView extends Omit<TeamState, "members" | "tasks"> {
  readonly members: readonly TeamMember[];
  readonly tasks: readonly TeamTask[];
}

export function teamView(team: TeamState): TeamView {
  // Nobody says of each that it has stopped when the whole team has.
  const isOver = ({ state }: TeamMember): boolean => team.end !== undefined && state !== "idle";
  const members = [...team.members.values()].map(({ task, ...member }): TeamMember =>
    isOver(member) ? { ...member, state: "stopped" } : { ...member, ...(task !== undefined && { task }) },
  );
  return { ...team, members, tasks: [...team.tasks.values()] };
}

/** A team in lines: how far it has come and why it ended, its members, its tasks. */
export function teamRemarks({ name, members, tasks: all, end, wakes }: TeamView): string[] {
  const tasks = new Map(all.map((task) => [task.id, task]));
  const done = all.filter(({ status }) => status === "completed").length;
  const woken = wakes === 0 ? "" : `, its lead woken ${wakes === 1 ? "once" : `${wakes} times`}`;
  const why = end === undefined ? "" : `; ended (${end.end}): ${cut(oneLine(end.reason), longestReason)}`;
  const shown = all.length > shownWhole ? all.filter(({ status }) => status !== "completed") : all;
  return [
    `team ${oneLine(name)}: ${done} of ${all.length} ${all.length === 1 ? "task" : "tasks"} completed${woken}${why}`,
    `members: ${members.map(memberText).join(", ")}`,
    ...shown.map((task) => taskText(task, tasks)),
  ];
}

function memberText({ name, agent, state, task }: TeamMember): string {
  const who = name === agent ? name : `${name} (${agent})`;
  return `${who} ${state}${task === undefined ? "" : ` on task ${task}`}`;
}

/** `task 3 compare: pending, after 1, 2: it depends on task 2, which is failed`. */
function taskText(task: TeamTask, tasks: TeamState["tasks"]): string {
  const { id, subject, status, owner, dependsOn, report } = task;
  const after = dependsOn.length === 0 ? "" : `, after ${dependsOn.join(", ")}`;
  const said = status === "failed" ? report : status === "pending" ? obstacle(task, tasks) : undefined;
  const why = said === undefined || said === "" ? "" : `: ${cut(oneLine(said), longestReport)}`;
  return `task ${id} ${oneLine(subject)}: ${status}${owner === undefined ? "" : `, ${owner}`}${after}${why}`;
}
