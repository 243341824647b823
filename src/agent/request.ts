import { createHash } from "node:crypto";
import type { Json } from "../model/json.ts";
import { canonicalJson } from "../model/json.ts";
import type { Message } from "../model/message.ts";
import type { ModelRequest, Tool } from "../model/ports.ts";

/** How the model is asked to sample; absent values are the provider's defaults. */
export type Sampling = Pick<ModelRequest, "temperature" | "topP" | "maxOutput" | "effort" | "options">;

export interface RequestParts {
  readonly model: string;
  readonly agent: string;
  readonly step: string;
  readonly messages: readonly Message[];
  readonly tools: readonly Tool[];
  readonly sampling: Sampling;
  readonly toolChoice?: ModelRequest["toolChoice"];
  readonly answerSchema?: ModelRequest["answerSchema"];
  readonly earlier?: number;
}

/** Equal parts give an equal request, whatever the order the tools came in; the messages grow only at the end. */
export function buildRequest(parts: RequestParts): ModelRequest {
  const { sampling, tools, messages, toolChoice, answerSchema, earlier = 0, ...names } = parts;
  const specs = tools.map(({ name, description, parameters }) => ({ name, description, parameters }));
  specs.sort((a, b) => (a.name < b.name ? -1 : 1));
  return {
    ...names,
    messages: [...messages],
    tools: specs,
    ...(toolChoice !== undefined && { toolChoice }),
    ...(answerSchema !== undefined && { answerSchema }),
    ...(earlier > 0 && { earlier }),
    ...sampling,
  };
}

/**
 * sha256 (hex) of what the model gets to see: who asks (`agent`, `step`) is left out, so a renamed step still matches.
 * With its secrets masked, so that the hash tells nothing about them and a replay, whose replies are masked, finds it.
 */
export function requestHash(request: ModelRequest, masked?: (request: ModelRequest) => ModelRequest): string {
  const { agent: _agent, step: _step, earlier: _earlier, ...seen } = masked?.(request) ?? request;
  const json: Json = JSON.parse(JSON.stringify(seen));
  return createHash("sha256").update(canonicalJson(json)).digest("hex");
}
