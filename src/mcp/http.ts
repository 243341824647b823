import type { FetchLike } from "@modelcontextprotocol/client";
import { exactMessage } from "./exact.ts";
import { Lines } from "./lines.ts";
import { largestMessage } from "./server.ts";

/** `fetch` whose answers fail at a message that is too long, and hold no number that cannot be kept: nobody below looks. */
export const boundedFetch: FetchLike = async (url, init) => {
  const response = await fetch(url, init);
  if (response.body === null) return response;
  const isStream = response.headers.get("content-type")?.includes("text/event-stream") === true;
  const body = response.body.pipeThrough(isStream ? byEvent() : whole());
  const { status, statusText } = response;
  const headers = new Headers(response.headers);
  headers.delete("content-length");
  const counted = new Response(body, { status, statusText, headers });
  // Whether a redirect was followed is read from these, and a response of one's own has neither.
  Object.defineProperties(counted, { url: { value: response.url }, redirected: { value: response.redirected } });
  return counted;
};

type Bytes = Uint8Array<ArrayBuffer>;

/** In a stream of events every line counts for itself, since an event is one. */
function byEvent(): TransformStream<Bytes, Bytes> {
  const encoder = new TextEncoder();
  let hear = (_line: string): void => undefined;
  let refuse = (): void => undefined;
  const lines = new Lines(
    largestMessage,
    (line) => hear(line),
    () => refuse(),
  );
  return new TransformStream({
    start(controller) {
      hear = (line) => {
        const data = /^data: ?/.exec(line)?.[0];
        const kept = data === undefined ? line : data + exactMessage(line.slice(data.length));
        controller.enqueue(encoder.encode(`${kept}\n`));
      };
      refuse = () => controller.error(tooLong());
    },
    transform: (chunk) => lines.add(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)),
  });
}

function whole(): TransformStream<Bytes, Bytes> {
  const chunks: Bytes[] = [];
  let size = 0;
  return new TransformStream({
    transform(chunk, controller) {
      size += chunk.length;
      if (size > largestMessage) controller.error(tooLong());
      else chunks.push(chunk);
    },
    flush(controller) {
      controller.enqueue(new TextEncoder().encode(exactMessage(Buffer.concat(chunks).toString("utf8"))));
    },
  });
}

function tooLong(): Error {
  return new Error(`it sent a message of more than ${largestMessage / 1024 / 1024} MB`);
}
