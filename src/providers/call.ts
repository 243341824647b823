import type { ModelDelta, ModelFailure } from "../model/ports.ts";
import type { Usage } from "../model/message.ts";
import { failureOf, type ErrorSetting } from "./error.ts";
import { httpFetch } from "./http-fetch.ts";
import { openWire, type Fetch, type Wire } from "./wire.ts";

/** What a client of either protocol calls its server with. */
export interface CallOptions extends ErrorSetting {
  readonly fetch?: Fetch;
  /** Milliseconds without a byte after which the call fails with `timeout`; 60,000 when absent. */
  readonly idleTimeout?: number;
}

/** How a protocol reads one reply. */
export interface ReplyReader {
  /** Sends the request; what it iterates over are the parsed events of the reply. */
  open(wire: Wire): Promise<AsyncIterable<unknown>>;
  read(event: unknown): readonly ModelDelta[];
  /** What is still owed at the end of the stream; the last is `done`, or `failed` when the reply is not whole. */
  end(wire: Wire): readonly ModelDelta[];
  /** What was used so far: as reported, else estimated. */
  usage(): Usage;
}

export interface Call {
  readonly options: CallOptions;
  readonly signal: AbortSignal;
  /** Headers of the protocol's own, in lower case. */
  readonly headers: readonly string[];
}

const defaultIdleTimeout = 60_000;

/** Streams one reply. Whatever goes wrong on the way is its last delta, `failed`; nothing is retried here. */
export async function* streamReply(
  { options, signal, headers }: Call,
  reader: ReplyReader,
): AsyncGenerator<ModelDelta, void> {
  const idleTimeout = options.idleTimeout ?? defaultIdleTimeout;
  const wire = openWire({ fetch: options.fetch ?? httpFetch, signal, idleTimeout, headers });
  let begun = false;
  const failed = (failure: ModelFailure): ModelDelta => ({
    type: "failed",
    failure,
    ...(begun && { usage: reader.usage() }),
  });
  try {
    for await (const event of await reader.open(wire)) {
      begun = true;
      for (const delta of reader.read(event)) yield delta;
    }
    // The SDKs end an aborted stream as quietly as a whole one, so what was seen on the wire decides.
    const failure = interruption(wire, idleTimeout);
    if (failure !== undefined) yield failed(failure);
    else for (const delta of reader.end(wire)) yield delta.type === "failed" ? failed(delta.failure) : delta;
  } catch (error) {
    yield failed(interruption(wire, idleTimeout) ?? failureOf(error, options));
  } finally {
    wire.close();
  }
}

/** The failure of a reply whose stream ended before it said that it is whole. */
export function cutOff(missing: string): ModelDelta {
  const message = `the reply was cut off: the stream ended without ${missing}`;
  return { type: "failed", failure: { kind: "provider_error", message, transient: true } };
}

function interruption(wire: Wire, idleTimeout: number): ModelFailure | undefined {
  switch (wire.interrupted()) {
    case "cancelled":
      return { kind: "cancelled", message: "the model call was cancelled", transient: false };
    case "idle":
      return { kind: "timeout", message: `no byte from the server for ${idleTimeout / 1000} s`, transient: true };
    case "long event":
      return { kind: "provider_error", message: "the server sent an event of more than 4 MiB", transient: false };
    case "large":
      return { kind: "provider_error", message: "the server sent a reply of more than 64 MiB", transient: false };
    case "encoding":
      return { kind: "provider_error", message: "the server sent bytes that are not UTF-8", transient: true };
    case undefined:
      return undefined;
  }
}
