import type { Data, Named, RuleData, Template } from "../../model/plan.ts";
import { entry, type MapNode, type SourceNode, toJson } from "../../source/document.ts";
import type { WorkflowFile } from "../load.ts";
import type { Report } from "../report.ts";
import type { AgentShape, EdgeShape, Place, ScopeShape, Use, WorkflowShape } from "../shape.ts";
import { checkNames, optional, readAgent, readInputs, readLimits, readModels } from "./agent.ts";
import type { Defaults } from "./body.ts";
import { readCondition, type Reader, readEntries, readTemplate, refuseExpressions } from "./expression.ts";
import { asMap, asText, entriesOf, itemsOf, textOf, wordsOf } from "./nodes.ts";
import { readPermissions } from "./permissions.ts";
import { filePlace, noLoops, stepPlace } from "./place.ts";
import { checkWorkflowShape } from "./schema.ts";
import { readServers } from "./servers.ts";
import { readSteps, unreadSteps } from "./step.ts";

/** Reads a workflow file whole. Undefined when it is not a mapping. */
export function readWorkflow(file: WorkflowFile, report: Report): WorkflowShape | undefined {
  const { document } = file;
  const node = asMap(document.root);
  if (!node) {
    report("FLOW2005", document.root.at, "a workflow is a mapping with at least `steps`", {
      suggestion: "begin with `steps:`",
    });
    return undefined;
  }
  checkWorkflowShape(node, report);
  const get = (key: string): SourceNode | undefined => entry(node, key)?.value;
  const reader: Reader = { document, report, uses: [] };
  for (const key of ["name", "description", "secrets", "limits", "expect", "permissions"])
    refuseExpressions(reader, get(key), `\`${key}\``);
  readTools({ ...reader, uses: [] }, get("tools"));
  const place = filePlace("`mcp`", ["inputs", "vars", "secrets"]);
  const servers = readServers(reader, get("mcp"), { file: file.key, place });
  checkNames(report, get("vars"), "a variable");
  checkNames(report, get("agents"), "an agent");
  const vars = readMap(reader, get("vars"), filePlace("`vars`", ["inputs"]));
  const defaults = readDefaults(reader, node);
  const steps = readSteps({ reader, steps: get("steps"), defaults, loops: noLoops });
  return {
    file,
    node,
    name: textOf(get("name")) ?? nameOf(file.key),
    ...optional("description", textOf(get("description"))),
    inputs: readInputs(reader, get("inputs")),
    vars,
    env: defaults.workflowEnv,
    secrets: wordsOf(get("secrets")),
    limits: readLimits(get("limits"), report),
    expect: { steps: wordsOf(expectation(node, "steps")), outputs: wordsOf(expectation(node, "outputs")) },
    settings: { ...permissions(), ...data("mcp"), ...data("tools") },
    agents: readInlineAgents(file, get("agents"), report),
    models: defaults.models,
    servers,
    tools: entriesOf(get("tools")).map((tool) => tool.key),
    scope: {
      steps,
      unread: unreadSteps(get("steps"), steps),
      edges: readEdges(reader, get("edges")),
      ...readOutputs(reader, get("outputs")),
    },
    uses: reader.uses,
  };

  function permissions(): { permissions?: RuleData } {
    const value = get("permissions");
    return optional("permissions", value && readPermissions(value));
  }

  function data<K extends "mcp" | "tools">(key: K): { [k in K]?: Data } {
    const value = get(key);
    return optional(key, value && { json: toJson(value) });
  }
}

function readDefaults(reader: Reader, node: MapNode): Defaults {
  const place = filePlace("`env`", ["inputs", "vars", "secrets", "run"]);
  const defaults = asMap(entry(node, "defaults")?.value);
  const get = (key: string): SourceNode | undefined => defaults && entry(defaults, key)?.value;
  for (const key of ["retry", "shell"]) refuseExpressions(reader, get(key), `\`${key}\``);
  const cwd = get("cwd");
  return {
    workflowEnv: readMap(reader, entry(node, "env")?.value, place),
    env: readMap(reader, get("env"), place),
    models: readModels(reader, get("model") ?? entry(node, "model")?.value, filePlace("`model`", ["inputs", "vars"])),
    ...optional("retry", get("retry")),
    ...optional("timeout", get("timeout")),
    ...optional("shell", get("shell")),
    ...optional("cwd", cwd && readTemplate(reader, cwd, filePlace("`defaults.cwd`", ["inputs", "vars", "run"]))),
  };
}

function readInlineAgents(file: WorkflowFile, node: SourceNode | undefined, report: Report): Map<string, AgentShape> {
  const agents = new Map<string, AgentShape>();
  for (const { key, value } of entriesOf(node)) {
    const agent = readAgent({ key: `#agents.${key}`, name: key, document: file.document, node: value }, report);
    if (agent) agents.set(key, agent);
  }
  return agents;
}

/** Looks at the expressions of the workflow's own tools: they see the tool's arguments as `inputs`. */
function readTools(reader: Reader, node: SourceNode | undefined): void {
  checkNames(reader.report, node, "a tool");
  for (const { value } of entriesOf(node)) {
    const tool = asMap(value);
    if (!tool) continue;
    const [program, ...args] = itemsOf(entry(tool, "run")?.value);
    for (const fixed of ["description", "parameters", "timeout"])
      refuseExpressions(reader, entry(tool, fixed)?.value, `a tool's \`${fixed}\``);
    refuseExpressions(reader, program, "the program of a tool");
    for (const arg of args) readTemplate(reader, arg, filePlace("a tool's `run`", ["inputs"]));
    readMap(reader, entry(tool, "env")?.value, filePlace("a tool's `env`", ["inputs", "secrets"]));
  }
}

/** Top-level `edges`: the same as `needs`, for people who think in graphs. */
function readEdges(reader: Reader, node: SourceNode | undefined): EdgeShape[] {
  return itemsOf(node).flatMap((item) => {
    const map = asMap(item);
    const from = asText(map && entry(map, "from")?.value);
    const to = asText(map && entry(map, "to")?.value);
    if (!map || !from || !to) return [];
    refuseExpressions(reader, from, "`edges`");
    refuseExpressions(reader, to, "`edges`");
    const uses: Use[] = [];
    const written = entry(map, "if")?.value;
    const read = written && readCondition({ ...reader, uses }, written, stepPlace("an edge's `if`", noLoops));
    return [
      {
        step: { text: from.value, at: from.at },
        to: { text: to.value, at: to.at },
        ...(read && { if: { source: read.source, at: read.at } }),
        uses,
      },
    ];
  });
}

function readOutputs(reader: Reader, node: SourceNode | undefined): Pick<ScopeShape, "outputs" | "outputUses"> {
  checkNames(reader.report, node, "an output");
  const outputUses: Use[] = [];
  const entries = readMap({ ...reader, uses: outputUses }, node, stepPlace("`outputs`", noLoops));
  const places = entriesOf(node);
  return {
    outputs: entries.map((it, index) => ({ ...it, at: places[index]?.keyAt ?? reader.document.root.at })),
    outputUses,
  };
}

function readMap(reader: Reader, node: SourceNode | undefined, place: Place): Named<Template>[] {
  const map = asMap(node);
  return map ? readEntries(reader, map, place) : [];
}

function expectation(node: MapNode, key: string): SourceNode | undefined {
  const expect = asMap(entry(node, "expect")?.value);
  return expect && entry(expect, key)?.value;
}

function nameOf(key: string): string {
  return (key.split("/").at(-1) ?? key).replace(/\.ya?ml$/, "");
}
