import { isFileName } from "../compile/agent-files.ts";
import { readGivenInputs } from "../compile/given-inputs.ts";
import type { AgentShape } from "../compile/shape.ts";
import type { JsonObject } from "../model/json.ts";
import { exitCodes } from "../model/outcome.ts";
import type { Input } from "../model/plan.ts";
import { check } from "./check.ts";
import { type AgentRequest, type Refusal, type RunRequest, type RunResult, usage } from "./requests.ts";

/** What the run of one agent is beside its conditions: a workflow of one step, read as if it came from standard input. */
export type AgentRun = Required<Pick<RunRequest, "file" | "stdin" | "inputs">>;

/**
 * The workflow that runs one agent, once. What was given to the agent goes through the inputs of that workflow: no text
 * of theirs is taken for an expression. Its output is `answer`.
 */
export async function agentRun(request: AgentRequest): Promise<AgentRun | Refusal> {
  const { prompt, inputs = {}, inputTexts = [] } = request;
  const expression = [request.agent, request.model]
    .flat()
    .find((text) => typeof text === "string" && text.includes("${{"));
  if (expression !== undefined)
    return usage(`${JSON.stringify(expression)} is no name: expressions have no place here`);
  if (prompt !== undefined && prompt.trim() === "") return usage("the prompt is empty");
  const { cwd, env } = request;
  const place = { ...(cwd !== undefined && { cwd }), ...(env && { env }) };
  const { agents, diagnostics, sources } = await check({ ...place, ...sourceOf(workflow(request, { asks: "-" })) });
  const shape = agents?.()[0];
  if (shape === undefined)
    return withoutPlaces({ kind: "invalid", exitCode: exitCodes.usage, diagnostics, sources }, request);
  const wrong = misfit(shape, request);
  if (wrong !== undefined) return usage(wrong);
  const { agent } = shape;
  const given = await readGivenInputs(agent.inputs, { texts: inputTexts, values: inputs }, agent.at);
  if (!given.ok)
    return withoutPlaces({ kind: "invalid", exitCode: exitCodes.usage, diagnostics: given.error, sources }, request);
  const asked = prompt === undefined ? {} : { [promptName(agent.inputs)]: prompt };
  return { ...sourceOf(workflow(request, { shape, asked })), inputs: { ...given.value, ...asked } };
}

/** A run that was refused because of what stands in a workflow that nobody wrote is told without places in it. */
export function plainly(result: RunResult, request: AgentRequest): RunResult {
  return result.started ? result : { started: false, refusal: withoutPlaces(result.refusal, request) };
}

type Parts = { readonly asks: string } | { readonly shape: AgentShape; readonly asked: JsonObject };

/** With `asks`: as much of it as is needed to read the agent. */
function workflow({ agent, model, secrets = [] }: AgentRequest, parts: Parts): JsonObject {
  const isDefined = typeof agent !== "string";
  const models = model === undefined || typeof model === "string" ? model : [...model];
  const step: JsonObject = { agent: isDefined ? "agent" : agent, ...(models !== undefined && { model: models }) };
  const around: JsonObject = {
    ...(secrets.length > 0 && { secrets: [...secrets] }),
    ...(isDefined && { agents: { agent } }),
  };
  if ("asks" in parts) return { name: "agent", ...around, steps: { agent: { ...step, prompt: parts.asks } } };
  const { inputs, name, output } = parts.shape.agent;
  const [ask] = Object.keys(parts.asked);
  const declared = inputs.map((input) => [input.name, input.schema.json] as const);
  const filled = inputs.map((input) => [input.name, `\${{ inputs.${input.name} }}`] as const);
  return {
    name,
    inputs: { ...Object.fromEntries(declared), ...(ask !== undefined && { [ask]: { type: "string" } }) },
    ...around,
    steps: {
      agent: {
        ...step,
        ...(ask !== undefined && { prompt: `\${{ inputs.${ask} }}` }),
        ...(filled.length > 0 && { with: Object.fromEntries(filled) }),
      },
    },
    outputs: { answer: `\${{ steps.agent.outputs${output === undefined ? ".text" : ""} }}` },
  };
}

function sourceOf(text: JsonObject): Pick<AgentRun, "file" | "stdin"> {
  return { file: "-", stdin: new TextEncoder().encode(JSON.stringify(text)) };
}

/** Names are compared ignoring case. */
function promptName(inputs: readonly Input[]): string {
  let name = "prompt";
  while (inputs.some((input) => input.name.toLowerCase() === name)) name += "_";
  return name;
}

/** Why an agent cannot be run with what was given. */
function misfit({ agent }: AgentShape, { prompt, inputs = {}, inputTexts = [] }: AgentRequest): string | undefined {
  const { name, inputs: declared } = agent;
  const given = inputTexts[0]?.name ?? Object.keys(inputs)[0];
  if (given !== undefined && declared.length === 0)
    return `agent \`${name}\` takes no inputs, and \`${given}\` was given; say in the prompt what it is to know`;
  const hasOwnPrompt = agent.prompt !== undefined;
  if (prompt === undefined && !hasOwnPrompt)
    return `agent \`${name}\` has no prompt of its own: say what it is to do, as in \`flow agent ${name} "…"\``;
  const filled = given ?? declared.find((input) => input.default === undefined)?.name;
  if (prompt === undefined || !hasOwnPrompt || filled === undefined) return undefined;
  return `agent \`${name}\` makes its own prompt of its inputs, and a prompt beside them would leave them unread; give \`--input ${filled}=…\` without a prompt`;
}

function withoutPlaces(refusal: Refusal, { agent }: AgentRequest): Refusal {
  if (refusal.kind !== "invalid") return refusal;
  const errors = refusal.diagnostics.filter(({ severity }) => severity === "error");
  if (errors.some(({ at }) => at.file !== "-")) return refusal;
  const sentences = errors.map(({ code, message, suggestion }) => {
    if (code === "FLOW6001" && typeof agent === "string") return unknown(agent, suggestion);
    return suggestion === undefined ? message : `${message}; ${suggestion}`;
  });
  return usage(sentences.join("\n"));
}

function unknown(name: string, suggestion: string | undefined): string {
  if (isFileName(name) && name.includes("/")) return `there is no file ${name}`;
  const more = suggestion ?? `write it to \`agents/${/^[\w-]+$/.test(name) ? name : "NAME"}.md\``;
  return `there is no agent \`${name}\`; ${more} (\`flow agents\` lists those that are here)`;
}
