import type { OpenAI } from "openai";
import { longestDuration } from "../model/duration.ts";
import { isJsonObject } from "../model/json.ts";
import type { JsonObject } from "../model/json.ts";
import type { Usage } from "../model/message.ts";
import type { ModelClient, ModelDelta, ModelRequest } from "../model/ports.ts";
import { cutOff, type ReplyReader, streamReply } from "./call.ts";
import { ChunkReader } from "./openai-chunks.ts";
import { requestBody } from "./openai-request.ts";
import { overWindow, type ServerOptions } from "./server.ts";
import { estimateTokens, isOverWindow, priced } from "./usage.ts";
import { onWire, type Wire, wireFetch } from "./wire.ts";

/**
 * Chat Completions of OpenAI and every server that speaks its protocol, streamed through the official SDK. Nothing is
 * retried here. A stream is whole only with a finish reason and the closing `[DONE]`; any other end is `failed`.
 */
export function openaiClient(options: ServerOptions): ModelClient {
  const { provider, facts } = options;
  const headers = options.apiKey === undefined ? [] : ["authorization"];
  let making: Promise<OpenAI> | undefined;
  const client = (): Promise<OpenAI> => (making ??= createClient(options));
  return {
    provider,
    facts,
    stream(request, signal) {
      const { body, warnings } = requestBody(request, options);
      const reply = streamReply({ options, signal, headers }, new Reader({ options, request, body, client }));
      return warnings.length === 0 ? reply : warnedOf(warnings, reply);
    },
  };
}

async function* warnedOf(warnings: readonly string[], reply: AsyncIterable<ModelDelta>): AsyncGenerator<ModelDelta> {
  for (const message of warnings) yield { type: "warning", message };
  yield* reply;
}

/** Made once: it takes longer than a request. */
async function createClient({ baseUrl, apiKey }: ServerOptions): Promise<OpenAI> {
  const { OpenAI: Client } = await import("openai");
  return new Client({
    baseURL: baseUrl,
    // The SDK fills whatever is left out from the environment; it must learn nothing from there.
    apiKey: apiKey ?? "none",
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
    fetch: wireFetch,
    maxRetries: 0,
    timeout: longestDuration,
    logLevel: "off",
  });
}

interface ReaderSetting {
  readonly options: ServerOptions;
  readonly request: ModelRequest;
  readonly body: JsonObject;
  readonly client: () => Promise<OpenAI>;
}

class Reader implements ReplyReader {
  readonly #options: ServerOptions;
  readonly #request: ModelRequest;
  readonly #body: JsonObject;
  readonly #client: () => Promise<OpenAI>;
  readonly #chunks: ChunkReader;

  constructor({ options, request, body, client }: ReaderSetting) {
    this.#options = options;
    this.#request = request;
    this.#body = body;
    this.#client = client;
    this.#chunks = new ChunkReader(`call_${request.messages.length}`);
  }

  async open(wire: Wire): Promise<AsyncIterable<unknown>> {
    const options = { body: this.#body, stream: true, signal: wire.signal, fetchOptions: onWire(wire) } as const;
    return (await this.#client()).post<AsyncIterable<JsonObject>>("/chat/completions", options);
  }

  read(chunk: unknown): readonly ModelDelta[] {
    return isJsonObject(chunk) ? this.#chunks.read(chunk) : [];
  }

  usage(): Usage {
    const { usage, text } = this.#chunks;
    return priced(usage ?? estimateTokens(this.#request, text), this.#options.facts, usage === undefined);
  }

  end(wire: Wire): readonly ModelDelta[] {
    const deltas = this.#chunks.flush();
    const { stop, finish, usage } = this.#chunks;
    if (stop === undefined) return [...deltas, cutOff("a finish reason")];
    if (!wire.done()) return [...deltas, cutOff("the closing `[DONE]`")];
    if (usage !== undefined && isOverWindow(usage, this.#options.facts)) return [overWindow(this.#options.facts)];
    const odd: ModelDelta[] =
      stop === "unknown"
        ? [{ type: "warning", message: `the reply ended with the unknown finish reason \`${finish.slice(0, 60)}\`` }]
        : [];
    return [...deltas, ...odd, { type: "done", stop, usage: this.usage() }];
  }
}
