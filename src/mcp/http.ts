import type { FetchLike } from "@modelcontextprotocol/client";
import { largestMessage } from "./server.ts";

/** `fetch` whose answers fail at a message that is too long: nobody below counts. */
export const boundedFetch: FetchLike = async (url, init) => {
  const response = await fetch(url, init);
  if (response.body === null) return response;
  const isStream = response.headers.get("content-type")?.includes("text/event-stream") === true;
  const body = response.body.pipeThrough(bounded(isStream));
  const { status, statusText, headers } = response;
  const counted = new Response(body, { status, statusText, headers });
  // Whether a redirect was followed is read from these, and a response of one's own has neither.
  Object.defineProperties(counted, { url: { value: response.url }, redirected: { value: response.redirected } });
  return counted;
};

/** In a stream of events every line counts for itself, since an event is one. */
function bounded(isStream: boolean): TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>> {
  let size = 0;
  return new TransformStream({
    transform(chunk, controller) {
      const lineEnd = isStream ? chunk.lastIndexOf(10) : -1;
      size = lineEnd === -1 ? size + chunk.length : chunk.length - lineEnd;
      if (size > largestMessage)
        controller.error(new Error(`it sent a message of more than ${largestMessage / 1024 / 1024} MB`));
      else controller.enqueue(chunk);
    },
  });
}
