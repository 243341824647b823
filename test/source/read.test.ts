import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { readSource } from "../../src/source/read.ts";

const folder = mkdtempSync(join(tmpdir(), "flow-read-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function path(name: string): string {
  return join(folder, name);
}

async function refusal(at: string): Promise<string> {
  const result = await readSource(at);
  return result.ok ? "read" : `${result.error.code}: ${result.error.message}`;
}

test("a file is read byte by byte as it is", async () => {
  const content = Buffer.from([0xef, 0xbb, 0xbf, 97, 0, 13, 255]);
  writeFileSync(path("bytes"), content);
  const result = await readSource(path("bytes"));
  expect(result.ok && Buffer.from(result.value).equals(content)).toBe(true);
});

test("a link to a file is read, and an empty file too", async () => {
  writeFileSync(path("empty"), "");
  symlinkSync(path("empty"), path("link"));
  const result = await readSource(path("link"));
  expect(result.ok && result.value.length).toBe(0);
});

test("a file of exactly 8 MiB is read and one byte more is not", async () => {
  writeFileSync(path("large"), "");
  truncateSync(path("large"), 8 * 1024 * 1024);
  const result = await readSource(path("large"));
  expect(result.ok && result.value.length).toBe(8 * 1024 * 1024);
  truncateSync(path("large"), 8 * 1024 * 1024 + 1);
  expect(await refusal(path("large"))).toBe("FLOW1003: the file has 8388609 bytes; at most 8388608 are read");
});

test.skipIf(process.platform !== "linux")("a file longer than its size says is read to its end", async () => {
  // Files of /proc have size 0.
  const result = await readSource("/proc/self/status");
  expect(result.ok && result.value.length > 0).toBe(true);
});

describe("what is no readable file is refused without waiting (yaml-26):", () => {
  test("a pipe", async () => {
    execFileSync("mkfifo", [path("pipe")]);
    expect(await refusal(path("pipe"))).toBe("FLOW1002: it is a pipe, socket or device, not a regular file");
  });
  test("a device", async () => {
    expect(await refusal("/dev/zero")).toMatch(/^FLOW1002/);
  });
  test("a directory", async () => {
    expect(await refusal(folder)).toBe("FLOW1002: it is a directory, not a file");
  });
  test("nothing", async () => {
    expect(await refusal(path("missing"))).toBe("FLOW1001: there is no such file");
  });
  test("a path through a file", async () => {
    writeFileSync(path("file"), "");
    expect(await refusal(join(path("file"), "x"))).toBe("FLOW1001: a part of the path is not a directory");
  });
  test("links in a circle", async () => {
    symlinkSync(path("circle-b"), path("circle-a"));
    symlinkSync(path("circle-a"), path("circle-b"));
    expect(await refusal(path("circle-a"))).toBe("FLOW1001: its symbolic links go in a circle");
  });
  test("a name that is too long", async () => {
    expect(await refusal(path("x".repeat(5000)))).toBe("FLOW1001: the path is too long");
  });
  test("a path with a NUL", async () => {
    expect(await refusal("a\0b")).toBe("FLOW1001: the path holds a NUL character");
  });
  test.skipIf(process.getuid?.() === 0)("a file one may not read", async () => {
    mkdirSync(path("closed"));
    writeFileSync(path("closed/file"), "");
    chmodSync(path("closed/file"), 0);
    expect(await refusal(path("closed/file"))).toBe("FLOW1001: reading it is not permitted");
  });
});
