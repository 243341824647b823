export type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

/** One HTTP call as seen below the SDK, which hides silence, comments, the closing mark, sizes and who aborted. */
export interface Wire {
  readonly fetch: Fetch;
  /** Aborted by the caller, by silence, or by a reply that cannot be read. */
  readonly signal: AbortSignal;
  /** True once the line `data: [DONE]` has come. */
  done(): boolean;
  interrupted(): Interruption | undefined;
  /** Ends the call if it is still open. */
  close(): void;
}

/** Why a call was broken off on our side. */
export type Interruption = "cancelled" | "idle" | Unreadable;
/** `encoding`: it is not UTF-8. */
type Unreadable = "long event" | "large" | "encoding";

export interface WireOptions {
  readonly fetch: Fetch;
  readonly signal: AbortSignal;
  /** Milliseconds. Any byte is life, comments included. */
  readonly idleTimeout: number;
  /** Names of the headers that may be sent beside those every server needs, in lower case. */
  readonly headers: readonly string[];
}

/** What an SDK's client gets as `fetchOptions` of one request, so that {@link wireFetch} uses this wire. */
export function onWire(wire: Wire): object {
  return { wire };
}

/** The `fetch` of a client that many calls share. */
export const wireFetch: Fetch = (input, init) => {
  if (init === undefined || !("wire" in init)) throw new Error("a model was called without its wire");
  const { wire, ...rest } = init as RequestInit & { readonly wire: Wire };
  return wire.fetch(input, rest);
};

/** Bytes of one event, which the SDKs keep until it ends, and of one reply; no honest server comes near. */
export const maxEvent: number = 4 * 1024 * 1024;
export const maxReply: number = 64 * 1024 * 1024;

/** What a model server needs. The SDKs also send headers they find in the environment; they go nowhere. */
const headerNames: readonly string[] = ["accept", "content-type", "user-agent"];

export function openWire({ fetch, signal, idleTimeout, headers: allowed }: WireOptions): Wire {
  const closing = new AbortController();
  const onAbort = (): void => closing.abort(signal.reason);
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  const lines = lineWatch();
  let broken: Interruption | undefined;
  let ended = false;
  const breakOff = (why: Interruption): void => {
    broken ??= why;
    closing.abort();
  };
  const timer = setTimeout(() => breakOff("idle"), idleTimeout);

  const watch = (body: ReadableStream<Uint8Array<ArrayBuffer>>): ReadableStream<Uint8Array<ArrayBuffer>> => {
    const reader = body.getReader();
    return new ReadableStream(
      {
        async pull(stream) {
          const { done, value } = await reader.read();
          if (done) {
            ended = true;
            return stream.close();
          }
          timer.refresh();
          const unreadable = lines.read(value);
          if (unreadable === undefined) return stream.enqueue(value);
          breakOff(unreadable);
          stream.error(new Error(unreadable));
        },
        cancel: (reason) => reader.cancel(reason),
      },
      { highWaterMark: 0 },
    );
  };

  const watchedFetch: Fetch = async (input, init) => {
    const headers = new Headers();
    const given = new Headers(init?.headers);
    for (const name of [...headerNames, ...allowed]) {
      const value = given.get(name);
      if (value !== null) headers.set(name, value);
    }
    // A redirect could carry the key and the prompt to a host nobody named.
    const response = await fetch(input, { ...init, headers, redirect: "error" });
    timer.refresh();
    if (response.body === null) return response;
    const { status, statusText } = response;
    return new Response(watch(response.body), { status, statusText, headers: response.headers });
  };

  return {
    fetch: watchedFetch,
    signal: closing.signal,
    done: () => lines.done(),
    interrupted: () => broken ?? (signal.aborted ? "cancelled" : undefined),
    close() {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      if (!ended) closing.abort();
    },
  };
}

/** Follows the lines of a reply that comes in pieces of any size; only the start of each is kept. */
function lineWatch(): { read(bytes: Uint8Array): Unreadable | undefined; done(): boolean } {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const marks = ["data: [DONE]", "data:[DONE]"];
  const keep = "data: [DONE]".length;
  let start = "";
  let line = 0;
  let event = 0;
  let total = 0;
  let done = false;
  return {
    read(bytes) {
      total += bytes.length;
      if (total > maxReply) return "large";
      let text: string;
      try {
        text = decoder.decode(bytes, { stream: true });
      } catch {
        return "encoding";
      }
      for (const [index, piece] of text.split(/\r\n|[\r\n]/).entries()) {
        if (index > 0) {
          // An empty line ends the event.
          if (line === 0) event = 0;
          line = 0;
          start = "";
        }
        line += piece.length;
        // In characters: it may have some more bytes than that, which is as safe.
        event += piece.length;
        if (event > maxEvent) return "long event";
        if (start.length < keep) start += piece.slice(0, keep);
        done ||= marks.some((mark) => start.startsWith(mark));
      }
      return undefined;
    },
    done: () => done,
  };
}
