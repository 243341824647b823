import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { gzipSync } from "node:zlib";
import { htmlText } from "../../src/tools/html-text.ts";
import { isPublic } from "../../src/tools/web-fetch.ts";
import { makeWorkspace } from "./workspace.ts";

const canary = "CANARY-from-inside";
let hits = 0;
const pages: { readonly [path: string]: (response: ServerResponse) => void } = {
  "/page": (it) =>
    it
      .setHeader("content-type", "text/html; charset=utf-8")
      .end("<title>T</title><h1>A &amp; b</h1><script>x()</script><p>é <a href='https://e.org/x'>link</a>"),
  "/json": (it) => it.setHeader("content-type", "application/json").end('{"a":1}'),
  "/zip": (it) => it.setHeader("content-type", "application/zip").end("PK"),
  "/gone": (it) => it.writeHead(404, { "content-type": "text/plain" }).end("nothing here"),
  "/here": (it) => it.writeHead(302, { location: "/json" }).end(),
  "/away": (it) => it.writeHead(302, { location: "http://other.example:8080/x" }).end(),
  "/loop": (it) => it.writeHead(302, { location: "/loop" }).end(),
  "/bomb": (it) =>
    it
      .writeHead(200, { "content-type": "text/plain", "content-encoding": "gzip" })
      .end(gzipSync(Buffer.alloc(30_000_000, "x"))),
};
const server = createServer((request: IncomingMessage, response) => {
  hits += 1;
  const page = pages[request.url ?? ""];
  if (page) page(response);
  else response.end(canary);
});
let port = 0;
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  port = typeof address === "object" ? (address?.port ?? 0) : 0;
});
const strict = makeWorkspace();
const open = makeWorkspace({ reaches: (address) => address === "127.0.0.1" });
afterAll(() => {
  server.close();
  strict.remove();
  open.remove();
});

const read = (path: string): Promise<string> => open.call("WebFetch", { url: `http://127.0.0.1:${port}${path}` });

describe("WebFetch", () => {
  it("gives a page as text", async () => {
    expect(await read("/page")).toBe("T\n\n# A & b\n\né link (https://e.org/x)");
    expect(await read("/json")).toBe('{"a":1}');
  });

  it("follows redirects on the same host only, and not for ever", async () => {
    expect(await read("/here")).toBe('{"a":1}');
    expect(await read("/away")).toContain("leads to another host: http://other.example:8080/x");
    expect(await read("/loop")).toContain("redirects more than 5 times");
  });

  it("refuses what is no text, and says what a server answered", async () => {
    expect(await read("/zip")).toContain("application/zip; only text is read");
    expect(await read("/gone")).toContain("answered 404: nothing here");
  });

  it("unpacks no more than 5 MiB", async () => {
    const text = await read("/bomb");
    expect([text.length < 5_300_000, text.endsWith("[cut after 5 MiB]")]).toEqual([true, true]);
  });

  it.each([
    "http://127.0.0.1:PORT/",
    "http://localhost:PORT/",
    "http://localhost.:PORT/",
    "http://127.1:PORT/",
    "http://2130706433:PORT/",
    "http://0x7f000001:PORT/",
    "http://0177.0.0.1:PORT/",
    "http://0.0.0.0:PORT/",
    "http://[::1]:PORT/",
    "http://[::ffff:127.0.0.1]:PORT/",
    "http://[::ffff:7f00:1]:PORT/",
    "http://[64:ff9b::7f00:1]:PORT/",
    "http://169.254.169.254/latest/meta-data/",
    "http://10.0.0.1/",
    "http://192.168.0.1/",
    "http://[fd00::1]/",
    "http://user:pass@127.0.0.1:PORT/",
    "file:///etc/passwd",
    "ftp://127.0.0.1/",
    "127.0.0.1:PORT",
  ])("does not reach %s", { timeout: 40_000 }, async (url) => {
    const before = hits;
    const answer = await strict.call("WebFetch", { url: url.replace("PORT", String(port)) });
    expect(answer).toMatch(/^error: /);
    expect([answer.includes(canary), hits]).toEqual([false, before]);
  });

  it("knows which addresses are public", async () => {
    const verdicts = await Promise.all(
      ["93.184.216.34", "2606:2800:220:1::1", "100.64.0.1", "224.0.0.1", "x"].map(isPublic),
    );
    expect(verdicts).toEqual([true, true, false, false, false]);
  });
});

describe("HTML as text", () => {
  it.each([
    ["a<br>b", "a\nb"],
    ["<ul><li>one<li>two</ul>", "- one\n- two"],
    ["<!-- <p>x --> y <STYLE>p > a {}</STYLE>z", "y z"],
    ['<p title="a > b">t</p>', "t"],
    ["a &lt;b&gt; &#233; &#x1F600; &nope;", "a <b> é 😀 &nope;"],
    ["<script>never ends", ""],
    ["<p", ""],
    ["< 3", ""],
  ])("%j", (html, text) => {
    expect(htmlText(html)).toBe(text);
  });

  it("is read in linear time", () => {
    const start = performance.now();
    for (const piece of ["<", "<a href=", "<!--", "<script>", "</", '="', "&#", "<a href   "])
      htmlText(piece.repeat(200_000));
    expect(performance.now() - start).toBeLessThan(5_000);
  });
});
