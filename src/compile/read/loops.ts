import { isJsonObject } from "../../model/json.ts";
import { expandMatrix, itemLimit } from "../../model/matrix.ts";
import type { FailureKind } from "../../model/outcome.ts";
import type { Foreach, Repeat, Retry, StepKind, Template } from "../../model/plan.ts";
import { entry, type MapNode, type SourceNode } from "../../source/document.ts";
import type { Report } from "../report.ts";
import { optional } from "./agent.ts";
import { readDuration } from "./duration.ts";
import { readCondition, type Reader, readTemplate } from "./expression.ts";
import { asMap, booleanOf, numberOf, textOf, textsOf } from "./nodes.ts";
import { type Loops, stepPlace } from "./place.ts";

/** `foreach` and `matrix`, with `parallel` and `fail-fast`. A matrix of constants becomes its list of combinations. */
export function readForeach(reader: Reader, node: MapNode, loops: Loops): Foreach | undefined {
  const foreach = entry(node, "foreach");
  const matrix = entry(node, "matrix");
  const written = foreach ?? matrix;
  if (!written) {
    for (const key of ["parallel", "fail-fast"]) {
      const lone = entry(node, key);
      if (lone)
        reader.report(
          "FLOW2009",
          lone.keyAt,
          `\`${key}\` says how the items of a \`foreach\` or \`matrix\` run, and this step has neither`,
        );
    }
    return undefined;
  }
  if (foreach && matrix) {
    reader.report("FLOW2009", matrix.keyAt, "a step has `foreach` or `matrix`, not both", {
      related: [{ message: "the other is here", at: foreach.keyAt }],
    });
  }
  const place = stepPlace(foreach ? "`foreach`" : "`matrix`", loops);
  const items = readTemplate(reader, written.value, place);
  return {
    items: foreach ? items : combinations(reader.report, written.value, items),
    ...optional("parallel", numberOf(entry(node, "parallel")?.value)),
    failFast: booleanOf(entry(node, "fail-fast")?.value) ?? true,
    matrix: !foreach,
  };
}

/** A constant matrix as the list of its combinations; one with expressions stays as written and is expanded when it runs. */
function combinations(report: Report, node: SourceNode, template: Template): Template {
  if (template.type !== "data" || !isJsonObject(template.json)) return template;
  const list = expandMatrix(template.json);
  if (list.length === 0) report("FLOW2013", node.at, "this matrix has no combination");
  if (list.length > itemLimit) report("FLOW2013", node.at, `this matrix has more than ${itemLimit} combinations`);
  return { type: "data", json: list };
}

export function readRepeat(reader: Reader, node: SourceNode | undefined, loops: Loops): Repeat | undefined {
  const map = asMap(node);
  const until = map && entry(map, "until")?.value;
  const read = until && readCondition(reader, until, stepPlace("`until`", loops, ["result"]));
  if (!map || !read) return undefined;
  return {
    until: { source: read.source, at: read.at },
    max: numberOf(entry(map, "max")?.value) ?? 1,
    onMax: textOf(entry(map, "on-max")?.value) === "accept" ? "accept" : "fail",
  };
}

const forCommands: readonly FailureKind[] = ["exit", "signal", "timeout", "tool_error", "unavailable"];
const forAgents: readonly FailureKind[] = ["rate_limit", "provider_error", "unavailable", "timeout"];

/** `retry`: a number of extra tries, or all its settings. */
export function readRetry(node: SourceNode | undefined, kind: StepKind, report: Report): Retry | undefined {
  if (!node) return undefined;
  const map = asMap(node);
  const get = (key: string): SourceNode | undefined => map && entry(map, key)?.value;
  const duration = (key: string, preset: number): number => {
    const value = get(key);
    return (value && readDuration(value, report)) ?? preset;
  };
  const on = get("on");
  return {
    max: numberOf(node) ?? numberOf(get("max")) ?? 0,
    backoff: duration("backoff", 1_000),
    factor: numberOf(get("factor")) ?? 2,
    jitter: booleanOf(get("jitter")) ?? true,
    cap: duration("cap", 60_000),
    on: on ? (textsOf(on) as FailureKind[]) : retriedByDefault(kind),
  };
}

function retriedByDefault(kind: StepKind): readonly FailureKind[] {
  if (kind === "agent") return forAgents;
  if (kind === "run" || kind === "tool") return forCommands;
  return [...new Set([...forCommands, ...forAgents])];
}
