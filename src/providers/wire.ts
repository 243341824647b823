export type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

/** One HTTP call as seen below the SDK, which hides silence, comments, the closing mark and who aborted. */
export interface Wire {
  readonly fetch: Fetch;
  /** Aborted by the caller or by silence. */
  readonly signal: AbortSignal;
  /** True once the line `data: [DONE]` has come. */
  done(): boolean;
  interrupted(): "cancelled" | "idle" | undefined;
  /** Ends the call if it is still open. */
  close(): void;
}

export interface WireOptions {
  readonly fetch: Fetch;
  readonly signal: AbortSignal;
  /** Milliseconds. Any byte is life, comments included. */
  readonly idleTimeout: number;
  /** False: no Authorization header is sent. */
  readonly withKey: boolean;
}

/** What a model server needs. The SDK also sends headers it finds in the environment; they go nowhere. */
const headerNames: readonly string[] = ["accept", "content-type", "user-agent"];

export function openWire({ fetch, signal, idleTimeout, withKey }: WireOptions): Wire {
  const closing = new AbortController();
  const both = AbortSignal.any([signal, closing.signal]);
  const seen = doneWatch();
  let idle = false;
  const timer = setTimeout(() => {
    idle = true;
    closing.abort();
  }, idleTimeout);

  const watch = (body: ReadableStream<Uint8Array<ArrayBuffer>>): ReadableStream<Uint8Array<ArrayBuffer>> =>
    body.pipeThrough(
      new TransformStream({
        transform(bytes: Uint8Array<ArrayBuffer>, stream) {
          timer.refresh();
          seen.read(bytes);
          stream.enqueue(bytes);
        },
      }),
    );

  const watchedFetch: Fetch = async (input, init) => {
    const headers = new Headers();
    const given = new Headers(init?.headers);
    for (const name of withKey ? [...headerNames, "authorization"] : headerNames) {
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
    signal: both,
    done: () => seen.done(),
    interrupted: () => (idle ? "idle" : signal.aborted ? "cancelled" : undefined),
    close() {
      clearTimeout(timer);
      closing.abort();
    },
  };
}

/** Finds the line `data: [DONE]` in pieces of any size; only the start of each line is kept. */
function doneWatch(): { read(bytes: Uint8Array): void; done(): boolean } {
  const mark = /^data: ?\[DONE\]/;
  const keep = "data: [DONE]".length;
  let line = "";
  let done = false;
  return {
    read(bytes) {
      const [first = "", ...rest] = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
        .toString("latin1")
        .split(/[\r\n]/);
      for (const piece of [`${line}${first}`, ...rest]) {
        line = piece.slice(0, keep);
        done ||= mark.test(line);
      }
    },
    done: () => done,
  };
}
