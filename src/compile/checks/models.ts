import { entry, type SourceNode, toJson } from "../../source/document.ts";
import { agentsOf, stepsOf } from "../linked.ts";
import { asMap, asText, itemsOf } from "../read/nodes.ts";
import type { Check } from "./check.ts";

/** Every model that is written out is one that flow can ask. What is an expression is known only when its step runs. */
export const checkModels: Check = async ({ workflow, report, modelProblem }) => {
  const { node } = workflow.shape;
  const defaults = asMap(entry(node, "defaults")?.value);
  const steps = [...stepsOf(workflow.scope)].map(({ step }) => step.node);
  const agents = [...agentsOf(workflow)].map((agent) => agent.node);
  for (const owner of [node, ...(defaults ? [defaults] : []), ...steps, ...agents]) {
    const written = entry(owner, "model")?.value;
    if (written !== undefined) await checkModel(written);
  }

  async function checkModel(written: SourceNode): Promise<void> {
    for (const item of itemsOf(written)) {
      const model = toJson(item);
      if (JSON.stringify(model).includes("${{")) continue;
      const problem = await modelProblem(model);
      if (problem === undefined) continue;
      const { message, suggestion } = problem;
      const map = asMap(item);
      const at = (map && entry(map, "id")?.value.at) ?? item.at;
      // Whoever writes a password into an address does not want it printed beside the mistake.
      const holdsPassword = (map && asText(entry(map, "base-url")?.value)?.value.includes("@")) === true;
      if (suggestion === undefined) report("FLOW6009", at, message, holdsPassword ? { confidential: true } : {});
      else report("FLOW6010", at, message, { severity: "warning", suggestion });
    }
  }
};
