import { compileSchema } from "../../jsonschema/compile.ts";
import type { Span } from "../../model/diagnostic.ts";
import { isJsonObject, type Json } from "../../model/json.ts";
import { nearest } from "../../model/names.ts";
import type { Input } from "../../model/plan.ts";
import { entry, type MapNode, nodeAt, type SourceNode, toJson } from "../../source/document.ts";
import { stepsOf } from "../linked.ts";
import { asMap } from "../read/nodes.ts";
import { didYouMean, oneOf, type Report } from "../report.ts";
import type { StepShape } from "../shape.ts";
import type { Check } from "./check.ts";

/** `with` gives an agent or a sub-workflow what it declares: nothing else, nothing missing, constants of the right type. */
export const checkArguments: Check = async ({ workflow, report }) => {
  for (const input of [
    ...workflow.shape.inputs,
    ...[...workflow.agents.values()].flatMap((agent) => agent.agent.inputs),
  ]) {
    if (input.default)
      await checkConstant({
        input,
        value: input.default.json,
        at: input.at,
        node: undefined,
        what: "the default of",
        report,
      });
  }
  for (const { step } of stepsOf(workflow.scope)) {
    const agent = workflow.agents.get(step)?.agent;
    const sub = workflow.workflows.get(step);
    if (agent)
      await checkWith({
        step,
        owner: `agent \`${agent.name}\``,
        inputs: agent.inputs,
        required: !has(step.node, "prompt"),
        report,
      });
    if (sub)
      await checkWith({
        step,
        owner: `workflow \`${sub.shape.file.key}\``,
        inputs: sub.shape.inputs,
        required: true,
        report,
      });
  }
};

interface With {
  readonly step: StepShape;
  readonly owner: string;
  readonly inputs: readonly Input[];
  /** A step's own `prompt` replaces the agent's, so nothing needs its inputs then. */
  readonly required: boolean;
  readonly report: Report;
}

async function checkWith({ step, owner, inputs, required, report }: With): Promise<void> {
  const written = entry(step.node, "with");
  const given = asMap(written?.value);
  if (written && inputs.length === 0) {
    report("FLOW3012", written.keyAt, `${owner} declares no inputs, so \`with\` would go nowhere`, {
      suggestion:
        step.step.kind === "agent"
          ? "declare `inputs` in the agent, or write the values into the step's `prompt`"
          : "declare `inputs` in that workflow",
    });
    return;
  }
  const names = inputs.map((input) => input.name);
  for (const { key, keyAt } of given?.entries ?? []) {
    if (!names.some((name) => name.toLowerCase() === key.toLowerCase())) {
      const near = nearest(key, names);
      report(
        "FLOW3009",
        keyAt,
        `${owner} has no input \`${key}\``,
        near === undefined ? { suggestion: `it has ${oneOf(names)}` } : didYouMean(near),
      );
    }
  }
  for (const input of inputs) {
    const value = given?.entries.find((it) => it.key.toLowerCase() === input.name.toLowerCase())?.value;
    if (!value && !input.default && required) {
      report("FLOW3010", written?.keyAt ?? step.idAt, `${owner} needs the input \`${input.name}\``, {
        related: [{ message: "it is declared here, without a default", at: input.at }],
        suggestion: `add it to \`with\`: \`${input.name}: …\``,
      });
    }
    if (value && !holdsExpression(value))
      await checkConstant({ input, value: toJson(value), at: value.at, node: value, what: "the value for", report });
  }
}

interface Constant {
  readonly input: Input;
  readonly value: Json;
  readonly at: Span;
  readonly node: SourceNode | undefined;
  readonly what: string;
  readonly report: Report;
}

async function checkConstant({ input, value, at, node, what, report }: Constant): Promise<void> {
  if (fitsPlainly(input.schema.json, value)) return;
  const check = await compileSchema(input.schema.json);
  if (!check.ok) return;
  for (const issue of check.value(value)) {
    const place = node && nodeAt(node, issue.path)?.node.at;
    report(
      "FLOW3011",
      place ?? at,
      `${what} input \`${input.name}\` ${issue.message}`,
      node ? { related: [{ message: "the input is declared here", at: input.at }] } : {},
    );
  }
}

/** True for a scalar that plainly fits a schema of only `type` and `enum`: spares loading the validator. */
export function fitsPlainly(schema: Json, value: Json): boolean {
  if (!isJsonObject(schema) || typeof value === "object") return false;
  const { type, enum: choices, ...rest } = schema;
  const plain = Object.keys(rest).every((key) => ["default", "description", "title", "examples"].includes(key));
  const typed = type === undefined || type === typeof value || (type === "integer" && Number.isInteger(value));
  return plain && typed && (choices === undefined || (Array.isArray(choices) && choices.includes(value)));
}

function holdsExpression(node: SourceNode): boolean {
  return JSON.stringify(toJson(node)).includes("${{");
}

function has(node: MapNode, key: string): boolean {
  return entry(node, key) !== undefined;
}
