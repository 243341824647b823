import { nearest } from "../../model/names.ts";
import { entry, type MapNode } from "../../source/document.ts";
import { agentsOf, stepsOf } from "../linked.ts";
import { asMap, asText, itemsOf } from "../read/nodes.ts";
import { didYouMean, oneOf } from "../report.ts";
import type { AgentShape, Word } from "../shape.ts";
import type { Check, CheckSource } from "./check.ts";

/** Every agent a step runs may be run there, has something to say, and is offered tools that exist. */
export const checkAgents: Check = (source) => {
  const { workflow } = source;
  for (const agent of agentsOf(workflow)) {
    for (const tool of agent.tools) checkTool(source, tool);
  }
  for (const { step } of stepsOf(workflow.scope)) {
    const written = entry(step.node, "tools")?.value;
    for (const item of itemsOf(written)) {
      const text = asText(item);
      if (step.step.kind === "agent" && text) checkTool(source, { text: text.value, at: text.at });
    }
    if (step.step.kind === "tool") checkToolStep(source, entry(step.node, "tool")?.value);
    const undo = asMap(entry(step.node, "undo")?.value);
    const undoTool = undo && entry(undo, "tool")?.value;
    if (undoTool) checkToolStep(source, undoTool);
    checkUse(step.node, workflow.agents.get(step), source);
    if (undo) checkUse(undo, workflow.undoAgents.get(step), source);
  }
};

/** `owner` is the step, or the `undo`, that runs the agent. */
function checkUse(owner: MapNode, agent: AgentShape | undefined, { report, defaults, asksAbout }: CheckSource): void {
  const at = entry(owner, "agent")?.value.at;
  if (!agent || !at) return;
  const { name, mode, prompt } = agent.agent;
  const disabled = defaults?.disabled(name);
  if (disabled) {
    const related = [{ message: "it is disabled here", at: disabled }];
    report("FLOW6004", at, `agent \`${name}\` is disabled by the configuration`, { related });
  } else if (agent.disabled) report("FLOW6004", at, `agent \`${name}\` is disabled in its file`);
  else if (mode === "subagent" && asksAbout !== true)
    report("FLOW6004", at, `agent \`${name}\` is only for other agents (\`mode: subagent\`)`, {
      suggestion: "set `mode: all` in its file",
    });
  if (!prompt && !entry(owner, "prompt")) {
    report("FLOW6003", at, `agent \`${name}\` has no \`prompt\`, and neither has this step: nothing would be asked`, {
      suggestion: "add a `prompt` to the step",
    });
  }
}

function checkTool({ workflow, report, tools }: CheckSource, tool: Word): void {
  const custom = workflow.shape.tools;
  if (tools.get(tool.text) === false) {
    const suggestion = "remove it: whoever has a `team`, and each of its members, has its part of those tools";
    report("FLOW6002", tool.at, `\`${tool.text}\` comes with a \`team\`, and not by its name`, { suggestion });
    return;
  }
  if (tools.has(tool.text) || custom.includes(tool.text) || tool.text.startsWith("mcp__")) return;
  const known = [...[...tools.keys()].filter((name) => tools.get(name) === true), ...custom];
  report("FLOW6002", tool.at, `there is no tool \`${tool.text}\``, () => {
    const near = nearest(tool.text, known);
    const all = { suggestion: `there are ${oneOf(known, 30)}, and \`mcp__server__tool\`` };
    return near === undefined ? all : didYouMean(near);
  });
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
  else if (text.value.startsWith("mcp__") && !/^mcp__.+?__[\w-]+$/.test(text.value))
    source.report("FLOW6002", text.at, `\`tool: ${text.value}\` names no tool`, {
      suggestion: "write `mcp__server__tool`",
    });
  else checkTool(source, { text: text.value, at: text.at });
}
