import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { exactMessage } from "../../src/mcp/exact.ts";
import { boundedFetch } from "../../src/mcp/http.ts";

const answer = (id: number, number: string): string =>
  `{"jsonrpc":"2.0","id":${id},"result":{"content":[],"structuredContent":{"n":${number}}}}`;
const [good, bad] = [answer(1, "9007199254740991"), answer(2, "9007199254740993")];
const events = `: hello\r\nevent: message\r\nid: 7\r\ndata: ${good}\r\n\r\ndata:${bad}\n\n`;
const refusal = /"id":2,"error":\{"code":-32603,"message":"what it gave was not taken: the number 9007199254740993/;

describe("structured content of the wire", () => {
  it("is an error where a number in it cannot be kept, and untouched otherwise", () => {
    expect(exactMessage(good)).toBe(good);
    expect(exactMessage(bad)).toMatch(refusal);
    expect(exactMessage(`[${good},${bad}]`)).toMatch(refusal);
    expect(JSON.parse(exactMessage(`[${good},${answer(3, "1e400")}]`))).toMatchObject([{ error: {} }, { error: {} }]);
    const elsewhere = '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"maximum":18446744073709551615}]}}';
    for (const text of [elsewhere, "no JSON 9007199254740993", '{"structuredContent": 12345678901234567890', ""])
      expect(exactMessage(text)).toBe(text);
  });
});

describe("answers over HTTP", () => {
  const server = createServer((request, response) => {
    const isStream = request.url === "/stream";
    response.setHeader("content-type", isStream ? "text/event-stream" : "application/json");
    const text = isStream ? events : request.url === "/good" ? good : bad;
    // One byte at a time, so that every border falls into some chunk.
    for (const byte of Buffer.from(text)) response.write(Buffer.from([byte]));
    response.end();
  });
  let base = "";
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => void server.close());

  it.each([
    ["/good", good],
    ["/bad", expect.stringMatching(refusal)],
  ])("are read as exactly as those of a process: %s", async (path, wanted) => {
    expect(await (await boundedFetch(`${base}${path}`)).text()).toEqual(wanted);
  });

  it("keep the events of a stream", async () => {
    const lines = (await (await boundedFetch(`${base}/stream`)).text()).split("\n");
    expect(lines.slice(0, 5)).toEqual([": hello", "event: message", "id: 7", `data: ${good}`, ""]);
    expect(lines[5]).toMatch(refusal);
    expect(lines.slice(6)).toEqual(["", ""]);
  });
});
