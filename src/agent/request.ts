import { hash } from "node:crypto";
import type { JsonObject } from "../model/json.ts";
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

/** {@link RequestHashes} for one request alone. */
export function requestHash(request: ModelRequest, masked?: MaskRequest): string {
  return new RequestHashes(masked).of(request);
}

type MaskRequest = (request: ModelRequest) => ModelRequest;

/**
 * sha256 (hex) of what the model gets to see: who asks (`agent`, `step`) and what it may cost are left out, so
 * that a renamed step and another limit still match.
 * With its secrets masked, so that the hash tells nothing about them and a replay, whose replies are masked, finds it.
 * The text of each message is kept as long as the message: a conversation is hashed once a turn.
 */
export class RequestHashes {
  readonly #masked: MaskRequest;
  readonly #texts = new WeakMap<Message, string>();
  /** What stood around the messages last, and its fields in canonical JSON; it hardly ever changes. */
  #around: { readonly json: string; readonly fields: ReadonlyMap<string, string> } = { json: "", fields: new Map() };

  constructor(masked: MaskRequest = (request) => request) {
    this.#masked = masked;
  }

  of(request: ModelRequest): string {
    const messages = request.messages.map((message) => this.#textOf(message));
    const all = new Map(this.#fieldsAround({ ...request, messages: [] })).set("messages", `[${messages.join(",")}]`);
    const fields = [...all.keys()].sort().map((key) => `${JSON.stringify(key)}:${all.get(key)}`);
    return hash("sha256", `{${fields.join(",")}}`);
  }

  #fieldsAround(request: ModelRequest): ReadonlyMap<string, string> {
    const json = JSON.stringify(request);
    if (json === this.#around.json) return this.#around.fields;
    const { agent: _, step: __, earlier: ___, payableOutput: ____, ...seen } = this.#masked(request);
    const fields = new Map(Object.entries(asJson(seen)).map(([key, value]) => [key, canonicalJson(value)]));
    this.#around = { json, fields };
    return fields;
  }

  #textOf(message: Message): string {
    const known = this.#texts.get(message);
    if (known !== undefined) return known;
    const { messages } = this.#masked({ model: "", agent: "", step: "", messages: [message], tools: [] });
    const text = messages.map((seen) => canonicalJson(asJson(seen))).join(",");
    this.#texts.set(message, text);
    return text;
  }
}

/** Without the fields that are undefined. */
function asJson(value: object): JsonObject {
  return JSON.parse(JSON.stringify(value)) as JsonObject;
}
