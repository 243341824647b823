import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ModelClient } from "../../src/model/ports.ts";
import { anthropicClient } from "../../src/providers/anthropic.ts";
import { openaiClient } from "../../src/providers/openai.ts";
import type { ServerOptions } from "../../src/providers/server.ts";
import { maxEvent, maxReply } from "../../src/providers/wire.ts";
import { drain, requestWith } from "./drain.ts";
import { block, callBlock, messageEnd, messageStart, sseEvents, textBlock } from "./messages.ts";
import { serverOptions } from "./server-options.ts";
import { choice, sse, sseHeaders, sseServer, type SseServer } from "./sse-server.ts";

let server: SseServer;
beforeAll(async () => {
  server = await sseServer();
});
afterAll(() => server.close());

const messages = sseEvents(
  messageStart(),
  ...block(
    0,
    { type: "thinking", thinking: "" },
    { type: "thinking_delta", thinking: "é…" },
    { type: "signature_delta", signature: "s" },
  ),
  ...textBlock(1, "Grüße 🌍"),
  ...callBlock(2, { id: "toolu_1", name: "write" }, '{"text":"', '🌍é"}'),
  ...messageEnd("tool_use"),
);

const chat = sse(
  choice({ content: "Grüße 🌍" }),
  choice({ tool_calls: [{ index: 0, id: "call_1", function: { name: "write", arguments: '{"text":"🌍é"}' } }] }),
  choice({}, "tool_calls"),
);

type Make = (options: ServerOptions) => ModelClient;
const protocols: readonly [string, Make, string][] = [
  ["Anthropic's", anthropicClient, messages],
  ["OpenAI's", openaiClient, chat],
];

/** A reply whose bytes come as the pieces say; with `fault` it breaks after the last. */
function pieces(all: Iterable<Uint8Array>, fault?: Error): NonNullable<ServerOptions["fetch"]> {
  return () => {
    const iterator = all[Symbol.iterator]();
    const body = new ReadableStream<Uint8Array>({
      pull(stream) {
        const next = iterator.next();
        if (next.done !== true) stream.enqueue(new Uint8Array(next.value));
        else if (fault === undefined) stream.close();
        else stream.error(fault);
      },
    });
    return Promise.resolve(new Response(body, { headers: sseHeaders }));
  };
}

describe.each(protocols)("a stream of %s protocol", { timeout: 60_000 }, (_, make, whole) => {
  const bytes = Buffer.from(whole);
  // The empty line after the last event is not missed: the event itself says that all is there.
  const complete = bytes.length - "\n\n".length;
  const reading = (fetch: NonNullable<ServerOptions["fetch"]>): ReturnType<typeof drain> =>
    drain(make(serverOptions("http://127.0.0.1/v1", { fetch })), requestWith("hi"));

  it("is never taken for whole, wherever it ends", async () => {
    const accepted: number[] = [];
    for (let cut = 0; cut < complete; cut++) {
      const { end } = await reading(pieces([bytes.subarray(0, cut)]));
      if (end?.type !== "failed" || !end.failure.transient) accepted.push(cut);
    }
    expect(accepted).toEqual([]);
    expect((await reading(pieces([bytes]))).end).toMatchObject({ type: "done", stop: "calls" });
  });

  it("is never taken for whole, wherever the connection breaks", async () => {
    const reset = Object.assign(new TypeError("terminated"), { cause: { code: "ECONNRESET" } });
    for (let cut = 0; cut < complete; cut += 3) {
      const { end } = await reading(pieces([bytes.subarray(0, cut)], reset));
      expect(end).toMatchObject({ type: "failed", failure: { kind: "provider_error", transient: true } });
    }
  });

  it("reads the same wherever it is split, also inside a character, and byte by byte", async () => {
    const { text, calls } = await reading(pieces([bytes]));
    expect({ text, raw: calls[0]?.raw }).toEqual({ text: "Grüße 🌍", raw: '{"text":"🌍é"}' });
    for (let split = 1; split < bytes.length; split++) {
      const read = await reading(pieces([bytes.subarray(0, split), bytes.subarray(split)]));
      expect([read.text, read.calls, read.end?.type]).toEqual([text, calls, "done"]);
    }
    const single = await reading(pieces(Array.from(bytes, (byte) => Uint8Array.of(byte))));
    expect([single.text, single.calls, single.end?.type]).toEqual([text, calls, "done"]);
  });

  it("is a failure with any byte that is not UTF-8 in it", async () => {
    for (const at of [20, bytes.indexOf("Gr") + 1, bytes.length - 30]) {
      const broken = Buffer.from(bytes);
      broken[at] = 0xff;
      const { end } = await reading(pieces([broken]));
      expect(end).toMatchObject({ type: "failed", failure: { message: expect.stringContaining("UTF-8") as string } });
    }
  });

  it("is a failure with a piece that is not JSON", async () => {
    const { end } = await reading(
      pieces([Buffer.from(whole.replace('"type"', '"type').replace('{"choices"', '{"choices'))]),
    );
    expect(end).toMatchObject({ type: "failed", failure: { kind: "provider_error", transient: true } });
  });

  it("ends at a line or a reply that is too long, in bounded memory", async () => {
    const mebibyte = Buffer.alloc(1024 * 1024, "x");
    let sent = 0;
    function* endless(line: Buffer): Generator<Uint8Array> {
      for (; sent < 300; sent++) yield line;
    }
    const before = process.memoryUsage().rss;
    const long = await reading(pieces(endless(mebibyte)));
    expect(long.end).toMatchObject({
      failure: { message: expect.stringContaining("4 MiB") as string, transient: false },
    });
    expect(sent).toBeLessThan(maxEvent / mebibyte.length + 4);
    sent = 0;
    mebibyte[0] = 0x3a;
    mebibyte.write("\n\n", mebibyte.length - 2);
    const large = await reading(pieces(endless(mebibyte)));
    expect(large.end).toMatchObject({ failure: { message: expect.stringContaining("64 MiB") as string } });
    expect(sent).toBeLessThan(maxReply / mebibyte.length + 4);
    expect(process.memoryUsage().rss - before).toBeLessThan(200 * 1024 * 1024);
  });
});

const vectors = fileURLToPath(new URL("../../../shared/samples/sse-vectors.json", import.meta.url));

describe.skipIf(!existsSync(vectors))("streams as a reference parser reads them", () => {
  const samples = existsSync(vectors)
    ? (JSON.parse(readFileSync(vectors, "utf8")) as { name: string; stream: string; events: { data: string }[] }[])
    : [];
  /** The SDK's reader wants JSON: each line of data becomes one chunk, and its text is what arrives. */
  const asChunks = (stream: string): string =>
    stream.replaceAll(
      /^(data: ?)([a-z]+)(?=\r?$)/gm,
      (_, field: string, text: string) => `${field}${JSON.stringify(choice({ content: text }))}`,
    );

  it.each(samples.filter(({ stream }) => /^(: ping\n\n)?data: ?[a-z]+\r?\n\r?\n$/.test(stream)))(
    "$name",
    async ({ stream, events }) => {
      server.answer = (_, response) =>
        response.writeHead(200, sseHeaders).end(asChunks(stream) + sse(choice({}, "stop")));
      const { text } = await drain(openaiClient(serverOptions(server.url)), requestWith("hi"));
      expect(text).toBe(events.map(({ data }) => data).join(""));
    },
  );
});
