import { nearest } from "../../model/names.ts";
import { entry } from "../../source/document.ts";
import { stepsOf } from "../linked.ts";
import { asText, itemsOf } from "../read/nodes.ts";
import { didYouMean, oneOf } from "../report.ts";
import type { Word } from "../shape.ts";
import type { Check, CheckSource } from "./check.ts";

/** Every agent a step runs may be run there, has something to say, and is offered tools that exist. */
export const checkAgents: Check = (source) => {
  const { workflow, report } = source;
  for (const agent of new Set([...workflow.agents.values(), ...workflow.shape.agents.values()])) {
    for (const tool of agent.tools) checkTool(source, tool);
  }
  for (const { step } of stepsOf(workflow.scope)) {
    const written = entry(step.node, "tools")?.value;
    for (const item of itemsOf(written)) {
      const text = asText(item);
      if (step.step.kind === "agent" && text) checkTool(source, { text: text.value, at: text.at });
    }
    if (step.step.kind === "tool") checkToolStep(source, entry(step.node, "tool")?.value);
    const agent = workflow.agents.get(step);
    const at = entry(step.node, "agent")?.value.at ?? step.idAt;
    if (!agent) continue;
    if (agent.disabled) report("FLOW6004", at, `agent \`${agent.agent.name}\` is disabled in its file`);
    else if (agent.agent.mode === "subagent")
      report("FLOW6004", at, `agent \`${agent.agent.name}\` is only for other agents (\`mode: subagent\`)`, {
        suggestion: "set `mode: all` in its file",
      });
    if (!agent.agent.prompt && !entry(step.node, "prompt")) {
      report(
        "FLOW6003",
        at,
        `agent \`${agent.agent.name}\` has no \`prompt\`, and neither has this step: nothing would be asked`,
        { suggestion: "add a `prompt` to the step" },
      );
    }
  }
};

function checkTool({ workflow, report, tools }: CheckSource, tool: Word): void {
  const custom = workflow.shape.tools;
  if (tools.has(tool.text) || custom.includes(tool.text) || /^mcp__[\w-]+__[\w-]+$/.test(tool.text)) return;
  const known = [...tools.keys(), ...custom];
  const near = nearest(tool.text, known);
  report(
    "FLOW6002",
    tool.at,
    `there is no tool \`${tool.text}\``,
    near === undefined ? { suggestion: `there are ${oneOf(known, 30)}, and \`mcp__server__tool\`` } : didYouMean(near),
  );
}

const refusedAsStep: { readonly [tool: string]: string } = {
  Bash: "use a `run` step",
  Task: "use an `agent` step",
  Skill: "use an `agent` step with `skills`",
  TodoWrite: "only an agent keeps a plan",
};

function checkToolStep(source: CheckSource, node: Parameters<typeof asText>[0]): void {
  const text = asText(node);
  if (!text) return;
  const instead = Object.hasOwn(refusedAsStep, text.value) ? refusedAsStep[text.value] : undefined;
  if (instead) source.report("FLOW6002", text.at, `\`tool: ${text.value}\` is not a step`, { suggestion: instead });
  else checkTool(source, { text: text.value, at: text.at });
}
