import type { Evaluator } from "../expr/template.ts";
import type { Json, JsonObject } from "../model/json.ts";
import { isJsonObject, own } from "../model/json.ts";
import type { Failure } from "../model/outcome.ts";
import type { Agent, Body } from "../model/plan.ts";
import type { ModelClient } from "../model/ports.ts";
import { err, ok, type Result } from "../model/result.ts";
import type { AgentRun } from "./agent-run.ts";
import type { AskedModel } from "./model-chain.ts";

export interface Asking {
  readonly agent: Agent;
  readonly body: Extract<Body, { kind: "agent" }>;
  /** The step's, resolved. */
  readonly inputs: JsonObject;
  readonly evaluator: Evaluator;
  readonly open: (model: Json | undefined) => Promise<Result<ModelClient, Failure>>;
}

/** The models an agent asks, opened. An error is that none of them can be. */
export async function askedModels(
  asking: Asking,
): Promise<Result<Pick<AgentRun, "model" | "client" | "fallbacks"> & { readonly models: readonly Json[] }, Failure>> {
  const models = resolvedModels(asking);
  if (!models.ok) return models;
  const asked: AskedModel[] = [];
  let problem: Failure | undefined;
  let canAsk = false;
  for (const model of models.value.length === 0 ? [undefined] : models.value) {
    const client = await asking.open(model);
    const label = labelOf(model);
    if (client.ok) {
      canAsk = true;
      asked.push({ model: label ?? client.value.provider, client: client.value });
    } else {
      problem ??= client.error;
      asked.push({ model: label ?? "", client: closedClient(label ?? "", client.error) });
    }
  }
  const [first, ...fallbacks] = asked;
  if (first === undefined || (!canAsk && problem !== undefined))
    return err(problem ?? { kind: "unavailable", message: "no model is named" });
  return ok({ ...first, models: models.value, ...(fallbacks.length > 0 && { fallbacks }) });
}

/** The engine resolves a step's models as `inputs.models`; where it gave none, the plan's own constants count. */
function resolvedModels({ agent, body, inputs, evaluator }: Asking): Result<readonly Json[], Failure> {
  const resolved = own(inputs, "models");
  if (Array.isArray(resolved) && resolved.length > 0) return ok(resolved);
  const values: Json[] = [];
  for (const template of body.models.length > 0 ? body.models : agent.models) {
    const value = evaluator.resolve(template, { contexts: {} });
    if (!value.ok) return err({ kind: "expression", message: value.error.message, position: value.error.at });
    values.push(value.value);
  }
  return ok(values);
}

/** The id of a model, as it is written. */
export function labelOf(model: Json | undefined): string | undefined {
  const id = isJsonObject(model) ? own(model, "id") : model;
  return typeof id === "string" ? id : undefined;
}

/** Stands for a model that cannot be asked at all, so that the log says so before the next one is. */
function closedClient(label: string, { message }: Failure): ModelClient {
  return {
    provider: label.split("/")[0] ?? label,
    facts: { jsonSchema: true, cost: () => 0 },
    async *stream() {
      yield await Promise.resolve({
        type: "failed",
        failure: { kind: "unavailable", message, transient: false },
      } as const);
    },
  };
}
