import type { Span } from "../../model/diagnostic.ts";
import { isReservedName, namePattern } from "../../model/ids.ts";
import type { JsonObject } from "../../model/json.ts";
import type { Agent, Data, Input, Limits, Template } from "../../model/plan.ts";
import { entry, type SourceDocument, type SourceNode, toJson } from "../../source/document.ts";
import { readDuration } from "./duration.ts";
import { type Reader, readTemplate, refuseExpressions } from "./expression.ts";
import type { Translated } from "../dialects/index.ts";
import type { AgentFile } from "../agent-shelf.ts";
import { asMap, booleanOf, entriesOf, itemsOf, numberOf, textOf, textsOf, wordsOf } from "./nodes.ts";
import { readPermissions } from "./permissions.ts";
import { filePlace } from "./place.ts";
import type { Report } from "../report.ts";
import type { AgentShape, MemberShape, Place, TeamShape } from "../shape.ts";
import { checkAgentShape, checkSchemaData } from "./schema.ts";
import { readServers } from "./servers.ts";

/** Keys with a field of their own in {@link Agent}; the rest goes to `settings` as written. */
const fields = new Set([
  "name",
  "description",
  "mode",
  "inputs",
  "instructions",
  "prompt",
  "tools",
  "permissions",
  "model",
  "output",
  "limits",
  "temperature",
  "top-p",
  "max-output",
  "effort",
  "subagents",
  "team",
]);

export interface AgentSource {
  readonly key: string;
  /** The name to use when the definition gives none. */
  readonly name: string;
  readonly document: SourceDocument;
  readonly node: SourceNode;
  /** The Markdown body of an agent file. */
  readonly body?: AgentFile["body"];
  /** The node is what another program's file comes to here: nothing in it is an expression. */
  readonly foreign?: Translated;
}

/** Reads one definition, from a file or inline. Undefined when it is not a mapping at all. */
export function readAgent(source: AgentSource, report: Report): AgentShape | undefined {
  const node = asMap(source.node);
  if (!node) {
    report("FLOW2005", source.node.at, "an agent is a mapping of keys such as `instructions`, `prompt` and `tools`");
    return undefined;
  }
  const reader: Reader = { document: source.document, report, uses: [] };
  // One that stands in a workflow was checked as a part of that.
  if (!source.key.startsWith("#")) checkAgentShape(node, report);
  const get = (key: string): SourceNode | undefined => entry(node, key)?.value;
  const { foreign } = source;
  const instructions = get("instructions");
  if (instructions && source.body?.value.trim()) {
    report("FLOW2009", instructions.at, "a Markdown agent's instructions are the text below its front matter", {
      suggestion: "remove `instructions`, or move the text",
    });
  }
  for (const { key, value } of node.entries) {
    const isFixed = !foreign && !["prompt", "model", "mcp", "inputs", "output", "options", "hooks"].includes(key);
    if (isFixed) refuseExpressions(reader, value, `an agent's \`${key}\``);
  }
  const prompt = get("prompt");
  const permissions = get("permissions");
  const inputs = readInputs(reader, get("inputs"));
  const output = readSchema(reader, get("output"));
  const place = filePlace("an agent's `prompt`", ["inputs"]);
  const mcp = get("mcp");
  const agent: Agent = {
    name: textOf(get("name")) ?? source.name,
    ...optional("description", textOf(get("description"))),
    mode: readMode(textOf(get("mode"))),
    inputs,
    ...optional("instructions", textOf(instructions) ?? source.body?.value.trim()),
    ...(prompt && { prompt: foreign ? { type: "data", json: toJson(prompt) } : readTemplate(reader, prompt, place) }),
    ...(get("tools") && { tools: textsOf(get("tools")) }),
    ...optional(
      "permissions",
      permissions && { ...readPermissions(permissions), ...(foreign?.narrows && { narrows: true }) },
    ),
    models: readModels(reader, get("model"), filePlace("an agent's `model`", [])),
    ...optional("output", output),
    limits: readLimits(get("limits"), report),
    ...optional("temperature", numberOf(get("temperature"))),
    ...optional("topP", numberOf(get("top-p"))),
    ...optional("maxOutput", numberOf(get("max-output"))),
    ...optional("effort", textOf(get("effort"))),
    settings: {
      json: Object.fromEntries(
        node.entries.filter((it) => !fields.has(it.key)).map((it) => [it.key, toJson(it.value)]),
      ),
    },
    at: firstLine(source.node.at),
  };
  return {
    key: source.key,
    agent,
    node,
    uses: reader.uses,
    disabled: booleanOf(get("disable")) === true,
    hidden: booleanOf(get("hidden")) === true,
    tools: wordsOf(get("tools")),
    subagents: wordsOf(get("subagents")),
    ...optional("team", readTeam(get("team"))),
    servers: {
      names: mcp?.kind === "list" ? wordsOf(mcp) : [],
      own: readServers(reader, mcp, {
        file: source.key,
        place: filePlace("an agent's `mcp`", ["secrets"]),
        expands: foreign !== undefined,
      }),
    },
    ...(foreign && { foreign }),
  };
}

/** Of an agent, or of a step. */
export function readTeam(node: SourceNode | undefined): TeamShape | undefined {
  const map = asMap(node);
  if (!map) return undefined;
  const isolated = textOf(entry(map, "isolation")?.value) === "worktree";
  const members = itemsOf(entry(map, "members")?.value).flatMap((item) => readMember(item, isolated));
  return { members, parallel: numberOf(entry(map, "parallel")?.value) ?? 2, at: map.at };
}

function readMember(node: SourceNode, isolated: boolean): MemberShape[] {
  const map = asMap(node);
  const [agent] = wordsOf(map ? entry(map, "agent")?.value : node);
  if (!agent) return [];
  const get = (key: string): SourceNode | undefined => map && entry(map, key)?.value;
  const mode = textOf(get("mode"));
  const isAlone = isolated || textOf(get("isolation")) === "worktree";
  return [
    {
      agent,
      name: wordsOf(get("name"))[0] ?? agent,
      terms: {
        ...((mode === "read" || mode === "edit") && { mode }),
        ...(get("paths") && { paths: textsOf(get("paths")) }),
        ...(textOf(get("plan")) === "required" && { plan: true }),
        ...(isAlone && { isolation: "worktree" }),
      },
    },
  ];
}

function readMode(text: string | undefined): Agent["mode"] {
  return text === "primary" || text === "subagent" ? text : "all";
}

/** Declared inputs of a workflow or an agent: name → JSON Schema, with an optional default. */
export function readInputs(reader: Reader, node: SourceNode | undefined): Input[] {
  checkNames(reader.report, node, "an input");
  return entriesOf(node).flatMap(({ key, keyAt, value }) => {
    const map = asMap(value);
    if (!map) return [];
    refuseExpressions(reader, value, "the declaration of an input");
    const schema = toJson(map) as JsonObject;
    const preset = entry(map, "default")?.value;
    checkSchemaData(reader.report, value, schema);
    return [
      {
        name: key,
        ...optional("description", textOf(entry(map, "description")?.value)),
        schema: { json: schema },
        ...(preset && { default: { json: toJson(preset) } }),
        at: keyAt,
      },
    ];
  });
}

/** A JSON Schema the user wrote, checked. */
export function readSchema(reader: Reader, node: SourceNode | undefined): Data | undefined {
  if (!node) return undefined;
  refuseExpressions(reader, node, "a JSON Schema");
  const json = toJson(node);
  checkSchemaData(reader.report, node, json);
  return { json };
}

/** `model`: one id or `{ id, base-url, key }`, or a list of them tried in order. */
export function readModels(reader: Reader, node: SourceNode | undefined, place: Place): Template[] {
  return itemsOf(node).map((item) => readTemplate(reader, item, place));
}

export function readLimits(node: SourceNode | undefined, report: Report): Limits {
  const map = asMap(node);
  if (!map) return {};
  const duration = entry(map, "duration")?.value;
  return {
    ...optional("cost", numberOf(entry(map, "cost")?.value)),
    ...optional("tokens", numberOf(entry(map, "tokens")?.value)),
    ...optional("duration", duration && readDuration(duration, report)),
    ...optional("parallel", numberOf(entry(map, "parallel")?.value)),
    ...optional("turns", numberOf(entry(map, "turns")?.value)),
    ...optional("depth", numberOf(entry(map, "depth")?.value)),
    ...optional("children", numberOf(entry(map, "children")?.value)),
  };
}

/** Names a user gives to inputs, variables, outputs and steps: a pattern, none inherited, none equal but for case. */
export function checkNames(report: Report, node: SourceNode | undefined, what: string): void {
  const seen = new Map<string, { readonly key: string; readonly keyAt: Span }>();
  for (const { key, keyAt } of entriesOf(node)) {
    if (isReservedName(key))
      report("FLOW3003", keyAt, `${what} cannot be named \`${key}\`: every JavaScript object inherits that name`);
    else if (!namePattern.test(key)) {
      report("FLOW3001", keyAt, `${what} cannot be named ${JSON.stringify(key)}`, {
        suggestion: "use letters, digits, `_` and `-`, beginning with a letter or `_`",
      });
    }
    const folded = key.toLowerCase();
    const first = seen.get(folded);
    if (first && first.key !== key) {
      report("FLOW3002", keyAt, `\`${key}\` and \`${first.key}\` are one name: expressions ignore case`, {
        related: [{ message: "the first is here", at: first.keyAt }],
      });
    }
    if (!first) seen.set(folded, { key, keyAt });
  }
}

/** `{ [key]: value }`, or nothing when there is no value: an absent key, not an undefined one. */
export function optional<K extends string, V>(key: K, value: V | undefined): { [k in K]?: V } {
  return (value === undefined ? {} : { [key]: value }) as { [k in K]?: V };
}

function firstLine(at: Span): Span {
  return at.endLine === at.line ? at : { ...at, endLine: at.line, endColumn: at.column + 1 };
}
