import { unreachable } from "../model/result.ts";
import type { TeamEvent } from "../model/team.ts";
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
      return [`member ${event.member} removed: ${oneLine(event.reason)}`];
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
