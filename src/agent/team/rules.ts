import { isCyclic, obstacle, type TeamMessage, type TeamState, type TeamTask } from "../../model/team.ts";
import type { MemberRun } from "../agent-ports.ts";

/** A member, as far as it matters for who does what. */
interface Worker {
  readonly name: string;
  readonly isWorking: boolean;
  readonly mail: { readonly hasLetters: boolean; has(message: string): boolean };
}

/** Who begins with what. */
interface Beginning<T> {
  readonly teammate: T;
  readonly task: TeamTask | undefined;
}

/**
 * What is begun next: the first task, in the order they were added, that can be taken up, by its owner or else by the
 * first member that is free; when there is none, whoever is free and has a letter to read.
 */
export function nextWork<T extends Worker>(
  { tasks, members }: TeamState,
  teammates: readonly T[],
): Beginning<T> | undefined {
  const isFree = ({ isWorking, name }: Worker): boolean => !isWorking && members.get(name)?.state === "idle";
  for (const task of tasks.values()) {
    const isAssigned = task.status === "in_progress" && members.get(task.owner ?? "")?.state === "waiting";
    if (!isAssigned && obstacle(task, tasks) !== undefined) continue;
    const able = teammates.filter(({ name }) => task.owner === undefined || task.owner === name);
    const teammate = able.find((it) => isFree(it) || (isAssigned && !it.isWorking));
    if (teammate) return { teammate, task };
  }
  const called = teammates.find((teammate) => isFree(teammate) && teammate.mail.hasLetters);
  return called && { teammate: called, task: undefined };
}

/** The same in a replay: what began next then, once it can. Who takes up what is a matter of time otherwise. */
export function dueWork<T extends Worker>(
  { member, task: id, messages }: MemberRun,
  { tasks, members }: TeamState,
  teammates: readonly T[],
): Beginning<T> | undefined {
  const teammate = teammates.find(({ name }) => name === member);
  const state = members.get(member)?.state;
  if (teammate === undefined || teammate.isWorking) return undefined;
  if (id === undefined) {
    const isCalled = state === "idle" && messages.every((message) => teammate.mail.has(message));
    return isCalled ? { teammate, task: undefined } : undefined;
  }
  const task = tasks.get(id);
  if (task === undefined || (task.owner ?? member) !== member) return undefined;
  const isAssigned = task.status === "in_progress" && state === "waiting";
  const isOpen = state === "idle" && obstacle(task, tasks) === undefined;
  return isAssigned || isOpen ? { teammate, task } : undefined;
}

/** Why nothing goes on: every task that is left with what it waits for, and who waits for the lead. */
export function deadlockText({ tasks, members }: TeamState, waiters: readonly { readonly name: string }[]): string {
  const known = new Set(waiters.map(({ name }) => name));
  const left = [...tasks.values()].filter(
    ({ status, owner }) => status === "pending" || (status === "in_progress" && !known.has(owner ?? "")),
  );
  const reasons = left.map((task) => {
    const owner = members.get(task.owner ?? "");
    const idle = owner ? `its owner \`${owner.name}\` is ${owner.state}` : "no member is there to take it up";
    return `task ${task.id} (${task.subject}): ${task.status === "pending" ? (obstacle(task, tasks) ?? idle) : idle}`;
  });
  const waiting = waiters.map(({ name }) => `\`${name}\` waits for an answer to its plan`);
  return `nothing can go on: ${[...waiting, ...reasons].join("; ")}`;
}

/** Why a task cannot be as it is wanted; a sentence for a model. */
export function misfit(
  id: string,
  { owner, dependsOn }: { readonly owner?: string | undefined; readonly dependsOn: readonly string[] },
  { members, tasks }: TeamState,
): string | undefined {
  if (owner !== undefined && !members.has(owner))
    return `There is no member \`${owner}\`. There are: ${[...members.keys()].join(", ")}.`;
  const missing = dependsOn.find((other) => !tasks.has(other) && other !== id);
  if (missing !== undefined) return `${noTask(missing, { tasks })} Add what a task depends on before it.`;
  return isCyclic(id, dependsOn, tasks) ? `Task ${id} would come to depend on itself.` : undefined;
}

export function noTask(id: string, team: Pick<TeamState, "tasks"> | undefined): string {
  if (team === undefined) return "There is no team. Call TeamCreate first.";
  const ids = [...team.tasks.keys()];
  return `There is no task \`${id}\`. ${ids.length === 0 ? "There is none yet." : `There are: ${ids.join(", ")}.`}`;
}

/** Who gets a message. */
export function receiversOf(message: Omit<TeamMessage, "id">, team: TeamState): readonly string[] {
  const { to, kind } = message;
  const others = othersThan(message.from, team);
  return kind === "broadcast" || to === "all" ? others : others.filter((name) => name === to);
}

export function noReceiver({ from, to }: Pick<TeamMessage, "from" | "to">, team: TeamState): string {
  return `There is no \`${to}\` to write to. There are: ${othersThan(from, team).join(", ")}.`;
}

function othersThan(who: string, { members }: TeamState): string[] {
  return [...members.keys(), "lead"].filter((name) => name !== who);
}
