import { longestDuration } from "../model/duration.ts";
import { isJsonObject } from "../model/json.ts";
import type { JsonObject } from "../model/json.ts";
import type { ModelClient, ModelDelta, ModelFailure, ModelRequest } from "../model/ports.ts";
import { unknownFacts } from "../model/ports.ts";
import { failureText } from "./failure.ts";
import { ChunkReader } from "./openai-chunks.ts";
import { failureOf } from "./openai-error.ts";
import { requestBody } from "./openai-request.ts";
import { estimateUsage } from "./usage.ts";
import { openWire } from "./wire.ts";
import type { Fetch, Wire } from "./wire.ts";

export interface OpenAIOptions {
  /** The model's name on the wire. */
  readonly model: string;
  /** With the version: `https://api.openai.com/v1`. */
  readonly baseUrl: string;
  /** Absent: no Authorization header is sent. */
  readonly apiKey?: string;
  /** The variable the key came from, for messages about a key that is refused. */
  readonly keyName?: string;
  /** A server other than OpenAI's own: it gets the older, plainer field names. */
  readonly custom?: boolean;
  readonly fetch?: Fetch;
  /** Milliseconds without a byte after which the call fails with `timeout`; 60,000 when absent. */
  readonly idleTimeout?: number;
}

const defaultIdleTimeout = 60_000;

/**
 * Chat Completions of OpenAI and every server that speaks its protocol, streamed through the official SDK. Nothing is
 * retried here. A stream is whole only with a finish reason and the closing `[DONE]`; any other end is `failed`.
 */
export function openaiClient(options: OpenAIOptions): ModelClient {
  return { provider: "openai", facts: unknownFacts, stream: (request, signal) => streamReply(options, request, signal) };
}

async function* streamReply(
  options: OpenAIOptions,
  request: ModelRequest,
  signal: AbortSignal,
): AsyncGenerator<ModelDelta, void> {
  const idleTimeout = options.idleTimeout ?? defaultIdleTimeout;
  const wire = openWire({ fetch: options.fetch ?? fetch, signal, idleTimeout, withKey: options.apiKey !== undefined });
  try {
    const reader = new ChunkReader(`call_${request.messages.length}`);
    for await (const chunk of await chunks(options, request, wire)) if (isJsonObject(chunk)) yield* reader.read(chunk);
    yield* ending(reader, { request, wire, idleTimeout });
  } catch (error) {
    yield { type: "failed", failure: interrupted(wire, idleTimeout) ?? failureOf(error, options) };
  } finally {
    wire.close();
  }
}

async function chunks(options: OpenAIOptions, request: ModelRequest, wire: Wire): Promise<AsyncIterable<unknown>> {
  const { OpenAI } = await import("openai");
  const client = new OpenAI({
    baseURL: options.baseUrl,
    // The SDK fills whatever is left out from the environment; it must learn nothing from there.
    apiKey: options.apiKey ?? "none",
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
    fetch: wire.fetch,
    maxRetries: 0,
    timeout: longestDuration,
    logLevel: "off",
  });
  const model = options.model;
  const maxTokensField = options.custom === true ? "max_tokens" : "max_completion_tokens";
  const body = requestBody(request, { model, maxTokensField });
  return client.post<AsyncIterable<JsonObject>>("/chat/completions", { body, stream: true, signal: wire.signal });
}

interface Whole {
  readonly request: ModelRequest;
  readonly wire: Wire;
  readonly idleTimeout: number;
}

/** The SDK ends an aborted or cut stream as quietly as a whole one, so what was seen on the wire decides. */
function ending(reader: ChunkReader, { request, wire, idleTimeout }: Whole): ModelDelta[] {
  const failure = interrupted(wire, idleTimeout);
  if (failure !== undefined) return [{ type: "failed", failure }];
  const deltas = reader.flush();
  const { stop } = reader;
  if (stop === undefined || !wire.done()) {
    const missing = stop === undefined ? "a finish reason" : "the closing `[DONE]`";
    const message = `the reply was cut off: the stream ended without ${missing}`;
    return [...deltas, { type: "failed", failure: { kind: "provider_error", message } }];
  }
  const usage = reader.usage ?? estimateUsage(request, reader.length, null);
  return [...deltas, { type: "done", stop, usage }];
}

function interrupted(wire: Wire, idleTimeout: number): ModelFailure | undefined {
  switch (wire.interrupted()) {
    case "cancelled":
      return { kind: "cancelled", message: "the model call was cancelled" };
    case "idle":
      return { kind: "timeout", message: failureText(`no byte from the server for ${idleTimeout / 1000} s`) };
    case undefined:
      return undefined;
  }
}
