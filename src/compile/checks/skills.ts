import { entry } from "../../source/document.ts";
import { agentsOf } from "../linked.ts";
import { asText, itemsOf } from "../read/nodes.ts";
import type { Check } from "./check.ts";

/** Every skill an agent lists is there and can be read. The skills are read only for a workflow that names one. */
export const checkSkills: Check = async ({ workflow, skillProblems, add }) => {
  for (const { node } of agentsOf(workflow)) {
    for (const item of itemsOf(entry(node, "skills")?.value)) {
      const name = asText(item);
      if (name) add(await skillProblems(workflow.shape.file.key, { text: name.value, at: name.at }));
    }
  }
};
