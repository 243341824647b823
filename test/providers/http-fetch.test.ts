import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { afterEach, describe, expect, it } from "vitest";
import { httpFetch } from "../../src/providers/http-fetch.ts";

const open: (() => void)[] = [];
afterEach(() => {
  for (const close of open.splice(0)) close();
});

async function serving(answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  open.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
}

function causeOf(error: unknown): unknown {
  return error instanceof TypeError && error.cause instanceof Error ? error.cause : error;
}

describe("the fetch of model calls", () => {
  it("sends method, headers and body, and gives status, headers and body back", async () => {
    const url = await serving((request, response) => {
      let body = "";
      request.on("data", (piece) => (body += String(piece)));
      request.on("end", () => {
        response.writeHead(429, { "retry-after": "7", "x-two": ["a", "b"] });
        response.end(
          JSON.stringify([request.method, request.headers["x-key"], request.headers["content-length"], body]),
        );
      });
    });
    const response = await httpFetch(url, { method: "POST", headers: { "x-key": "k" }, body: "grüße" });
    expect([response.ok, response.status, response.headers.get("retry-after"), response.headers.get("x-two")]).toEqual([
      false,
      429,
      "7",
      "a, b",
    ]);
    expect(await response.json()).toEqual(["POST", "k", "7", "grüße"]);
  });

  it.each([
    ["gzip", gzipSync],
    ["deflate", deflateSync],
    ["br", brotliCompressSync],
  ] as const)("reads a reply in %s that nobody asked for", async (encoding, pack) => {
    const url = await serving((_, response) => {
      response.writeHead(200, { "content-encoding": encoding });
      response.end(pack("hello"));
    });
    expect(await (await httpFetch(url)).text()).toBe("hello");
  });

  it("fails when a packed reply is damaged or cut off", async () => {
    const damaged = await serving((_, response) => {
      response.writeHead(200, { "content-encoding": "gzip" });
      response.end("no gzip");
    });
    await expect((await httpFetch(damaged)).text()).rejects.toThrow("incorrect header check");
    const cut = await serving((_, response) => {
      response.writeHead(200, { "content-encoding": "gzip", "content-length": "1000" });
      response.write(gzipSync("hello".repeat(1000)).subarray(0, 20), () => response.destroy());
    });
    await expect((await httpFetch(cut)).text()).rejects.toThrow("aborted");
  });

  it("fails at a redirect, with the code of a connection that is refused, and where the reply is cut off", async () => {
    const away = await serving((_, response) => response.writeHead(307, { location: "http://elsewhere/" }).end());
    expect(causeOf(await httpFetch(away).catch((error: unknown) => error))).toMatchObject({
      message: "unexpected redirect",
    });
    expect(causeOf(await httpFetch("http://127.0.0.1:1/").catch((error: unknown) => error))).toMatchObject({
      code: "ECONNREFUSED",
    });
    const cut = await serving((_, response) => {
      response.writeHead(200, { "content-length": "1000" });
      response.write("begun", () => response.destroy());
    });
    await expect((await httpFetch(cut)).text()).rejects.toMatchObject({ code: "ECONNRESET" });
  });

  it("ends the connection when it is aborted, before the reply, in it, and before the request", async () => {
    let closed = 0;
    const silent = await serving((request) => void request.socket.on("close", () => closed++));
    const first = new AbortController();
    const waiting = httpFetch(silent, { signal: first.signal });
    setTimeout(() => first.abort(), 50);
    await expect(waiting).rejects.toThrow("fetch failed");
    await expect.poll(() => closed).toBe(1);
    const endless = await serving((request, response) => {
      request.socket.on("close", () => closed++);
      response.write("begun");
    });
    const second = new AbortController();
    const response = await httpFetch(endless, { signal: second.signal });
    setTimeout(() => second.abort(), 50);
    await expect(response.text()).rejects.toThrow("aborted");
    await expect.poll(() => closed).toBe(2);
    await expect(httpFetch(endless, { signal: second.signal })).rejects.toThrow("fetch failed");
  });

  it("ends the connection when nobody reads the reply to its end, and does not take more of it than fits", async () => {
    let written = 0;
    let closed = false;
    const url = await serving((request, response) => {
      request.socket.on("close", () => (closed = true));
      const more = (): void => {
        while (!closed && written < 200e6) {
          written += 65_536;
          if (!response.write(Buffer.alloc(65_536))) return void response.once("drain", more);
        }
      };
      more();
    });
    const reader = (await httpFetch(url)).body?.getReader();
    await reader?.read();
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(written).toBeLessThan(50e6);
    await reader?.cancel();
    await expect.poll(() => closed).toBe(true);
  });

  it("uses a connection again", async () => {
    const ports = new Set<number | undefined>();
    const url = await serving((request, response) => {
      ports.add(request.socket.remotePort);
      response.end("ok");
    });
    for (let call = 0; call < 3; call++) await (await httpFetch(url, { method: "POST", body: "x" })).text();
    expect(ports.size).toBe(1);
  });
});
