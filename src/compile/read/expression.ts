import { calls, references } from "../../expr/inspect.ts";
import { type ExpressionError, parseExpression } from "../../expr/parse.ts";
import { scanTemplate } from "../../expr/template.ts";
import type { Code } from "../../model/codes.ts";
import type { Expression, Named, Template } from "../../model/plan.ts";
import {
  locate,
  type MapNode,
  type ScalarNode,
  type SourceDocument,
  type SourceNode,
  toJson,
} from "../../source/document.ts";
import { asText } from "./nodes.ts";
import type { Report } from "../report.ts";
import type { Place, Use } from "../shape.ts";
import { absenceOf } from "./place.ts";

/** What reading an expression needs; every expression read is added to `uses`. */
export interface Reader {
  readonly document: SourceDocument;
  readonly report: Report;
  readonly uses: Use[];
}

const nothing: Template = { type: "data", json: null };

/** Any value that may hold expressions. What holds none becomes plain data. */
export function readTemplate(reader: Reader, node: SourceNode, place: Place): Template {
  switch (node.kind) {
    case "scalar":
      return typeof node.value === "string"
        ? readText(reader, node, node.value, place)
        : { type: "data", json: node.value };
    case "list": {
      const items = node.items.map((item) => readTemplate(reader, item, place));
      return items.every(isData) ? { type: "data", json: toJson(node) } : { type: "list", items };
    }
    case "map": {
      const entries = readEntries(reader, node, place);
      return entries.every((entry) => isData(entry.value))
        ? { type: "data", json: toJson(node) }
        : { type: "map", entries };
    }
  }
}

export function readEntries(reader: Reader, map: MapNode, place: Place): Named<Template>[] {
  return map.entries.map((entry) => {
    if (entry.key.includes("${{"))
      reader.report("FLOW5004", entry.keyAt, "an expression cannot be a key; keys are fixed when the file is read");
    return { name: entry.key, value: readTemplate(reader, entry.value, place) };
  });
}

function isData(template: Template): boolean {
  return template.type === "data";
}

function readText(reader: Reader, node: ScalarNode, text: string, place: Place): Template {
  if (!text.includes("${{")) return { type: "data", json: text };
  const parts = scanTemplate(text);
  if (!parts.ok) {
    reportError(reader, node, 0, parts.error);
    return nothing;
  }
  const read = parts.value.map((part) => ("text" in part ? part.text : readExpression(reader, node, part, place)));
  if (read.some((part) => part === undefined)) return nothing;
  const known = read.filter((part) => part !== undefined);
  const [only] = known;
  if (known.length === 1 && only !== undefined && typeof only !== "string") return { type: "expression", ...only };
  return { type: "text", parts: known };
}

function readExpression(
  reader: Reader,
  node: ScalarNode,
  part: { readonly source: string; readonly offset: number },
  place: Place,
): Expression | undefined {
  const parsed = parseExpression(part.source);
  if (!parsed.ok) {
    reportError(reader, node, part.offset, parsed.error);
    return undefined;
  }
  const use: Use = {
    parsed: parsed.value,
    source: part.source,
    references: references(parsed.value),
    place,
    at: locate(reader.document, node, part.offset, part.source.length),
    span: (offset, length) => locate(reader.document, node, part.offset + offset, length),
  };
  reader.uses.push(use);
  checkPlace(reader.report, use);
  return { source: part.source, at: use.at };
}

/** `if`, `until` and edge conditions: a bare expression, or exactly one `${{ }}` with nothing around it. */
export function readCondition(
  reader: Reader,
  node: SourceNode,
  place: Place,
): (Expression & { readonly use: Use | undefined }) | undefined {
  const scalar = node.kind === "scalar" ? node : undefined;
  if (typeof scalar?.value === "boolean") {
    const value = String(scalar.value);
    return { source: value, at: scalar.at, use: undefined };
  }
  const text = asText(node);
  if (!text) return undefined;
  const part = conditionPart(reader, text);
  if (!part) return undefined;
  const expression = readExpression(reader, text, part, place);
  return expression && { ...expression, use: reader.uses.at(-1) };
}

function conditionPart(
  reader: Reader,
  node: ScalarNode & { readonly value: string },
): { source: string; offset: number } | undefined {
  if (!node.value.includes("${{")) {
    const source = node.value.trim();
    return { source, offset: node.value.indexOf(source) };
  }
  const parts = scanTemplate(node.value);
  if (!parts.ok) {
    reportError(reader, node, 0, parts.error);
    return undefined;
  }
  const [only] = parts.value;
  if (parts.value.length === 1 && only && "source" in only) return only;
  reader.report("FLOW5005", node.at, "text around `${{ }}` makes this a string, and a string is not a condition", {
    suggestion: "write the whole condition as one expression, without `${{ }}`",
  });
  return undefined;
}

/** Reports every `${{` in a value that is fixed when the file is read, and says whether there was one. */
export function refuseExpressions(reader: Reader, node: SourceNode | undefined, what: string): boolean {
  const inner = node?.kind === "list" ? node.items : node?.kind === "map" ? node.entries.map(({ value }) => value) : [];
  const found = inner.filter((item) => refuseExpressions(reader, item, what));
  const text = asText(node);
  const at = text?.value.indexOf("${{") ?? -1;
  if (!text || at < 0) return found.length > 0;
  reader.report(
    "FLOW5004",
    locate(reader.document, text, at, 3),
    `${what} cannot hold an expression; it is fixed when the file is read`,
  );
  return true;
}

function checkPlace(report: Report, use: Use): void {
  for (const reference of use.references) {
    if (use.place.contexts.has(reference.context)) continue;
    const at = use.span(reference.offset, reference.context.length);
    if (reference.context === "secrets") {
      report("FLOW8001", at, `\`secrets\` may be read only in \`env\` and \`mcp\`, not in ${use.place.what}`, {
        suggestion: "give the secret to the command in `env:` and read the variable there",
      });
    } else {
      report(
        "FLOW5003",
        at,
        `\`${reference.context}\` has no value in ${use.place.what}: ${absenceOf(reference.context)}`,
      );
    }
  }
  if (use.place.status) return;
  for (const call of calls(use.parsed)) {
    if (["success", "failure", "always", "cancelled"].includes(call.name)) {
      report(
        "FLOW5013",
        use.span(call.offset, call.length),
        `\`${call.name}()\` is a status function and has a meaning only in a step's \`if\`, not in ${use.place.what}`,
      );
    }
  }
}

const codeOf: { readonly [kind in ExpressionError["kind"]]: Code } = {
  syntax: "FLOW5001",
  unknown: "FLOW5002",
  limit: "FLOW5014",
  evaluation: "FLOW5001",
  missing: "FLOW5001",
};

function reportError(reader: Reader, node: ScalarNode, offset: number, error: ExpressionError): void {
  const at = locate(reader.document, node, offset + error.offset, Math.max(1, error.length));
  const suggestion = error.suggestion && error.suggestion.charAt(0).toLowerCase() + error.suggestion.slice(1);
  reader.report(codeOf[error.kind], at, inPlainWords(error.message), { ...(suggestion && { suggestion }) });
}

/** The package of the expression language speaks GitHub's jargon. */
function inPlainWords(message: string): string {
  const [, what, name] = /^Unrecognized (named-value|function): '(.*)'$/s.exec(message) ?? [];
  if (what === undefined) return message.charAt(0).toLowerCase() + message.slice(1);
  return what === "function" ? `there is no function \`${name}\`` : `there is no context \`${name}\``;
}
