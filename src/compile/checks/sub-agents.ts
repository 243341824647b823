import { entry } from "../../source/document.ts";
import { agentsOf, stepsOf } from "../linked.ts";
import { asMap, asText, itemsOf, numberOf } from "../read/nodes.ts";
import type { AgentShape } from "../shape.ts";
import type { Check, CheckSource } from "./check.ts";

/** An agent that is to spawn has somebody to, and one that has somebody may. */
export const checkSubAgents: Check = (source) => {
  const { workflow } = source;
  for (const agent of agentsOf(workflow)) {
    checkDepth(agent, source);
    for (const { text, at } of agent.tools) if (text === "Task") checkOffer(agent, at, source);
  }
  for (const { step } of stepsOf(workflow.scope)) {
    const agent = workflow.agents.get(step);
    if (!agent || step.team) continue;
    for (const item of itemsOf(entry(step.node, "tools")?.value))
      if (asText(item)?.value === "Task") checkOffer(agent, item.at, source);
  }
};

function checkDepth({ node, subagents }: AgentShape, { report }: CheckSource): void {
  const depth = entryOfLimits(node, "depth");
  if (depth && numberOf(depth.value) === 0 && subagents.length > 0)
    report("FLOW2008", depth.keyAt, "`limits.depth: 0` lets nobody be spawned, and `subagents` names who may be", {
      suggestion: "remove one of them; a step that wants no sub-agents says `limits: { depth: 0 }` itself",
    });
}

function checkOffer(agent: AgentShape, at: AgentShape["node"]["at"], { report }: CheckSource): void {
  if (agent.subagents.length > 0 || agent.team || agent.foreign) return;
  report("FLOW6004", at, `\`Task\` has nobody to spawn: agent \`${agent.agent.name}\` has no \`subagents\``, {
    suggestion: "name them, as in `subagents: [explore]`; the tool comes with them",
  });
}

function entryOfLimits(node: AgentShape["node"], key: string): ReturnType<typeof entry> {
  const limits = asMap(entry(node, "limits")?.value);
  return limits && entry(limits, key);
}
