import { longestDuration, parseDuration } from "../../model/duration.ts";
import type { SourceNode } from "../../source/document.ts";
import type { Report } from "../report.ts";
import { textOf } from "./nodes.ts";

/** Milliseconds of a duration text that passed the schema; bounded, because a timer of 2^31 ms fires at once. */
export function readDuration(node: SourceNode, report: Report): number | undefined {
  const text = textOf(node);
  if (text === undefined) return undefined;
  const duration = parseDuration(text);
  if (duration === undefined || duration > longestDuration) {
    report("FLOW2012", node.at, `\`${text.slice(0, 40)}\` is not a duration between 1ms and 596h`, {
      suggestion: "write a duration such as `30s`, `10m` or `1h30m`",
    });
    return undefined;
  }
  return duration;
}
