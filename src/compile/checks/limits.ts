import type { StepKind } from "../../model/plan.ts";
import { entry, type MapNode } from "../../source/document.ts";
import { agentsOf, stepsOf } from "../linked.ts";
import { asMap } from "../read/nodes.ts";
import { anArticle, type Report } from "../report.ts";
import type { Check } from "./check.ts";

const withoutAgents: readonly StepKind[] = ["run", "tool"];

/** No limit is accepted where nothing could ever reach it. */
export const checkLimits: Check = ({ workflow, report }) => {
  for (const { step } of stepsOf(workflow.scope)) {
    const { kind } = step.step;
    if (withoutAgents.includes(kind))
      refuse(step.node, ["cost", "tokens", "turns"], `on ${anArticle(kind)} step: no agent runs in it`, report);
  }
  for (const { node } of agentsOf(workflow))
    refuse(node, ["parallel"], "in an agent: it bounds the runs of a step, so write it there", report);
};

function refuse(owner: MapNode, keys: readonly string[], why: string, report: Report): void {
  for (const { key, keyAt } of asMap(entry(owner, "limits")?.value)?.entries ?? [])
    if (keys.includes(key)) report("FLOW2008", keyAt, `\`limits.${key}\` makes no sense ${why}`);
}
