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
  step: ["cache", "check", "foreach", "isolation", "matrix", "permissions", "repeat", "rerun", "retry", "team", "undo"],
  limits: ["children", "cost", "depth", "tokens"],
  defaults: ["retry"],
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
  warn(asMap(entry(node, "limits")?.value), "limits", report);
  const defaults = asMap(entry(node, "defaults")?.value);
  warn(defaults, "defaults", report);
  for (const owner of [node, ...(defaults ? [defaults] : [])]) warnFallback(owner, report);
  for (const { step } of stepsOf(workflow.scope)) {
    warn(step.node, "step", report);
    const kind = entry(step.node, step.step.kind);
    if (kind && unavailable["kind"]?.includes(step.step.kind))
      warning(`\`${step.step.kind}\` steps`, kind.keyAt, report);
    warn(asMap(entry(step.node, "limits")?.value), "limits", report);
    warnFallback(step.node, report);
  }
  for (const agent of new Set([...workflow.agents.values(), ...workflow.shape.agents.values()])) {
    warn(agent.node, "agent", report);
    warn(asMap(entry(agent.node, "limits")?.value), "limits", report);
    warnFallback(agent.node, report);
    for (const tool of agent.tools)
      if (tools.get(tool.text) === false || tool.text.startsWith("mcp__"))
        warning(`the tool \`${tool.text}\``, tool.at, report);
  }
};

function warn(map: MapNode | undefined, area: string, report: Report): void {
  for (const { key, keyAt } of map?.entries ?? [])
    if (unavailable[area]?.includes(key)) warning(`\`${key}\``, keyAt, report);
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
