import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface SseServer {
  /** With `/v1`. */
  readonly url: string;
  /** Answers the next requests. */
  answer: (request: IncomingMessage, response: ServerResponse, body: string) => void;
  close(): Promise<void>;
}

/** A loopback server on a free port that says exactly what a test tells it to. */
export async function sseServer(): Promise<SseServer> {
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8");
    request.on("data", (text: string) => (body += text));
    request.on("end", () => opened.answer(request, response, body));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const opened: SseServer = {
    url: `http://127.0.0.1:${port}/v1`,
    answer: (_, response) => response.end(),
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
  return opened;
}

export const sseHeaders = { "content-type": "text/event-stream" };

/** A reply as a server of this protocol streams it: one event for each chunk, then the closing mark. */
export function sse(...chunks: readonly unknown[]): string {
  return [...chunks.map((chunk) => JSON.stringify(chunk)), "[DONE]"].map((data) => `data: ${data}\n\n`).join("");
}

export function choice(delta: unknown, finish: string | null = null, more: object = {}): unknown {
  return { choices: [{ index: 0, delta, finish_reason: finish, ...more }] };
}
