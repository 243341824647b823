import { unreachable } from "../../model/result.ts";
import type { TeamMessage, TeamState, TeamTask } from "../../model/team.ts";

/** What a member is told of its team, behind its own instructions. */
export function memberText(
  name: string,
  { name: team, description, members }: TeamState,
  { lead, folder, leads }: { readonly lead: string; readonly folder: string | undefined; readonly leads: boolean },
): string {
  const terms = members.get(name);
  const others = [...members.values()].filter((member) => member.name !== name);
  const lines = [
    `You are \`${name}\`, a member of the team \`${team}\`${description === "" ? "" : `: ${description}`}. \`lead\` (${lead}) leads it.`,
    others.length === 0 ? "" : `The others: ${others.map((it) => `\`${it.name}\` (${it.agent})`).join(", ")}.`,
    folder === undefined
      ? "All of you work in the same folder: change only what your task is about."
      : "You work in a folder of your own; what you change reaches the others when your task is completed.",
    terms?.paths ? `You may change files only in: ${terms.paths.join(", ")}.` : "",
    terms?.mode === "read" ? "You change nothing." : "",
    terms?.plan === true
      ? "Before you change anything, send `lead` your plan with SendMessage (kind `plan_request`), and end your turn; the answer comes as a message."
      : "",
    leads
      ? "You lead a team of your own, and the tools for teams are for that one. When your task is done, answer with all that the others need to know: only that is read."
      : "When your task is done, call TaskUpdate with its id, `status: completed` and a `report` that says all the others need to know: only that report is read. If it cannot be done, give `status: failed` and why. TaskList and TaskGet show the team's tasks; SendMessage writes to `lead`, to another member, or to `all`.",
  ];
  return lines.filter((line) => line !== "").join("\n");
}

/** A task as its owner is given it, with what it builds on. */
export function taskText({ id, subject, description, dependsOn }: TeamTask, { tasks }: TeamState): string {
  const before = dependsOn.flatMap((other) => {
    const task = tasks.get(other);
    return task ? [`Task ${other}, ${task.subject}:\n${task.report ?? ""}`] : [];
  });
  const parts = [`Your task is ${id}: ${subject}`, description];
  if (before.length > 0) parts.push(`What it builds on:\n\n${before.join("\n\n")}`);
  return parts.filter((part) => part !== "").join("\n\n");
}

/** What the lead is told of a task that has come to its end. */
export function reportText(
  { id, subject, status }: Pick<TeamTask, "id" | "subject" | "status">,
  { name, report }: { readonly name: string; readonly report: string },
): string {
  const end = status === "pending" ? "not completed" : status;
  return `[Report of ${name} on task ${id}, ${subject}: ${end}]\n${report}`;
}

export function messageText(message: TeamMessage): string {
  return `[${kindText(message)} from ${message.from}]\n${message.content}`;
}

function kindText({ kind, approve }: TeamMessage): string {
  switch (kind) {
    case "message":
      return "Message";
    case "broadcast":
      return "Message to all";
    case "shutdown_request":
      return "Request to stop";
    case "shutdown_response":
      return approve === false ? "Will not stop" : "Will stop";
    case "plan_request":
      return "Plan to approve";
    case "plan_response":
      return approve === true ? "Plan approved, you may begin" : "Plan not approved";
    default:
      return unreachable(kind);
  }
}
