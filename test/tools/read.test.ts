import { closeSync, mkdirSync, openSync, symlinkSync, truncateSync, writeFileSync, writeSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Marks } from "../../src/process/marks.ts";
import { createTools } from "../../src/tools/index.ts";
import { type Workspace, makeWorkspace } from "./workspace.ts";

let work: Workspace;
beforeAll(() => (work = makeWorkspace()));
afterAll(() => work.remove());

const read = (file_path: string, more = {}) => work.call("Read", { file_path, ...more });

describe("Read", () => {
  it("numbers lines as cat -n does", async () => {
    work.write("three.txt", "one\n\n  three\n");
    expect(await read("three.txt")).toBe("     1\tone\n     2\t\n     3\t  three");
    work.write("open.txt", "one\ntwo");
    expect(await read("open.txt")).toBe("     1\tone\n     2\ttwo");
  });

  it("gives the range asked for and says how to go on", async () => {
    work.write("many.txt", Array.from({ length: 5_000 }, (_, index) => `line ${index + 1}\n`).join(""));
    expect(await read("many.txt", { offset: 4_999 })).toBe("  4999\tline 4999\n  5000\tline 5000");
    expect(await read("many.txt", { offset: 10, limit: 2 })).toBe(
      "    10\tline 10\n    11\tline 11\n[the file goes on; continue with offset 12]",
    );
    const whole = (await read("many.txt")).split("\n");
    expect(whole).toHaveLength(2_001);
    expect(whole.at(-1)).toBe("[the file goes on; continue with offset 2001]");
    expect(await read("many.txt", { offset: 4_000, limit: 1_001 })).not.toContain("goes on");
    expect(await read("many.txt", { offset: 5_001 })).toBe('error: "many.txt" has only 5000 lines');
    expect(await read("many.txt", { offset: 0, limit: 1 })).toContain("     1\tline 1\n");
  });

  it("reads every line once whatever the chunk borders cut", async () => {
    const lines = Array.from({ length: 3_000 }, (_, index) => "修é".repeat(index % 97));
    work.write("chunks.txt", lines.join("\n"));
    const shown = await read("chunks.txt", { limit: 3_000 });
    expect(shown.split("\n").map((line) => line.slice(7))).toEqual(lines);
  });

  it("cuts a line at 2,000 characters without breaking one", async () => {
    work.write("long.txt", `${"x".repeat(1_999)}${"😀".repeat(5_000)}\nnext\n`);
    const [first = "", second] = (await read("long.txt")).split("\n");
    expect(first).toBe(`     1\t${"x".repeat(1_999)}… [line cut]`);
    expect(second).toBe("     2\tnext");
  });

  it("says that a file is empty, binary, UTF-16 or not UTF-8", async () => {
    work.write("empty.txt", "");
    work.write("wide.txt", Buffer.from("\ufeffhello", "utf16le"));
    work.write("latin.txt", Buffer.from("caf\xe9\nok\n", "latin1"));
    expect(await read("empty.txt")).toBe("[the file is empty]");
    expect(await read("wide.txt")).toContain("is UTF-16 text");
    expect(await read("latin.txt")).toBe(
      "     1\tcaf\ufffd\n     2\tok\n[some bytes are not UTF-8 and are shown as \ufffd]",
    );
  });

  it("leaves out a byte order mark and carriage returns", async () => {
    work.write("windows.txt", "\ufeffone\r\ntwo\r\n");
    expect(await read("windows.txt")).toBe("     1\tone\n     2\ttwo");
  });

  it("reads files with strange names", async () => {
    for (const name of ["-rf", "a\nb", " ", "con", "名字.txt", "$(x)", `${"n".repeat(250)}.md`]) {
      work.write(name, "text");
      expect(await read(name)).toBe("     1\ttext");
    }
  });

  it("takes the beginning of a file of 5 GB in moments and little memory, and one endless line too", async () => {
    const file = work.write("huge.txt", "first\nsecond\n");
    const descriptor = openSync(file, "r+");
    writeSync(descriptor, `${"y".repeat(9_000)}\n`, 13);
    closeSync(descriptor);
    truncateSync(file, 5 * 1024 ** 3);
    const before = process.memoryUsage.rss();
    const started = performance.now();
    expect(await read("huge.txt", { limit: 2 })).toBe(
      "     1\tfirst\n     2\tsecond\n[the file goes on; continue with offset 3]",
    );
    // Line 4 is 5 GB without a newline.
    expect(await read("huge.txt", { offset: 4 })).toMatch(/^ {5}4\t\0{2000}… \[line cut\]\n\[the file goes on/);
    expect(await read("huge.txt", { offset: 5 })).toBe(
      'error: line 5 of "huge.txt" lies beyond the first 256 MiB; use Grep to find the place',
    );
    expect(performance.now() - started).toBeLessThan(5_000);
    expect(process.memoryUsage.rss() - before).toBeLessThan(50 * 1024 * 1024);
    truncateSync(file, 0);
  });

  it("stops when it is cancelled", async () => {
    work.write("some.txt", "text");
    expect(await work.call("Read", { file_path: "some.txt" }, AbortSignal.abort())).toBe("error: cancelled");
    expect(join(work.root, "some.txt")).toContain("some.txt");
  });
});

describe("Read of a picture", () => {
  const png = (width: number, height: number): Buffer => {
    const head = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex");
    const size = Buffer.alloc(8);
    size.writeUInt32BE(width, 0);
    size.writeUInt32BE(height, 4);
    return Buffer.concat([head, size, Buffer.alloc(20)]);
  };
  const gif = Buffer.concat([Buffer.from("GIF89a"), Buffer.from("0300020000", "hex"), Buffer.alloc(30)]);
  const jpeg = Buffer.from(
    `ffd8ffe000104a46494600010100000100010000ffc0001108000200030301220002110103110100${"00".repeat(9)}`,
    "hex",
  );
  const webp = (chunk: string, rest: string): Buffer =>
    Buffer.concat([Buffer.from(`RIFF\0\0\0\0WEBP${chunk}`), Buffer.from(rest, "hex"), Buffer.alloc(10)]);
  const shownAs = async (name: string, more: object = {}): Promise<unknown> => {
    const tool = createTools({ marks: new Marks("read"), environment: {} }).find((one) => one.name === "Read");
    const call = { workspace: work.root, signal: new AbortController().signal, ...more };
    const result = await tool?.run({ file_path: name }, call);
    return result?.ok === true ? result.value.blocks : result?.error;
  };

  it.each([
    ["a.png", png(3, 2), "image/png"],
    ["b.gif", gif, "image/gif"],
    ["c.jpg", jpeg, "image/jpeg"],
    ["d.webp", webp("VP8 ", "000000000000009d012a03000200"), "image/webp"],
    ["e.webp", webp("VP8L", "000000002f02400000"), "image/webp"],
    ["f.webp", webp("VP8X", "0a00000000000000020000010000"), "image/webp"],
    ["no-ending", png(3, 2), "image/png"],
  ])("shows %s whatever it is called, and knows it as seen", async (name, bytes, mediaType) => {
    work.write(name, bytes);
    const seen = new Map<string, string>();
    expect(await shownAs(name, { seen })).toEqual([
      { type: "text", text: `[${mediaType}, 3 x 2 pixels, ${bytes.length} bytes]` },
      { type: "image", mediaType, data: bytes.toString("base64") },
    ]);
    expect(seen.size).toBe(1);
  });

  it("refuses what a provider would refuse the whole request for", async () => {
    work.write("cut.png", png(3, 2).subarray(0, 20));
    work.write("none.png", png(0, 2));
    work.write("long.png", png(100, 8_001));
    work.write("large.png", Buffer.concat([png(3, 2), Buffer.alloc(4 * 1024 * 1024)]));
    work.write("odd.jpg", Buffer.concat([Buffer.from("ffd8ffff", "hex"), Buffer.alloc(40, 0xff)]));
    work.write("secret.png", png(3, 2));
    expect(await shownAs("cut.png")).toBe('"cut.png" is a damaged image (20 bytes)');
    expect(await shownAs("none.png")).toMatch(/damaged/);
    expect(await shownAs("odd.jpg")).toMatch(/damaged/);
    expect(await shownAs("long.png")).toBe(
      '"long.png" (image/png, 100 x 8001 pixels, 44 bytes) is over 8000 pixels long: make it smaller',
    );
    expect(await shownAs("large.png")).toMatch(/is an image of 4194348 bytes; only those up to 3932160 can be shown/);
    expect(await shownAs("secret.png", { mayRead: () => false })).toMatch(/may not be read under the rules/);
  });
});

describe("Read of what was too long to be shown", () => {
  const kept = (): Workspace => makeWorkspace({ spillFolder: join(work.outside, "files") });

  it("opens the files of its own run by the name the cut result gave, and nothing beside them", async () => {
    const other = kept();
    mkdirSync(join(work.outside, "files/sub"), { recursive: true });
    for (const name of ["files/0f3a9c1b2d4e5f60.txt", "files/sub/x.txt", "log.jsonl"])
      writeFileSync(join(work.outside, name), "whole");
    writeFileSync(join(work.outside, "files/.env"), "TOKEN=1");
    symlinkSync(join(work.outside, "log.jsonl"), join(work.outside, "files/link.txt"));
    const name = "files/0f3a9c1b2d4e5f60.txt";
    for (const path of [
      name,
      `./${name}`,
      `../../${basename(dirname(work.outside))}/outside/${name}`,
      join(work.outside, name),
    ])
      expect(await other.call("Read", { file_path: path })).toBe("     1\twhole");
    for (const path of ["files/../log.jsonl", "files/sub/x.txt", "files/..", "files/.env", "files/link.txt", "files"])
      expect(await other.call("Read", { file_path: path })).toMatch(/^error: /);
    expect(await other.call("Read", { file_path: join(work.outside, "log.jsonl") })).toMatch(/outside the workspace/);
    expect(await read(name)).toBe(`error: "${name}" does not exist`);
    other.write("files/own.txt", "own");
    expect(await other.call("Read", { file_path: "files/own.txt" })).toBe("     1\town");
    other.remove();
  });
});
