import type { Anthropic } from "@anthropic-ai/sdk";
import { longestDuration } from "../model/duration.ts";
import { isJsonObject } from "../model/json.ts";
import type { JsonObject } from "../model/json.ts";
import type { Usage } from "../model/message.ts";
import type { ModelClient, ModelDelta, ModelRequest } from "../model/ports.ts";
import { EventReader } from "./anthropic-events.ts";
import { messagesBody } from "./anthropic-request.ts";
import { cutOff, type ReplyReader, streamReply } from "./call.ts";
import { overWindow, type ServerOptions } from "./server.ts";
import { estimateTokens, isOverWindow, priced } from "./usage.ts";
import { onWire, type Wire, wireFetch } from "./wire.ts";

/** How often a server may pause one reply and be asked to go on. */
const maxPauses = 8;

/**
 * Messages of Anthropic and every server that speaks its protocol, streamed through the official SDK. Nothing is retried
 * here. A stream is whole only with a stop reason, every block closed, and `message_stop`; any other end is `failed`.
 */
export function anthropicClient(options: ServerOptions): ModelClient {
  const { provider, facts, apiKey } = options;
  const headers = ["anthropic-version", ...(apiKey === undefined ? [] : ["authorization", "x-api-key"])];
  let making: Promise<Anthropic> | undefined;
  const client = (): Promise<Anthropic> => (making ??= createClient(options));
  return {
    provider,
    facts,
    async *stream(request, signal) {
      const events = new EventReader(`toolu_${request.messages.length}`);
      let paused: readonly JsonObject[] = [];
      for (let pauses = 0; pauses <= maxPauses; pauses++) {
        const { body, warnings } = messagesBody(request, options, paused);
        if (pauses === 0) for (const message of warnings) yield { type: "warning", message };
        const reader = new Reader({ options, request, body, events, client });
        yield* streamReply({ options, signal, headers }, reader);
        if (!reader.isPaused) return;
        paused = events.pause();
      }
      const message = `the model paused its turn ${maxPauses + 1} times and never ended it`;
      yield { type: "failed", failure: { kind: "provider_error", message, transient: false } };
    },
  };
}

/** Made once: it takes longer than a request. */
async function createClient({ baseUrl, apiKey }: ServerOptions): Promise<Anthropic> {
  const { Anthropic: Client } = await import("@anthropic-ai/sdk");
  return new Client({
    baseURL: baseUrl,
    // The SDK fills whatever is left out from the environment; it must learn nothing from there.
    apiKey: apiKey ?? "none",
    authToken: null,
    webhookKey: null,
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
  readonly events: EventReader;
  readonly client: () => Promise<Anthropic>;
}

class Reader implements ReplyReader {
  readonly #setting: ReaderSetting;
  isPaused = false;

  constructor(setting: ReaderSetting) {
    this.#setting = setting;
  }

  async open(wire: Wire): Promise<AsyncIterable<unknown>> {
    const { body, client } = this.#setting;
    const call = { body, stream: true, signal: wire.signal, fetchOptions: onWire(wire) } as const;
    return (await client()).post<AsyncIterable<JsonObject>>("/v1/messages", call);
  }

  read(event: unknown): readonly ModelDelta[] {
    return isJsonObject(event) ? this.#setting.events.read(event) : [];
  }

  usage(): Usage {
    const { events, request, options } = this.#setting;
    const { usage, text } = events;
    // The final count of the output comes only at the end.
    if (usage !== undefined && events.finish !== "") return priced(usage, options.facts, false);
    const estimated = estimateTokens(request, text);
    const partial = usage === undefined ? estimated : { ...usage, output: Math.max(usage.output, estimated.output) };
    return priced(partial, options.facts, true);
  }

  end(): readonly ModelDelta[] {
    const { events, options } = this.#setting;
    const { stop, finish } = events;
    if (!events.isWhole) return [cutOff(finish === "" ? "a stop reason" : "`message_stop`")];
    if (events.latest !== undefined && isOverWindow(events.latest, options.facts)) return [overWindow(options.facts)];
    switch (stop) {
      case "paused":
        this.isPaused = true;
        return [];
      case "overflow":
        return [overWindow(options.facts)];
      case "unknown": {
        const message = `the reply ended with the unknown stop reason \`${finish.slice(0, 60)}\``;
        return [
          { type: "warning", message },
          { type: "done", stop, usage: this.usage() },
        ];
      }
      default:
        return [{ type: "done", stop, usage: this.usage() }];
    }
  }
}
