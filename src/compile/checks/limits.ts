import type { StepKind } from "../../model/plan.ts";
import { entry, type MapNode } from "../../source/document.ts";
import { agentsOf, stepsOf } from "../linked.ts";
import { asMap } from "../read/nodes.ts";
import { anArticle, type Report } from "../report.ts";
import type { Check } from "./check.ts";

const withoutAgents: readonly StepKind[] = ["run", "tool"];
const ofOneAgent = ["depth", "children"];

/** No limit is accepted where nothing could ever reach it. */
export const checkLimits: Check = ({ workflow, report }) => {
  refuse(workflow.shape.node, ofOneAgent, `in a workflow: ${bounds}`, report);
  for (const { step } of stepsOf(workflow.scope)) {
    const { kind } = step.step;
    if (withoutAgents.includes(kind))
      refuse(
        step.node,
        ["cost", "tokens", "turns", ...ofOneAgent],
        `on ${anArticle(kind)} step: no agent runs in it`,
        report,
      );
    if (kind === "steps" || kind === "workflow")
      refuse(step.node, ofOneAgent, `on ${anArticle(kind)} step: ${bounds}`, report);
    const agent = workflow.agents.get(step);
    if (kind === "agent" && agent?.subagents.length === 0 && (step.team ?? agent.team) === undefined)
      refuse(step.node, ofOneAgent, "on this step: its agent has no `subagents`", report);
  }
  for (const { node, subagents, team } of agentsOf(workflow)) {
    if (subagents.length > 0) continue;
    refuse(
      node,
      ["parallel"],
      team ? "in a lead without `subagents`: its team has a `parallel`" : spawnsNobody,
      report,
    );
    if (team === undefined) refuse(node, ofOneAgent, spawnsNobody, report);
  }
};

const spawnsNobody = "in an agent without `subagents`: it spawns nobody";
const bounds = "it bounds what one agent spawns, so write it on an agent step or in an agent";

function refuse(owner: MapNode, keys: readonly string[], why: string, report: Report): void {
  for (const { key, keyAt } of asMap(entry(owner, "limits")?.value)?.entries ?? [])
    if (keys.includes(key)) report("FLOW2008", keyAt, `\`limits.${key}\` makes no sense ${why}`);
}
