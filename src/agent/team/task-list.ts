import { err, ok, type Result } from "../../model/result.ts";
import { obstacle, type TaskChange, type TeamTask } from "../../model/team.ts";
import type { TeamRecord } from "./record.ts";
import { misfit, noTask } from "./rules.ts";
import type { Claim, Teammate } from "./teammate.ts";

export interface TaskListSource {
  readonly record: TeamRecord;
  /** Id of the lead's agent run. */
  readonly lead: string;
  readonly teammates: ReadonlyMap<string, Teammate>;
  /** Why a task that `member` says it has completed in `agentRun` has not been: a hook said no. */
  readonly refusal: (task: TeamTask, member: string, agentRun: string) => Promise<string | undefined>;
  /** Somebody may have something to do now. */
  readonly onChange: () => void;
}

/** What is to be done, and who may change what of it. Errors are sentences for the model that asked. */
export class TaskList {
  readonly #source: TaskListSource;

  constructor(source: TaskListSource) {
    this.#source = source;
  }

  add(
    task: Pick<TeamTask, "subject" | "description" | "activeForm" | "owner" | "dependsOn">,
  ): Result<TeamTask, string> {
    const { record, onChange } = this.#source;
    const { state } = record;
    if (state === undefined) return err("There is no team. Call TeamCreate first.");
    const id = String(state.tasks.size + 1);
    const problem = misfit(id, task, state);
    if (problem !== undefined) return err(problem);
    const added: TeamTask = { id, status: "pending", ...task };
    record.tell({ type: "team.task.added", task: added });
    onChange();
    return ok(record.last.tasks.get(id) ?? added);
  }

  /** Changes a task by the word of the lead. */
  async change(id: string, change: TaskChange): Promise<Result<TeamTask, string>> {
    const { record, lead, refusal, onChange } = this.#source;
    const task = record.state?.tasks.get(id);
    if (task === undefined) return err(noTask(id, record.state));
    const { dependsOn } = { ...task, ...change };
    const problem =
      notToChange(task, change) ?? misfit(id, { owner: change.owner ?? undefined, dependsOn }, record.last);
    if (problem !== undefined) return err(problem);
    if (change.status === "completed") {
      const no = await refusal(task, "lead", lead);
      if (no !== undefined) return err(no);
      // Hooks take their time, and a member may have taken it up meanwhile.
      if (record.state?.tasks.get(id)?.status !== task.status)
        return err(`Task ${id} has changed meanwhile; look at it with TaskGet.`);
    }
    const freed = change.status === "pending" && change.owner === undefined ? { owner: null } : {};
    record.tell({ type: "team.task.updated", task: id, by: "lead", change: { ...freed, ...change } });
    onChange();
    return ok(record.last.tasks.get(id) ?? task);
  }

  /** What a member says of its task. It counts when the member's run has ended, and its work is where others find it. */
  async report(member: string, id: string, claim: Claim): Promise<Result<string, string>> {
    const { record, teammates, refusal } = this.#source;
    const teammate = teammates.get(member);
    const task = record.state?.tasks.get(id);
    if (teammate === undefined || task === undefined) return err(noTask(id, record.state));
    if (task.owner !== member || task.status !== "in_progress") return err(`Task ${id} is not yours.`);
    if (claim.status === "completed") {
      const no = await refusal(task, member, teammate.agentRun);
      if (no !== undefined) return err(no);
      if (record.state === undefined) return err("There is no team.");
    }
    teammate.claim(claim);
    return ok(`Noted. Your work on task ${id} ends with this turn.`);
  }

  /** Gives a task to a member by the word of the lead. */
  assign(id: string, member: string): Result<string, string> {
    const { record, teammates, onChange } = this.#source;
    const { state } = record;
    const task = state?.tasks.get(id);
    if (state === undefined || task === undefined) return err(noTask(id, state));
    if (!teammates.has(member)) return err(`There is no member \`${member}\`.`);
    const no = obstacle(task, state.tasks);
    if (no !== undefined) return err(`Task ${id} cannot be taken up: ${no}.`);
    const { state: is } = state.members.get(member) ?? {};
    if (is !== "idle") return err(`The member \`${member}\` is ${is ?? "gone"}.`);
    record.tell({ type: "team.task.updated", task: id, by: "lead", change: { status: "in_progress", owner: member } });
    record.tell({ type: "team.member.updated", member, change: { state: "waiting", task: id } });
    onChange();
    return ok(`Task ${id} is ${member}'s now. Its report comes as a message.`);
  }
}

/** What of a task is not the lead's to change, as it stands. */
function notToChange({ id, status }: TeamTask, change: TaskChange): string | undefined {
  const isOpen = status === "pending" || status === "failed";
  if (!isOpen && change.status !== undefined) return `Task ${id} is ${status}; its status is not yours to change now.`;
  if (change.status === "in_progress")
    return `Task ${id} is taken up by a member; give it an \`owner\`, or leave it to whoever is free.`;
  return isOpen
    ? undefined
    : `Task ${id} is ${status}: whoever works on it has it as it was. Tell them by SendMessage.`;
}
