import type { Span } from "../../model/diagnostic.ts";
import { entry, type MapNode } from "../../source/document.ts";
import { stepsOf } from "../linked.ts";
import { asMap } from "../read/nodes.ts";
import type { Report } from "../report.ts";
import type { Check } from "./check.ts";

/**
 * Keys of the language whose behaviour has not landed. They are read and checked like every other; `validate`, `graph`
 * and `--dry-run` warn, `run` refuses. `test/unavailable.txt` holds the same list, and the list only shrinks.
 */
export const unavailable: { readonly [area: string]: readonly string[] } = {
  workflow: ["permissions", "mcp", "tools"],
  kind: ["tool", "approve"],
  step: ["cache", "check", "isolation", "permissions", "rerun", "team"],
  "agent step": ["env"],
  limits: ["children", "cost", "depth", "tokens"],
  "limits of a step or an agent": ["duration", "parallel"],
  "limits of anything but an agent": ["turns"],
  agent: [
    "approval",
    "guards",
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
    const areas = ["limits of a step or an agent", ...(isAgent ? [] : ["limits of anything but an agent"])];
    warnLimits(step.node, areas, report);
    warnFallback(step.node, report);
  }
  for (const agent of new Set([...workflow.agents.values(), ...workflow.shape.agents.values()])) {
    warn(agent.node, "agent", report);
    warnLimits(agent.node, ["limits of a step or an agent"], report);
    warnFallback(agent.node, report);
    for (const tool of agent.tools)
      if (tools.get(tool.text) === false || tool.text.startsWith("mcp__"))
        warning(`the tool \`${tool.text}\``, tool.at, report);
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
