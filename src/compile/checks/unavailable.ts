import type { Span } from "../../model/diagnostic.ts";
import { entry, type MapNode, type SourceNode } from "../../source/document.ts";
import { agentsOf, stepsOf } from "../linked.ts";
import { kindOf } from "../read/kind.ts";
import { asMap, asText, itemsOf } from "../read/nodes.ts";
import type { Report } from "../report.ts";
import type { Check } from "./check.ts";

/**
 * Keys of the language whose behaviour has not landed. They are read and checked like every other; `validate`, `graph`
 * and `--dry-run` warn, `run` refuses. `test/unavailable.txt` and the README hold
 * the same list, and it only shrinks.
 */
export const unavailable: { readonly [area: string]: readonly string[] } = {
  workflow: ["permissions", "mcp", "tools"],
  kind: ["approve"],
  step: ["cache", "check", "isolation", "permissions", "team"],
  "agent step": ["env"],
  "tool step": ["env"],
  limits: ["children", "cost", "depth", "tokens"],
  "limits of an agent": ["duration", "parallel"],
  "limits of anything but an agent": ["turns"],
  agent: [
    "approval",
    "guards",
    "hidden",
    "hooks",
    "instructions-files",
    "mcp",
    "memory",
    "options",
    "permissions",
    "sandbox",
    "skills",
    "subagents",
    "team",
  ],
  model: ["fallback list"],
};

export const checkUnavailable: Check = ({ workflow, report, tools }) => {
  const { node } = workflow.shape;
  warn(node, "workflow", report);
  warnLimits(node, ["limits of anything but an agent"], report);
  const defaults = asMap(entry(node, "defaults")?.value);
  warn(defaults, "defaults", report);
  for (const owner of [node, ...(defaults ? [defaults] : [])]) warnFallback(owner, report);
  for (const { step } of stepsOf(workflow.scope)) {
    warn(step.node, "step", report);
    const kind = entry(step.node, step.step.kind);
    if (kind && unavailable["kind"]?.includes(step.step.kind))
      warning(`\`${step.step.kind}\` steps`, kind.keyAt, report);
    const isAgent = step.step.kind === "agent";
    if (isAgent) warn(step.node, "agent step", report, " on an agent step");
    if (step.step.kind === "tool") warn(step.node, "tool step", report, " on a tool step");
    warnLimits(step.node, isAgent ? [] : ["limits of anything but an agent"], report);
    warnFallback(step.node, report);
    if (isAgent) warnTools(entry(step.node, "tools")?.value);
    if (step.step.kind === "tool") warnTools(entry(step.node, "tool")?.value);
    const undo = asMap(entry(step.node, "undo")?.value);
    if (undo) warnTools(entry(undo, "tool")?.value);
    const undoKind = undo && entry(undo, kindOf(undo) ?? "");
    if (undoKind && unavailable["kind"]?.includes(undoKind.key))
      warning(`\`${undoKind.key}\` as \`undo\``, undoKind.keyAt, report);
  }
  for (const agent of agentsOf(workflow)) {
    warn(agent.node, "agent", report);
    warnLimits(agent.node, ["limits of an agent"], report);
    warnFallback(agent.node, report);
    warnTools(entry(agent.node, "tools")?.value);
  }

  function warnTools(list: SourceNode | undefined): void {
    for (const { value: tool, at } of itemsOf(list).flatMap((item) => asText(item) ?? []))
      if (tools.get(tool) === false || tool.startsWith("mcp__")) warning(`the tool \`${tool}\``, at, report);
  }
};

/** `place` completes the name of a key that is available elsewhere. */
function warn(map: MapNode | undefined, area: string, report: Report, place = ""): void {
  for (const { key, keyAt } of map?.entries ?? [])
    if (unavailable[area]?.includes(key)) warning(`\`${key}\`${place}`, keyAt, report);
}

/** `areas`: those beside the limits that are not there for anybody. */
function warnLimits(owner: MapNode, areas: readonly string[], report: Report): void {
  const limits = asMap(entry(owner, "limits")?.value);
  warn(limits, "limits", report);
  for (const area of areas) warn(limits, area, report, ` in the ${area}`);
}

function warnFallback(owner: MapNode, report: Report): void {
  const model = entry(owner, "model");
  if (model?.value.kind === "list" && model.value.items.length > 1)
    warning("a list of models to fall back on", model.keyAt, report);
}

function warning(what: string, at: Span, report: Report): void {
  report("FLOW9001", at, `${what}: checked, but not yet available, so \`flow run\` refuses this file`, {
    severity: "warning",
  });
}
