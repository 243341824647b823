import type { StepKind } from "../../model/plan.ts";
import { entry, type MapNode } from "../../source/document.ts";
import { stepsOf } from "../linked.ts";
import { asMap, entriesOf } from "../read/nodes.ts";
import { kindOf } from "../read/kind.ts";
import { anArticle, type Report } from "../report.ts";
import type { Check } from "./check.ts";

/** Keys every kind of step may be written with, but that mean nothing on some: the kinds and the reason. */
export const misfits: { readonly [key: string]: { readonly kinds: readonly StepKind[]; readonly reason: string } } = {
  retry: { kinds: ["set", "approve"], reason: "there is nothing to try again" },
  timeout: { kinds: ["set"], reason: "it takes no time" },
  cache: { kinds: ["set", "approve"], reason: "there is nothing to save by reusing it" },
  env: {
    kinds: ["set", "approve", "steps", "workflow"],
    reason: "it starts no process; give `env` to the steps inside, or to the whole workflow",
  },
  with: { kinds: ["run", "steps", "approve", "set"], reason: "only an agent, a tool or another workflow takes inputs" },
  limits: { kinds: ["set", "approve"], reason: "it spends nothing" },
  undo: { kinds: ["set", "approve"], reason: "it changes nothing outside" },
  rerun: {
    kinds: ["set", "approve", "steps", "workflow"],
    reason: "only `agent`, `run` and `tool` can be cut off in the middle",
  },
  isolation: { kinds: ["set", "approve", "tool"], reason: "it writes no files" },
};

/** No key is accepted and then ignored: one that means nothing on a kind is refused with the reason. */
export const checkKeyFit: Check = ({ workflow, report }) => {
  for (const { step } of stepsOf(workflow.scope)) {
    checkKeys(step.node, step.step.kind, report);
    const cache = entry(step.node, "cache");
    const undo = entry(step.node, "undo");
    if (cache && undo) {
      report(
        "FLOW2009",
        cache.keyAt,
        "a step with `undo` has an effect outside, so its outputs cannot stand for it: `cache` and `undo` exclude each other",
        {
          related: [{ message: "`undo` is here", at: undo.keyAt }],
        },
      );
    }
    const undoNode = asMap(undo?.value);
    if (undoNode) checkUndo(undoNode, report);
  }
};

function checkUndo(node: MapNode, report: Report): void {
  const kind = kindOf(node);
  if (!kind) return;
  checkKeys(node, kind, report);
  if (!["steps", "approve", "set"].includes(kind)) return;
  const at = entriesOf(node).find((it) => it.key === kind)?.keyAt ?? node.at;
  report(
    "FLOW2008",
    at,
    `\`undo\` cannot be ${anArticle(kind)} step: it is one command, tool call, agent or workflow that takes the effect back`,
  );
}

function checkKeys(node: MapNode, kind: StepKind, report: Report): void {
  for (const { key, keyAt } of node.entries) {
    const misfit = Object.hasOwn(misfits, key) ? misfits[key] : undefined;
    if (misfit?.kinds.includes(kind))
      report("FLOW2008", keyAt, `\`${key}\` makes no sense on ${anArticle(kind)} step: ${misfit.reason}`);
  }
}
