import { compileSchema } from "../../jsonschema/compile.ts";
import { fitsPlainly } from "../../jsonschema/fits-plainly.ts";
import type { Span } from "../../model/diagnostic.ts";
import type { Json } from "../../model/json.ts";
import { nearest } from "../../model/names.ts";
import type { Input } from "../../model/plan.ts";
import { entry, type MapNode, nodeAt, type SourceNode, toJson } from "../../source/document.ts";
import { agentsOf, type LinkedWorkflow, stepsOf } from "../linked.ts";
import { asMap } from "../read/nodes.ts";
import { didYouMean, oneOf, type Report } from "../report.ts";
import type { AgentShape } from "../shape.ts";
import type { Check } from "./check.ts";

/** `with` gives an agent or a sub-workflow what it declares: nothing else, nothing missing, constants of the right type. */
export const checkArguments: Check = async ({ workflow, report }) => {
  for (const input of [...workflow.shape.inputs, ...[...agentsOf(workflow)].flatMap((agent) => agent.agent.inputs)]) {
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
    const undo = asMap(entry(step.node, "undo")?.value);
    await checkAgentWith(step.node, step.idAt, workflow.agents.get(step));
    if (undo) await checkAgentWith(undo, undo.at, workflow.undoAgents.get(step));
    await checkWorkflowWith(step.node, step.idAt, workflow.workflows.get(step));
    if (undo) await checkWorkflowWith(undo, undo.at, workflow.undoWorkflows.get(step));
  }

  async function checkAgentWith(node: MapNode, at: Span, agent: AgentShape | undefined): Promise<void> {
    if (!agent) return;
    const { name, inputs } = agent.agent;
    const required = entry(node, "prompt") === undefined;
    await checkWith({ node, at, isAgent: true, owner: `agent \`${name}\``, inputs, required, report });
  }

  async function checkWorkflowWith(node: MapNode, at: Span, called: LinkedWorkflow | undefined): Promise<void> {
    if (!called) return;
    const { file, inputs } = called.shape;
    await checkWith({ node, at, isAgent: false, owner: `workflow \`${file.key}\``, inputs, required: true, report });
  }
};

interface With {
  /** The step, or the `undo`, that holds `with`. */
  readonly node: MapNode;
  readonly at: Span;
  readonly isAgent: boolean;
  readonly owner: string;
  readonly inputs: readonly Input[];
  /** A step's own `prompt` replaces the agent's, so nothing needs its inputs then. */
  readonly required: boolean;
  readonly report: Report;
}

async function checkWith({ node, at, isAgent, owner, inputs, required, report }: With): Promise<void> {
  const written = entry(node, "with");
  const given = asMap(written?.value);
  if (written && inputs.length === 0) {
    report("FLOW3012", written.keyAt, `${owner} declares no inputs, so \`with\` would go nowhere`, {
      suggestion: isAgent
        ? "declare `inputs` in the agent, or write the values into the step's `prompt`"
        : "declare `inputs` in that workflow",
    });
    return;
  }
  const names = inputs.map((input) => input.name);
  for (const { key, keyAt } of given?.entries ?? []) {
    if (!names.some((name) => name.toLowerCase() === key.toLowerCase())) {
      report("FLOW3009", keyAt, `${owner} has no input \`${key}\``, () => {
        const near = nearest(key, names);
        return near === undefined ? { suggestion: `it has ${oneOf(names)}` } : didYouMean(near);
      });
    }
  }
  for (const input of inputs) {
    const value = given?.entries.find((it) => it.key.toLowerCase() === input.name.toLowerCase())?.value;
    if (!value && !input.default && required) {
      report("FLOW3010", written?.keyAt ?? at, `${owner} needs the input \`${input.name}\``, {
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

function holdsExpression(node: SourceNode): boolean {
  return JSON.stringify(toJson(node)).includes("${{");
}
