import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { connect, type CallFailure, type Connection } from "../../src/mcp/connect.ts";
import type { ServerSpec } from "../../src/mcp/server.ts";
import type { JsonObject } from "../../src/model/json.ts";
import type { ToolOutput } from "../../src/model/ports.ts";
import type { Result } from "../../src/model/result.ts";
import { Marks } from "../../src/process/marks.ts";

const nasty = fileURLToPath(new URL("nasty-server.mjs", import.meta.url));
const packages = fileURLToPath(new URL("../../node_modules/@modelcontextprotocol/", import.meta.url));
const never = new AbortController().signal;

const marks = new Marks("mcp-test");
const notes: string[] = [];
afterEach(async () => {
  await marks.reap();
  notes.length = 0;
});

function spec(argv: readonly string[], more: Partial<ServerSpec> = {}): ServerSpec {
  const address = {
    kind: "stdio" as const,
    argv: [process.execPath, ...argv],
    cwd: packages,
    env: { PATH: process.env["PATH"] ?? "" },
  };
  return { name: "it", address, callTime: 5000, ...more };
}

function open(server: ServerSpec, startTime = 10_000): ReturnType<typeof connect> {
  return connect(server, { version: "1", marks, startTime, note: (message) => notes.push(message) });
}

async function opened(way: string, more: Partial<ServerSpec> = {}): Promise<Connection> {
  const connected = await open(spec([nasty, way], more));
  if (!connected.ok) throw new Error(connected.error);
  return connected.value;
}

async function call(
  connection: Connection,
  name: string,
  args: JsonObject = {},
  signal = never,
): Promise<Result<ToolOutput, CallFailure>> {
  const tool = connection.tools.find((it) => it.name === name);
  if (tool === undefined) throw new Error(`no tool ${name}`);
  return connection.call(tool, args, signal);
}

const text = (words: string): object => ({ ok: true, value: { blocks: [{ type: "text", text: words }] } });

describe("a real server over stdin and stdout", () => {
  it("tells its tools, and gives text, images and structured content", async () => {
    const connected = await open(spec([`${packages}server-everything/dist/index.js`]));
    if (!connected.ok) throw new Error(connected.error);
    const it = connected.value;
    expect(it.tools.map(({ name }) => name)).toEqual(expect.arrayContaining(["echo", "get-sum", "get-tiny-image"]));
    expect(await call(it, "echo", { message: "hi" })).toEqual(text("Echo: hi"));
    const image = await call(it, "get-tiny-image");
    expect(image.ok && image.value.blocks.map(({ type }) => type)).toContain("image");
    const weather = await call(it, "get-structured-content", { location: "Chicago" });
    expect(weather.ok && weather.value.structured).toMatchObject({ conditions: expect.any(String) });
    await it.close();
    expect(await marks.reap()).toBe(0);
  });
});

describe("a server that cannot be used", () => {
  it.each([
    ["exit-at-once", /it ended \(exit code 3\).*no licence found/s],
    ["bad-list", /invalid/i],
  ])("is refused with a reason: %s", async (way, reason) => {
    const connected = await open(spec([nasty, way]));
    expect(connected.ok ? "connected" : connected.error).toMatch(reason);
  });

  it.each(["no-answer", "garbage", "no-list"])("is given up when its time is over: %s", async (way) => {
    const begun = performance.now();
    const connected = await open(spec([nasty, way]), 1500);
    expect(connected).toEqual({ ok: false, error: "it did not answer within 1.5 s" });
    expect(performance.now() - begun).toBeLessThan(5000);
    expect(await marks.reap()).toBe(0);
  });

  it("is refused when there is no such program", async () => {
    const address = { kind: "stdio" as const, argv: ["no-such-mcp-server"], cwd: packages, env: { PATH: "/bin" } };
    const connected = await open({ name: "it", address, callTime: 1000 });
    expect(connected.ok ? "" : connected.error).toContain("no such program in PATH");
  });

  it("is cut off when it floods its stdout, in bounded memory", { timeout: 20_000 }, async () => {
    const before = process.memoryUsage().rss;
    const connected = await open(spec([nasty, "flood"]));
    expect(connected).toEqual({ ok: false, error: "it sent a message of more than 16 MB" });
    expect(process.memoryUsage().rss - before).toBeLessThan(150 * 1024 * 1024);
  });
});

describe("a server that goes wrong in the middle", () => {
  it("passes over what is no message, and says so once", async () => {
    const it = await opened("prints");
    expect(await call(it, "echo", { say: "a" })).toEqual(text("echo: a"));
    expect(notes).toEqual([expect.stringContaining("Nasty server 1.0 is listening")]);
    await it.close();
  });

  it("lives with unknown, doubled and impossible ids", async () => {
    const it = await opened("odd-ids");
    expect(await call(it, "echo", { say: "a" })).toEqual(text("echo: a"));
    await it.close();
  });

  it("gives an error when it crashes, and to every call after that", async () => {
    const it = await opened("");
    const crashed = await call(it, "crash");
    expect(crashed.ok ? "" : crashed.error.message).toMatch(
      /the MCP server `it` is gone: it ended \(exit code 9\).*segmentation fault/s,
    );
    expect(it.isOver).toBe(true);
    expect(await call(it, "echo")).toEqual(crashed);
  });

  it("gives an error when a call takes too long, and goes on", async () => {
    const it = await opened("", { callTime: 300 });
    expect(await call(it, "hang")).toEqual({
      ok: false,
      error: { message: "it gave no answer within 0.3 s", said: false },
    });
    expect(await call(it, "garbage")).toEqual({
      ok: false,
      error: { message: "it gave no answer within 0.3 s", said: false },
    });
    expect(await call(it, "echo", { say: "b" })).toEqual(text("echo: b"));
    await it.close();
  });

  it("is ended by a message that is too long", async () => {
    const it = await opened("");
    const huge = await call(it, "huge");
    expect(huge.ok ? "" : huge.error.message).toContain("it sent a message of more than 16 MB");
  });

  it("is heard when it says that it failed, and not believed when it breaks its own schema", async () => {
    const it = await opened("");
    expect(await call(it, "fail")).toEqual({ ok: false, error: { message: "the disk is on fire", said: true } });
    expect(await call(it, "liar")).toMatchObject({
      ok: false,
      error: { message: expect.stringContaining("/n"), said: false },
    });
    await it.close();
  });

  it("may say that its list has changed: that is told and changes nothing", async () => {
    const it = await opened("");
    const before = it.tools;
    expect(await call(it, "change")).toEqual(text("changed"));
    expect(notes).toEqual([expect.stringContaining("stay those it began with")]);
    expect(it.tools).toBe(before);
    await it.close();
  });

  it("is not believed a number that would silently become another one", async () => {
    const it = await opened("");
    const said = await call(it, "exact");
    expect(said.ok ? said.value : said.error.message).toMatch(/the number 9007199254740993 is too large to be kept/);
    expect(await call(it, "echo", { say: "a" })).toEqual(text("echo: a"));
    await it.close();
  });

  it("has its large images left out, and told", async () => {
    const it = await opened("");
    const shown = await call(it, "image");
    expect(shown.ok && shown.value.blocks).toEqual([
      { type: "text", text: "[image, image/png, 10485760 characters of base64: left out]" },
      { type: "image", mediaType: "image/png", data: "iVBORw0KGgo=" },
    ]);
    await it.close();
  });

  it("is left alone as soon as the call is cancelled", async () => {
    const it = await opened("");
    const cancel = new AbortController();
    const hanging = call(it, "hang", {}, cancel.signal);
    cancel.abort();
    expect(await hanging).toEqual({ ok: false, error: { message: "cancelled", said: false } });
    await it.close();
  });

  it("leaves no process, however stubborn", { timeout: 20_000 }, async () => {
    const it = await opened("stubborn");
    await it.close();
    expect(await marks.reap()).toBe(0);
  });
});
