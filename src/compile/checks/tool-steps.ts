import { compileSchema } from "../../jsonschema/compile.ts";
import { fitsPlainly } from "../../jsonschema/fits-plainly.ts";
import { isJsonObject, type Json, type JsonObject, own } from "../../model/json.ts";
import { nearest } from "../../model/names.ts";
import { entry, type MapNode, nodeAt, type SourceNode, toJson } from "../../source/document.ts";
import { stepsOf } from "../linked.ts";
import { asMap, asText } from "../read/nodes.ts";
import { didYouMean, oneOf, type Report } from "../report.ts";
import type { Check } from "./check.ts";

/** The `with` of a `tool` step, and of an `undo` that is one, fits the tool's parameters as far as it is constant. */
export const checkToolSteps: Check = async ({ workflow, report, toolParameters }) => {
  for (const { step } of stepsOf(workflow.scope)) {
    const undo = asMap(entry(step.node, "undo")?.value);
    for (const owner of [step.node, ...(undo ? [undo] : [])]) {
      const tool = asText(entry(owner, "tool")?.value);
      const parameters = tool && (await toolParameters(tool.value));
      if (tool && parameters) await checkCall(owner, { name: tool.value, at: tool.at, parameters, report });
    }
  }
};

interface Called {
  readonly name: string;
  readonly at: SourceNode["at"];
  /** JSON Schema with root `type: object`. */
  readonly parameters: JsonObject;
  readonly report: Report;
}

async function checkCall(owner: MapNode, { name, at, parameters, report }: Called): Promise<void> {
  const written = entry(owner, "with");
  const given = asMap(written?.value)?.entries ?? [];
  for (const key of requiredBy(parameters)) {
    if (given.some((it) => it.key === key)) continue;
    const suggestion = `add it to \`with\`: \`${key}: …\``;
    report("FLOW3010", written?.keyAt ?? at, `tool \`${name}\` needs \`${key}\``, { suggestion });
  }
  const { properties, additionalProperties } = parameters;
  const known = isJsonObject(properties) ? properties : {};
  for (const { key, keyAt, value } of given) {
    const schema = own(known, key);
    if (schema !== undefined) await checkConstant({ key, schema, value, name, report });
    else if (additionalProperties === false) reportUnknown(key, keyAt, { name, report, names: Object.keys(known) });
  }
}

function requiredBy({ required }: JsonObject): string[] {
  return Array.isArray(required) ? required.filter((key) => typeof key === "string") : [];
}

function reportUnknown(
  key: string,
  at: SourceNode["at"],
  { name, report, names }: Pick<Called, "name" | "report"> & { readonly names: readonly string[] },
): void {
  const near = nearest(key, names);
  const hint = near === undefined ? { suggestion: `it takes ${oneOf(names)}` } : didYouMean(near);
  report("FLOW3009", at, `tool \`${name}\` takes no \`${key}\``, hint);
}

interface Constant extends Pick<Called, "name" | "report"> {
  readonly key: string;
  readonly schema: Json;
  readonly value: SourceNode;
}

async function checkConstant({ key, schema, value, name, report }: Constant): Promise<void> {
  const constant = toJson(value);
  if (JSON.stringify(constant).includes("${{") || fitsPlainly(schema, constant)) return;
  const check = await compileSchema(schema);
  for (const issue of check.ok ? check.value(constant) : [])
    report(
      "FLOW3011",
      nodeAt(value, issue.path)?.node.at ?? value.at,
      `\`${key}\` of tool \`${name}\` ${issue.message}`,
    );
}
