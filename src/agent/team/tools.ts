import { type JsonObject, own } from "../../model/json.ts";
import type { Tool, ToolOutput } from "../../model/ports.ts";
import { err, ok, type Result } from "../../model/result.ts";
import { messageKinds, type TaskChange, taskStatuses, type TeamMessageKind, type TeamTask } from "../../model/team.ts";
import type { Team } from "./team.ts";

/** What the lead of a team calls. */
export function leadTools(team: Team): readonly Tool[] {
  return [createTool(team), deleteTool(team), addTool(team), ...commonTools(team, "lead")];
}

/** What a member calls. */
export function memberTools(team: Team, member: string): readonly Tool[] {
  return commonTools(team, member);
}

function commonTools(team: Team, who: string): readonly Tool[] {
  return [updateTool(team, who), listTool(team), getTool(team), statusTool(team), messageTool(team, who)];
}

type Answer = Result<string, string> | Promise<Result<string, string>>;

interface Definition {
  readonly name: string;
  readonly description: string;
  readonly properties: JsonObject;
  readonly required?: readonly string[];
  readonly readOnly?: boolean;
  readonly told?: true;
  readonly answer: (args: Arguments) => Answer;
}

/** The team's own business: no rule speaks of it. */
function tool({ name, description, properties, required = [], readOnly = false, told, answer }: Definition): Tool {
  return {
    name,
    description,
    parameters: { type: "object", required: [...required], additionalProperties: false, properties },
    readOnly,
    unjudged: true,
    ...(told && { told }),
    run: async (args): Promise<Result<ToolOutput, string>> => {
      const said = await answer(new Arguments(args));
      return said.ok ? ok({ blocks: [{ type: "text", text: said.value }] }) : said;
    },
  };
}

/** Arguments that fit their schema. */
class Arguments {
  readonly #args: JsonObject;

  constructor(args: JsonObject) {
    this.#args = args;
  }

  text(key: string): string | undefined {
    const value = own(this.#args, key);
    return typeof value === "string" ? value : undefined;
  }

  texts(key: string): readonly string[] | undefined {
    const value = own(this.#args, key);
    return Array.isArray(value) ? value.filter((item) => typeof item === "string") : undefined;
  }

  flag(key: string): boolean | undefined {
    const value = own(this.#args, key);
    return typeof value === "boolean" ? value : undefined;
  }
}

const id = { type: "string", description: "The id of the task." };
const dependsOn = {
  type: "array",
  items: { type: "string" },
  description: "Ids of tasks that have to be completed before.",
};
const subject = { type: "string", minLength: 1, maxLength: 200, description: "What it is about, in a few words." };

function createTool(team: Team): Tool {
  return tool({
    name: "TeamCreate",
    told: true,
    description: "Begins the work of your team. Its members wait for tasks.",
    required: ["name"],
    properties: {
      name: { type: "string", minLength: 1, maxLength: 100, description: "What the team is called." },
      description: { type: "string", description: "What it is there for; every member is told." },
    },
    answer: async (args) => {
      const made = await team.create(args.text("name") ?? "", args.text("description") ?? "");
      if (!made.ok) return made;
      const members = [...made.value.members.values()].map(({ name, agent }) => `${name} (${agent})`);
      return ok(`The team is there. Members: ${members.join(", ")}; ${made.value.parallel} work at the same time.`);
    },
  });
}

function deleteTool(team: Team): Tool {
  return tool({
    name: "TeamDelete",
    description: "Ends the team at once. Whoever works is stopped, and what is not completed is lost.",
    properties: {},
    answer: () => team.delete(),
  });
}

function addTool(team: Team): Tool {
  return tool({
    name: "TaskCreate",
    told: true,
    description:
      "Adds a task to the team's list. A free member takes it up by itself as soon as what it depends on is completed; its report comes to you as a message. Answer when nothing is left to do but to wait.",
    required: ["subject", "description"],
    properties: {
      subject,
      description: { type: "string", description: "All that whoever works on it needs to know." },
      activeForm: { type: "string", description: "What it is called while somebody works on it." },
      dependsOn,
      owner: { type: "string", description: "The member it is for; by default whoever is free." },
    },
    answer: (args) => {
      const [active, owner] = [args.text("activeForm"), args.text("owner")];
      const added = team.tasks.add({
        subject: args.text("subject") ?? "",
        description: args.text("description") ?? "",
        dependsOn: args.texts("dependsOn") ?? [],
        ...(active !== undefined && { activeForm: active }),
        ...(owner !== undefined && { owner }),
      });
      return added.ok ? ok(`Added: ${titleOf(added.value)}`) : added;
    },
  });
}

function updateTool(team: Team, who: string): Tool {
  const isLead = who === "lead";
  return tool({
    name: "TaskUpdate",
    description: isLead
      ? "Changes a task that nobody works on: `status: pending` lets a failed one be tried again."
      : "Says what has become of your task. Your work on it ends with the turn.",
    required: isLead ? ["taskId"] : ["taskId", "status", "report"],
    properties: {
      taskId: id,
      status: { type: "string", enum: isLead ? [...taskStatuses] : ["completed", "failed"] },
      report: { type: "string", description: "What the others need to know of the work and its result." },
      ...(isLead && {
        owner: { type: "string", description: "The member it is for." },
        subject,
        description: { type: "string" },
        activeForm: { type: "string" },
        dependsOn,
      }),
    },
    answer: async (args) => {
      const [task, status, report] = [args.text("taskId") ?? "", args.text("status"), args.text("report")];
      if (!isLead)
        return team.tasks.report(who, task, {
          status: status === "failed" ? "failed" : "completed",
          report: report ?? "",
        });
      const changed = await team.tasks.change(task, changeOf(args));
      return changed.ok ? ok(`Changed: ${titleOf(changed.value)}`) : changed;
    },
  });
}

function changeOf(args: Arguments): TaskChange {
  const status = taskStatuses.find((it) => it === args.text("status"));
  const texts = (["owner", "report", "subject", "description", "activeForm"] as const).flatMap((key) => {
    const value = args.text(key);
    return value === undefined ? [] : [[key, value] as const];
  });
  const before = args.texts("dependsOn");
  return { ...Object.fromEntries(texts), ...(status && { status }), ...(before && { dependsOn: before }) };
}

function listTool(team: Team): Tool {
  return tool({
    name: "TaskList",
    description: "Shows the team's tasks, one a line.",
    properties: {},
    readOnly: true,
    answer: () => {
      const { state } = team;
      if (state === undefined) return err("There is no team.");
      return ok([...state.tasks.values()].map(line).join("\n") || "There are no tasks.");
    },
  });
}

function getTool(team: Team): Tool {
  return tool({
    name: "TaskGet",
    description: "Shows one task with its description and its report.",
    required: ["taskId"],
    properties: { taskId: id },
    readOnly: true,
    answer: (args) => {
      const task = team.state?.tasks.get(args.text("taskId") ?? "");
      if (task === undefined) return err(`There is no task \`${args.text("taskId") ?? ""}\`.`);
      const report = task.report === undefined ? "" : `\n\nReport:\n${task.report}`;
      return ok(`${line(task)}\n\n${task.description}${report}`);
    },
  });
}

function statusTool(team: Team): Tool {
  return tool({
    name: "TeamStatus",
    description: "Shows the members of the team, what each does, and how far its tasks have come.",
    properties: {},
    readOnly: true,
    answer: () => {
      const { state } = team;
      if (state === undefined) return err("There is no team.");
      const members = [...state.members.values()].map(
        ({ name, agent, state: doing, task }) =>
          `- ${name} (${agent}): ${doing}${task === undefined ? "" : ` on task ${task}`}`,
      );
      const counts = taskStatuses.map((status) => `${countOf(state.tasks.values(), status)} ${status}`);
      return ok(`${state.name}\n${members.join("\n")}\nTasks: ${counts.join(", ")}`);
    },
  });
}

function countOf(tasks: Iterable<TeamTask>, status: string): number {
  return [...tasks].filter((task) => task.status === status).length;
}

function messageTool(team: Team, who: string): Tool {
  const kinds = messageKinds.filter((kind) => isKindOf(kind, who === "lead"));
  return tool({
    name: "SendMessage",
    description:
      "Writes to somebody in the team; it is read before his next turn. A `shutdown_request` asks a member to stop after its turn.",
    required: ["to", "content"],
    properties: {
      to: { type: "string", description: "A member, `lead`, or `all`." },
      content: { type: "string", minLength: 1 },
      kind: { type: "string", enum: kinds, default: "message" },
      summary: { type: "string", description: "The same in a few words." },
      approve: { type: "boolean", description: "Of a response: yes or no." },
    },
    answer: (args) => {
      const [to, summary, approve] = [args.text("to") ?? "", args.text("summary"), args.flag("approve")];
      const written = kinds.find((kind) => kind === args.text("kind")) ?? "message";
      const kind = to === "all" && written === "message" ? "broadcast" : written;
      if (kind.endsWith("_response") && approve === undefined)
        return err(`A \`${kind}\` says yes or no: give \`approve\`.`);
      if (to === "all" && kind !== "broadcast") return err(`A \`${kind}\` is for one: name a member.`);
      return team.send({
        from: who,
        to,
        kind,
        content: args.text("content") ?? "",
        ...(summary !== undefined && { summary }),
        ...(approve !== undefined && { approve }),
      });
    },
  });
}

/** Members ask about their plans and answer requests to stop; the lead does the other half. */
function isKindOf(kind: TeamMessageKind, isLead: boolean): boolean {
  switch (kind) {
    case "shutdown_request":
    case "plan_response":
      return isLead;
    case "shutdown_response":
    case "plan_request":
      return !isLead;
    case "message":
    case "broadcast":
      return true;
  }
}

/** A task without what becomes of it: that may be another a moment later, and a replay has to find the same. */
function titleOf({ id: name, subject: what, dependsOn: before }: TeamTask): string {
  return `${name}. ${what}${before.length === 0 ? "" : `, after ${before.join(", ")}`}`;
}

function line({ id: name, subject: what, status, owner, dependsOn: before }: TeamTask): string {
  const who = owner === undefined ? "" : `, ${owner}`;
  const after = before.length === 0 ? "" : `, after ${before.join(", ")}`;
  return `${name}. ${what} (${status}${who}${after})`;
}
