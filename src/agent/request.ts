import { createHash } from "node:crypto";
import type { Json } from "../model/json.ts";
import { canonicalJson } from "../model/json.ts";
import type { Message } from "../model/message.ts";
import type { ModelRequest, Tool } from "../model/ports.ts";

/** How the model is asked to sample; absent values are the provider's defaults. */
export type Sampling = Pick<ModelRequest, "temperature" | "topP" | "maxOutput" | "effort">;

export interface RequestParts {
  readonly model: string;
  readonly agent: string;
  readonly step: string;
  readonly messages: readonly Message[];
  readonly tools: readonly Tool[];
  readonly sampling: Sampling;
}

/** Equal parts give an equal request, whatever the order the tools came in; the messages grow only at the end. */
export function buildRequest({ sampling, tools, messages, ...names }: RequestParts): ModelRequest {
  const specs = tools.map(({ name, description, parameters }) => ({ name, description, parameters }));
  specs.sort((a, b) => (a.name < b.name ? -1 : 1));
  return { ...names, messages: [...messages], tools: specs, ...sampling };
}

/** sha256 (hex) of what the model gets to see: who asks (`agent`, `step`) is left out, so a renamed step still matches. */
export function requestHash({ agent: _agent, step: _step, ...seen }: ModelRequest): string {
  const json: Json = JSON.parse(JSON.stringify(seen));
  return createHash("sha256").update(canonicalJson(json)).digest("hex");
}
