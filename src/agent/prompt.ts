import type { Evaluator } from "../expr/template.ts";
import { propertyOf } from "../expr/value.ts";
import { compileSchema } from "../jsonschema/compile.ts";
import type { Json, JsonObject } from "../model/json.ts";
import { isJsonObject, own } from "../model/json.ts";
import type { Block, Message } from "../model/message.ts";
import type { Failure } from "../model/outcome.ts";
import type { Agent } from "../model/plan.ts";
import type { Result } from "../model/result.ts";
import { err, ok } from "../model/result.ts";
import { listErrors } from "./tool-call.ts";

interface Start {
  readonly agent: Agent;
  /** The step's, resolved. */
  readonly inputs: JsonObject;
  readonly evaluator: Evaluator;
  /** What files of the project tell every agent; the nearest last. */
  readonly files: readonly { readonly path: string; readonly text: string }[];
}

/**
 * The messages an agent starts with: its instructions with those of the project, and its prompt. A `prompt` among the
 * inputs replaces the agent's own, which sees the agent's declared inputs with the values of `with`.
 */
export async function firstMessages({
  agent,
  inputs,
  evaluator,
  files,
}: Start): Promise<Result<readonly Message[], Failure>> {
  const values = await agentInputs(agent, own(inputs, "with") ?? {});
  if (!values.ok) return values;
  const prompt = promptText(agent, { own: own(inputs, "prompt"), values: values.value, evaluator });
  if (!prompt.ok) return prompt;
  const messages: Message[] = [{ role: "user", blocks: [{ type: "text", text: prompt.value }] }];
  const told = [
    agent.instructions?.trim() ?? "",
    ...files.map(({ path, text }) => `Instructions from ${path}:\n\n${text}`),
  ];
  const system = told.filter((text) => text !== "").map((text): Block => ({ type: "text", text }));
  if (system.length > 0) messages.unshift({ role: "system", blocks: system });
  return ok(messages);
}

/** More of what the agent is told, behind its instructions. */
export function withTexts(messages: readonly Message[], texts: readonly string[]): readonly Message[] {
  if (texts.length === 0) return messages;
  const blocks = texts.map((text): Block => ({ type: "text", text }));
  const [first, ...rest] = messages;
  if (first?.role === "system") return [{ ...first, blocks: [...first.blocks, ...blocks] }, ...rest];
  return [{ role: "system", blocks }, ...messages];
}

/** Every declared input with its value or default, checked against its schema: the values of `with` are known only now. */
async function agentInputs({ name, inputs }: Agent, given: Json): Promise<Result<JsonObject, Failure>> {
  if (!isJsonObject(given)) return inputFailure(`the \`with\` of agent \`${name}\` is not a map`);
  const unknown = Object.keys(given).find(
    (key) => !inputs.some((input) => input.name.toLowerCase() === key.toLowerCase()),
  );
  if (unknown !== undefined) return inputFailure(`agent \`${name}\` has no input \`${unknown}\``);
  const values: [string, Json][] = [];
  for (const input of inputs) {
    // Only JSON is given: nothing in it is looked up later.
    const value = (propertyOf(given, input.name) as Json | undefined) ?? input.default?.json;
    if (value === undefined) return inputFailure(`agent \`${name}\` needs the input \`${input.name}\``);
    const validate = isJsonObject(input.schema.json) ? await compileSchema(input.schema.json) : undefined;
    if (validate?.ok !== true)
      return inputFailure(`the schema of input \`${input.name}\` of \`${name}\` cannot be used`);
    const errors = validate.value(value);
    if (errors.length > 0)
      return inputFailure(`input \`${input.name}\` of agent \`${name}\` does not fit:\n${listErrors(errors)}`);
    values.push([input.name, value]);
  }
  return ok(Object.fromEntries(values));
}

interface PromptParts {
  /** The step's prompt. */
  readonly own: Json | undefined;
  readonly values: JsonObject;
  readonly evaluator: Evaluator;
}

function promptText(agent: Agent, { own: given, values, evaluator }: PromptParts): Result<string, Failure> {
  let prompt: Json | undefined = given;
  if (prompt === undefined && agent.prompt !== undefined) {
    const resolved = evaluator.resolve(agent.prompt, { contexts: { inputs: values } });
    if (!resolved.ok) return err({ kind: "expression", message: resolved.error.message, position: resolved.error.at });
    prompt = resolved.value;
  }
  if (prompt === undefined || prompt === null) return inputFailure(`agent \`${agent.name}\` has no prompt`);
  const text = typeof prompt === "string" ? prompt : JSON.stringify(prompt);
  return text.trim() === "" ? inputFailure(`the prompt of agent \`${agent.name}\` is empty`) : ok(text);
}

function inputFailure(message: string): { readonly ok: false; readonly error: Failure } {
  return err({ kind: "input", message });
}
