import type { Span } from "../../model/diagnostic.ts";
import { entry, type MapNode, type SourceNode } from "../../source/document.ts";
import { agentsOf, stepsOf } from "../linked.ts";
import { asMap, asText, itemsOf } from "../read/nodes.ts";
import type { Report } from "../report.ts";
import type { Check } from "./check.ts";

/**
 * Keys of the language whose behaviour has not landed. They are read and checked like every other; `validate`, `graph`
 * and `--dry-run` warn, `run` refuses. `test/unavailable.txt` and the README hold
 * the same list, and it only shrinks.
 */
export const unavailable: { readonly [area: string]: readonly string[] } = {
};

export const checkUnavailable: Check = ({ workflow, report, tools }) => {
  const { node } = workflow.shape;
  warn(node, "workflow", report);
  warnLimits(node, report);
  const defaults = asMap(entry(node, "defaults")?.value);
  warn(defaults, "defaults", report);
  for (const { step } of stepsOf(workflow.scope)) {
    warn(step.node, "step", report);
    const isAgent = step.step.kind === "agent";
    warnLimits(step.node, report);
    if (isAgent) warnTools(entry(step.node, "tools")?.value);
    if (step.step.kind === "tool") warnTools(entry(step.node, "tool")?.value);
    const undo = asMap(entry(step.node, "undo")?.value);
    if (undo) warnTools(entry(undo, "tool")?.value);
  }
  for (const agent of agentsOf(workflow)) {
    warn(agent.node, "agent", report);
    warn(asMap(entry(agent.node, "hooks")?.value), "hook", report, " as a hook");
    warnLimits(agent.node, report);
    warnTools(entry(agent.node, "tools")?.value);
  }

  function warnTools(list: SourceNode | undefined): void {
    for (const { value: tool, at } of itemsOf(list).flatMap((item) => asText(item) ?? []))
      if (tools.get(tool) === false) warning(`the tool \`${tool}\``, at, report);
  }
};

/** `place` completes the name of a key that is available elsewhere. */
function warn(map: MapNode | undefined, area: string, report: Report, place = ""): void {
  for (const { key, keyAt } of map?.entries ?? [])
    if (unavailable[area]?.includes(key)) warning(`\`${key}\`${place}`, keyAt, report);
}

function warnLimits(owner: MapNode, report: Report): void {
  warn(asMap(entry(owner, "limits")?.value), "limits", report);
}

function warning(what: string, at: Span, report: Report): void {
  report("FLOW9001", at, `${what}: checked, but not yet available, so \`flow run\` refuses this file`, {
    severity: "warning",
  });
}
