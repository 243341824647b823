import type { RuleData } from "../../model/plan.ts";
import { type SourceNode, toJson } from "../../source/document.ts";
import { entriesOf, itemsOf } from "./nodes.ts";

/** A `permissions:` block with the line of each of its rules. */
export function readPermissions(node: SourceNode): RuleData {
  const lines: [string, number][] = [];
  for (const { key, keyAt, value } of entriesOf(node)) {
    if (value.kind === "list") itemsOf(value).forEach((item, index) => lines.push([`${key}/${index}`, item.at.line]));
    else lines.push([key, keyAt.line]);
    for (const inner of entriesOf(value)) lines.push([`${key}/${inner.key}`, inner.keyAt.line]);
  }
  return { json: toJson(node), at: { file: node.at.file, lines: Object.fromEntries(lines) } };
}
