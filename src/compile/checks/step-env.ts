import { entry } from "../../source/document.ts";
import { stepsOf } from "../linked.ts";
import { asMap } from "../read/nodes.ts";
import { namedServers } from "../servers.ts";
import { kindOf } from "../read/kind.ts";
import type { Check } from "./check.ts";

/** `env` of an `agent` or `tool` step reaches its MCP servers, and an agent's `check`: without either it reaches nothing. */
export const checkStepEnv: Check = ({ workflow, report }) => {
  for (const { step } of stepsOf(workflow.scope)) {
    const undo = asMap(entry(step.node, "undo")?.value);
    for (const owner of [step.node, ...(undo ? [undo] : [])]) {
      const env = entry(owner, "env");
      const kind = kindOf(owner);
      if (!env || (kind !== "agent" && kind !== "tool")) continue;
      const agent = (owner === step.node ? workflow.agents : workflow.undoAgents).get(step);
      if (namedServers({ owner, agent }).length > 0 || entry(owner, "check")) continue;
      const message =
        kind === "agent"
          ? "`env` of an agent step reaches its MCP servers and its `check`, and this step has neither; no agent's shell is given it"
          : "`env` of a `tool` step reaches the MCP server of that tool, and this is no tool of one";
      report("FLOW2008", env.keyAt, message);
    }
  }
};
