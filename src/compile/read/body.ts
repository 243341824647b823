import type { Body, Check, Named, StepKind, Template } from "../../model/plan.ts";
import { entry, type MapNode, type SourceNode, toJson } from "../../source/document.ts";
import type { AgentShape, StepShape, Word } from "../shape.ts";
import { optional, readAgent, readModels, readSchema, readTeam } from "./agent.ts";
import { type Reader, readEntries, readTemplate, refuseExpressions } from "./expression.ts";
import { asMap, asText, itemsOf, numberOf, textOf } from "./nodes.ts";
import { readPermissions } from "./permissions.ts";
import { filePlace, type Loops, stepPlace } from "./place.ts";

/** What a workflow's `defaults`, `env` and `model` give to its steps. */
export interface Defaults {
  readonly workflowEnv: readonly Named<Template>[];
  readonly env: readonly Named<Template>[];
  readonly models: readonly Template[];
  readonly retry?: SourceNode;
  readonly timeout?: SourceNode;
  readonly shell?: SourceNode;
  readonly cwd?: Template;
}

export interface StepBody {
  readonly inputs: Template;
  readonly body: Body;
  readonly agent?: StepShape["agent"];
  readonly workflow?: Word;
  readonly team?: StepShape["team"];
  /** Whether the workflow's `defaults` apply to this kind. */
  readonly takesDefaults: boolean;
}

export interface BodySource {
  /** Its `uses` receive the expressions of the body. */
  readonly reader: Reader;
  readonly node: MapNode;
  readonly kind: StepKind;
  readonly defaults: Defaults;
  readonly loops: Loops;
  /** Where an inline agent's key comes from. */
  readonly key: string;
}

/** What belongs to the kind of a step: its run-time `inputs` and its fixed `body`. */
export function readBody(source: BodySource): StepBody {
  switch (source.kind) {
    case "agent":
      return readAgentBody(source);
    case "run":
      return readRunBody(source);
    case "tool":
      return readToolBody(source);
    case "workflow":
      return readWorkflowBody(source);
    case "steps":
      return { inputs: map({}), body: { kind: "steps" }, takesDefaults: false };
    case "approve":
      return readApproveBody(source);
    case "set":
      return { inputs: map({ set: valueAt(source, "set", "`set`") }), body: { kind: "set" }, takesDefaults: false };
  }
}

function readAgentBody(source: BodySource): StepBody {
  const { reader, node, key } = source;
  const written = entry(node, "agent")?.value;
  const inline = asMap(written);
  const name = asText(written);
  refuseExpressions(reader, name, "`agent`");
  for (const fixed of ["tools", "permissions", "limits", "check", "team"])
    refuseExpressions(reader, entry(node, fixed)?.value, `\`${fixed}\``);
  const shape =
    inline &&
    readAgent({ key: `#steps.${key}.agent`, name: key, document: reader.document, node: inline }, reader.report);
  const own = readModels(reader, entry(node, "model")?.value, filePlace("`model`", ["inputs", "vars"]));
  const permissions = entry(node, "permissions")?.value;
  const tools = entry(node, "tools")?.value;
  const agent = agentOf(shape, name && { text: name.value, at: name.at });
  return {
    inputs: map({
      with: valueAt(source, "with", "`with`"),
      prompt: valueAt(source, "prompt", "`prompt`"),
      env: readEnv(source),
    }),
    body: {
      kind: "agent",
      agent: "",
      ...optional("output", readSchema(reader, entry(node, "output")?.value)),
      models: own,
      ...optional("check", readCheck(entry(node, "check")?.value)),
      ...optional("permissions", permissions && readPermissions(permissions)),
      overrides: { json: tools ? { tools: toJson(tools) } : {} },
    },
    ...optional("agent", agent),
    ...optional("team", readTeam(entry(node, "team")?.value)),
    takesDefaults: true,
  };
}

function agentOf(inline: AgentShape | undefined, name: Word | undefined): StepShape["agent"] | undefined {
  if (inline) return { inline };
  return name && { name };
}

function readCheck(node: SourceNode | undefined): Check | undefined {
  const check = asMap(node);
  const script = check && textOf(entry(check, "run")?.value);
  return check && script !== undefined ? { script, max: numberOf(entry(check, "max")?.value) ?? 3 } : undefined;
}

function readRunBody(source: BodySource): StepBody {
  const { reader, node, defaults } = source;
  const run = entry(node, "run")?.value;
  const script = textOf(run);
  const shell = entry(node, "shell")?.value;
  refuseExpressions(reader, shell, "`shell`");
  const place = stepPlace("`run`", source.loops);
  const argv =
    script === undefined
      ? { type: "list" as const, items: itemsOf(run).map((item) => readTemplate(reader, item, place)) }
      : undefined;
  return {
    inputs: map({
      env: readEnv(source),
      stdin: valueAt(source, "stdin", "`stdin`"),
      cwd: valueAt(source, "cwd", "`cwd`") ?? defaults.cwd,
      argv,
    }),
    body: {
      kind: "run",
      command: script === undefined ? { argv: true } : { script },
      shell: textOf(shell) ?? textOf(defaults.shell) ?? "bash",
      ...optional("output", readSchema(reader, entry(node, "output")?.value)),
    },
    takesDefaults: true,
  };
}

function readToolBody(source: BodySource): StepBody {
  const { reader, node } = source;
  const tool = entry(node, "tool")?.value;
  refuseExpressions(reader, tool, "`tool`");
  return {
    inputs: map({ with: valueAt(source, "with", "`with`"), env: readEnv(source) }),
    body: {
      kind: "tool",
      tool: textOf(tool) ?? "",
      ...optional("output", readSchema(reader, entry(node, "output")?.value)),
    },
    takesDefaults: true,
  };
}

function readWorkflowBody(source: BodySource): StepBody {
  const path = asText(entry(source.node, "workflow")?.value);
  refuseExpressions(source.reader, path, "`workflow`");
  return {
    inputs: map({ with: valueAt(source, "with", "`with`") }),
    body: { kind: "workflow" },
    ...(path && { workflow: { text: path.value, at: path.at } }),
    takesDefaults: false,
  };
}

function readApproveBody(source: BodySource): StepBody {
  const form = entry(source.node, "form")?.value;
  const schema = readSchema(source.reader, form);
  const properties = asMap(asMap(form) && entry(asMap(form) ?? source.node, "properties")?.value);
  for (const { key, keyAt } of properties?.entries ?? []) {
    if (["by", "comment"].includes(key.toLowerCase()))
      source.reader.report(
        "FLOW3001",
        keyAt,
        `a form field cannot be named \`${key}\`: every approval has \`by\` and \`comment\` of its own`,
      );
  }
  return {
    inputs: map({ approve: valueAt(source, "approve", "`approve`") }),
    body: { kind: "approve", ...optional("form", schema) },
    takesDefaults: false,
  };
}

/** A step's environment: the workflow's, then its defaults', then its own; the last one with a name holds. */
function readEnv({ reader, node, defaults, loops }: BodySource): Template | undefined {
  const own = asMap(entry(node, "env")?.value);
  const entries = own ? readEntries(reader, own, stepPlace("`env`", loops, ["secrets"])) : [];
  const merged = new Map([...defaults.workflowEnv, ...defaults.env, ...entries].map((it) => [it.name, it.value]));
  return merged.size === 0
    ? undefined
    : { type: "map", entries: [...merged].map(([name, value]) => ({ name, value })) };
}

function valueAt({ reader, node, loops }: BodySource, key: string, what: string): Template | undefined {
  const value = entry(node, key)?.value;
  return value && readTemplate(reader, value, stepPlace(what, loops));
}

/** The map of what a kind takes at run time; keys that were not written are absent. */
function map(values: { readonly [name: string]: Template | undefined }): Template {
  return { type: "map", entries: Object.entries(values).flatMap(([name, value]) => (value ? [{ name, value }] : [])) };
}
