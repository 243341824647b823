import { isJsonObject, type Json, type JsonObject, own } from "../model/json.ts";
import { nearest } from "../model/names.ts";
import type { Agent } from "../model/plan.ts";
import type { Tool } from "../model/ports.ts";
import { err, ok, type Result } from "../model/result.ts";
import type { RecordedChild } from "./recorded.ts";

/** An agent that may be spawned, by the name its parent has for it. */
export interface Target {
  readonly name: string;
  /** In the plan. */
  readonly key: string;
  readonly agent: Agent;
}

/** What a model asked for with the tool. */
export interface Order {
  readonly target: Target;
  readonly title: string;
  readonly prompt: string;
  readonly background: boolean;
  readonly name?: string;
  /** Instead of the models the target would ask. */
  readonly model?: Json;
  /** A child that ended, and is asked again. */
  readonly again?: RecordedChild;
  readonly given: Given;
}

/** What a child is given beside its prompt. */
export interface Given {
  readonly files?: readonly string[];
  readonly summary?: string;
  readonly output?: Json;
  readonly vars?: JsonObject;
}

/** The tool by which an agent spawns others; the lead of a team also hands its tasks out by it. */
export function taskTool(targets: readonly Target[], members: readonly string[], run: Tool["run"]): Tool {
  const others = members.map((name) => `- ${name}: a member of your team; give it a task of the team, by \`task_id\``);
  const list = targets.map(
    ({ name, agent: { description } }) => `- ${name}${description === undefined ? "" : `: ${description}`}`,
  );
  return {
    name: "Task",
    description: [
      "Gives a piece of work to another agent, and returns its answer. It starts without your conversation, so put everything it needs to know into the prompt. Several calls in one message run at the same time.",
      "",
      "The agents:",
      ...list,
      ...others,
    ].join("\n"),
    parameters: parametersOf(targets, members.length > 0),
    readOnly: false,
    concurrent: true,
    goesOn: true,
    aliases: {
      names: ["Agent", "task", "agent", "spawn_agent"],
      parameters: {
        agentId: "subagent_type",
        input: "prompt",
        agent: "subagent_type",
        session_id: "agent_id",
        task: "prompt",
      },
    },
    run,
  };
}

function parametersOf(targets: readonly Target[], leads: boolean): JsonObject {
  return {
    type: "object",
    required: ["description", "prompt", "subagent_type"],
    additionalProperties: false,
    properties: {
      description: { type: "string", description: "What it is for, in three to five words.", maxLength: 200 },
      prompt: { type: "string", description: "The whole piece of work, and what to answer with.", minLength: 1 },
      subagent_type: {
        type: "string",
        description: "Which agent.",
        examples: targets.slice(0, 3).map(({ name }) => name),
      },
      model: { type: "string", description: "Another model for it, by its id." },
      run_in_background: {
        type: "boolean",
        description: "Do not wait: the answer comes later as a message. Needs a name.",
      },
      name: {
        type: "string",
        description: "What to call it, unlike any other.",
        pattern: "^[A-Za-z_][A-Za-z0-9_-]{0,63}$",
      },
      agent_id: {
        type: "string",
        description: "The id, or the name, of one that has ended: it goes on with its conversation.",
      },
      ...(leads && { task_id: { type: "string", description: "The task of the team that a member is given." } }),
      context: {
        type: "object",
        description: "What else it is given.",
        additionalProperties: false,
        properties: {
          files: { type: "array", items: { type: "string" }, description: "Files it should look at." },
          summary: { type: "string", description: "What has happened so far, as far as it matters." },
          output: { description: "A result of yours that it works on." },
          vars: {
            type: "array",
            items: { type: "string" },
            description: "Names of the workflow's constants it needs.",
          },
        },
      },
    },
  };
}

export interface OrderSource {
  readonly targets: readonly Target[];
  /** The children there are, by their ids. */
  readonly known: ReadonlyMap<string, RecordedChild>;
  /** The models there are, by their ids. */
  readonly models: ReadonlyMap<string, Json>;
  readonly vars: JsonObject;
}

/** Reads arguments that fit the tool's schema. An error is a sentence for the model. */
export function readOrder(args: JsonObject, source: OrderSource): Result<Order, string> {
  const text = (key: string): string | undefined => {
    const value = own(args, key);
    return typeof value === "string" ? value : undefined;
  };
  const type = text("subagent_type") ?? "";
  const target = source.targets.find(({ name }) => name === type);
  if (target === undefined)
    return err(
      unknownName(
        "agent",
        type,
        source.targets.map(({ name }) => name),
      ),
    );
  const background = own(args, "run_in_background") === true;
  const name = text("name");
  if (background && name === undefined)
    return err("What runs in the background needs a `name`, so that its report can be told from others.");
  if (name !== undefined && [...source.known.values()].some((child) => child.name === name))
    return err(
      `You have called another sub-agent \`${name}\`. Take another name; to ask that one again, give its name as \`agent_id\`.`,
    );
  const again = readAgain(text("agent_id"), target, source.known);
  if (!again.ok) return again;
  const model = readModel(text("model"), source.models);
  if (!model.ok) return model;
  const given = readGiven(own(args, "context"), source.vars);
  if (!given.ok) return given;
  return ok({
    target,
    title: text("description") ?? "",
    prompt: text("prompt") ?? "",
    background,
    given: given.value,
    ...(name !== undefined && { name }),
    ...(model.value !== undefined && { model: model.value }),
    ...(again.value && { again: again.value }),
  });
}

function readAgain(
  id: string | undefined,
  target: Target,
  known: ReadonlyMap<string, RecordedChild>,
): Result<RecordedChild | undefined, string> {
  if (id === undefined) return ok(undefined);
  const child = known.get(id) ?? [...known.values()].findLast((it) => it.name === id);
  if (child === undefined) return err(unknownName("sub-agent", id, [...known.keys()]));
  if (child.end === undefined) return err(`\`${id}\` has not ended: only one that has can be asked again.`);
  if (child.agent !== target.agent.name) return err(`\`${id}\` is a \`${child.agent}\`, not a \`${target.name}\`.`);
  return ok(child);
}

function readModel(id: string | undefined, models: ReadonlyMap<string, Json>): Result<Json | undefined, string> {
  if (id === undefined) return ok(undefined);
  const model = models.get(id);
  return model === undefined ? err(unknownName("model", id, [...models.keys()])) : ok(model);
}

function readGiven(context: Json | undefined, known: JsonObject): Result<Given, string> {
  if (!isJsonObject(context)) return ok({});
  const [files, summary, output, names] = ["files", "summary", "output", "vars"].map((key) => own(context, key));
  const wanted = Array.isArray(names) ? names.filter((name) => typeof name === "string") : [];
  const missing = wanted.find((name) => !Object.hasOwn(known, name));
  if (missing !== undefined) return err(unknownName("constant", missing, Object.keys(known)));
  return ok({
    ...(Array.isArray(files) && { files: files.filter((file) => typeof file === "string") }),
    ...(typeof summary === "string" && { summary }),
    ...(output !== undefined && { output }),
    ...(wanted.length > 0 && { vars: Object.fromEntries(wanted.map((name) => [name, known[name] ?? null])) }),
  });
}

function unknownName(what: string, name: string, known: readonly string[]): string {
  const shown = name.length > 60 ? `${name.slice(0, 60)}…` : name;
  const near = nearest(name, known);
  const hint = near === undefined ? "" : ` Did you mean \`${near}\`?`;
  const rest = known.length === 0 ? "There is none." : `There are: ${known.join(", ")}.`;
  return `There is no ${what} \`${shown}\`.${hint} ${rest}`;
}

/** The prompt with what else is given. */
export function givenText({ prompt, given }: Order): string {
  const { files = [], summary, output, vars } = given;
  const parts = [prompt];
  if (files.length > 0) parts.push(`Files to look at:\n${files.map((file) => `- ${file}`).join("\n")}`);
  if (summary !== undefined) parts.push(`What has happened so far:\n${summary}`);
  if (output !== undefined)
    parts.push(`A result to work on:\n${typeof output === "string" ? output : JSON.stringify(output)}`);
  if (vars !== undefined) parts.push(`Constants of the workflow:\n${JSON.stringify(vars)}`);
  return parts.join("\n\n");
}
