import { closeSync, openSync, truncateSync, writeSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
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
    work.write("image.png", Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 1, 2]));
    work.write("wide.txt", Buffer.from("\ufeffhello", "utf16le"));
    work.write("latin.txt", Buffer.from("caf\xe9\nok\n", "latin1"));
    expect(await read("empty.txt")).toBe("[the file is empty]");
    expect(await read("image.png")).toBe('error: "image.png" is an image (7 bytes); Read shows UTF-8 text only');
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
