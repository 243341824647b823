import { entry, nodeAt, type SourceNode, toJson } from "../../source/document.ts";
import { agentsOf, stepsOf } from "../linked.ts";
import type { Check, CheckSource } from "./check.ts";

/** Every permission rule can be read, and some call of some tool is what it speaks of. */
export const checkPermissions: Check = async (source) => {
  const { workflow } = source;
  await checkBlock(entry(workflow.shape.node, "permissions")?.value, source);
  for (const { step } of stepsOf(workflow.scope))
    if (step.step.kind === "agent") await checkBlock(entry(step.node, "permissions")?.value, source);
  for (const { node } of agentsOf(workflow)) await checkBlock(entry(node, "permissions")?.value, source);
};

async function checkBlock(
  block: SourceNode | undefined,
  { workflow, report, ruleProblems }: CheckSource,
): Promise<void> {
  if (block?.kind !== "map") return;
  for (const { path, message, suggestion, broken } of await ruleProblems(toJson(block), workflow.shape.tools)) {
    const found = nodeAt(block, path);
    report(broken ? "FLOW6008" : "FLOW6007", found?.keyAt ?? found?.node.at ?? block.at, message, {
      severity: broken ? "error" : "warning",
      ...(suggestion !== undefined && { suggestion }),
    });
  }
}
