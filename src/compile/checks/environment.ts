import { references } from "../../expr/inspect.ts";
import { parseExpression } from "../../expr/parse.ts";
import { scanTemplate } from "../../expr/template.ts";
import { entry, type SourceNode } from "../../source/document.ts";
import { stepsOf } from "../linked.ts";
import { asMap, asText, entriesOf } from "../read/nodes.ts";
import type { Report } from "../report.ts";
import type { Check } from "./check.ts";

const protectedName = /^(PATH|LD_.*|NODE_OPTIONS|BASH_ENV|ENV|IFS|GIT_.*)$/;
const fromOutside: ReadonlySet<string> = new Set(["steps", "item", "matrix", "previous", "result"]);

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
        if (!protectedName.test(key) || !readsOutputs(value)) continue;
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

function readsOutputs(node: SourceNode): boolean {
  const parts = scanTemplate(asText(node)?.value ?? "");
  return (parts.ok ? parts.value : []).some((part) => {
    const parsed = "source" in part ? parseExpression(part.source) : undefined;
    return parsed?.ok === true && references(parsed.value).some(({ context }) => fromOutside.has(context));
  });
}
