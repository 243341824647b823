import type { Template } from "../../model/plan.ts";
import { entry, type SourceNode } from "../../source/document.ts";
import { stepsOf } from "../linked.ts";
import { asMap, entriesOf } from "../read/nodes.ts";
import type { Report } from "../report.ts";
import type { Check } from "./check.ts";

const protectedName = /^(PATH|LD_.*|NODE_OPTIONS|BASH_ENV|ENV|IFS|GIT_.*)$/;
const fromOutside = /\b(steps|item|matrix|previous|result)\b/i;

/** Variables that decide what a process executes are set by the author, never from what a step gave. */
export const checkEnvironment: Check = ({ workflow, report }) => {
  const { node } = workflow.shape;
  const defaults = asMap(entry(node, "defaults")?.value);
  for (const env of [entry(node, "env")?.value, defaults && entry(defaults, "env")?.value]) checkNamesOf(env, report);
  for (const { step } of stepsOf(workflow.scope)) {
    const undo = asMap(entry(step.node, "undo")?.value);
    for (const owner of [step.node, ...(undo ? [undo] : [])]) {
      const env = entry(owner, "env")?.value;
      checkNamesOf(env, report);
      for (const { key, keyAt, value } of entriesOf(env)) {
        if (!protectedName.test(key) || !readsOutputs(step.step.inputs, key, value)) continue;
        report(
          "FLOW8003",
          keyAt,
          `\`${key}\` decides what a process executes, so it cannot be set from a step's output`,
          { suggestion: "use a name of your own, and set this one in the script from values you check" },
        );
      }
    }
  }
};

function checkNamesOf(env: SourceNode | undefined, report: Report): void {
  for (const { key, keyAt } of entriesOf(env)) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(key))
      report("FLOW3001", keyAt, `\`${key}\` cannot be the name of an environment variable`, {
        suggestion: "use letters, digits and `_`",
      });
  }
}

function readsOutputs(inputs: Template, name: string, value: SourceNode): boolean {
  const env = inputs.type === "map" ? inputs.entries.find((it) => it.name === "env")?.value : undefined;
  const template = env?.type === "map" ? env.entries.find((it) => it.name === name)?.value : undefined;
  if (template?.type === "expression") return fromOutside.test(template.source);
  if (template?.type === "text")
    return template.parts.some((part) => typeof part !== "string" && fromOutside.test(part.source));
  return (
    value.kind === "scalar" &&
    typeof value.value === "string" &&
    value.value.includes("${{") &&
    fromOutside.test(value.value)
  );
}
