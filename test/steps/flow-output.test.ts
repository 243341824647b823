import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { isReservedName } from "../../src/model/ids.ts";
import { parseFlowOutput, readFlowOutput } from "../../src/steps/flow-output.ts";

const folder = mkdtempSync(join(tmpdir(), "flow-output-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function parse(text: string | Uint8Array): Record<string, string> | string {
  const result = parseFlowOutput(Buffer.from(text));
  return result.ok ? Object.fromEntries(result.value) : result.error;
}

describe("$FLOW_OUTPUT", () => {
  it.each([
    ["nothing", "", {}],
    ["empty lines", "\n\na=1\n\n", { a: "1" }],
    ["no final newline", "a=1", { a: "1" }],
    ["an empty value", "a=\n", { a: "" }],
    ["more signs in the value", "a=b=c<<d\n", { a: "b=c<<d" }],
    ["spaces, which are kept", "a= b \n", { a: " b " }],
    ["a carriage return, which is kept", "a=b\r\n", { a: "b\r" }],
    ["a value of lines", "a<<EOF\none\n\ntwo\nEOF\nb=2\n", { a: "one\n\ntwo", b: "2" }],
    ["a value of no lines", "a<<EOF\nEOF\n", { a: "" }],
    ["a value of one empty line", "a<<EOF\n\nEOF\n", { a: "" }],
    ["a word with an equals sign", "a<<E=F\nb=c\nE=F", { a: "b=c" }],
    ["a value that holds other entries", "a<<EOF\nb=1\nc<<X\nEOF\n", { a: "b=1\nc<<X" }],
    ["a line that only begins like the word", "a<<EOF\nEOF \n EOF\nEOF\n", { a: "EOF \n EOF" }],
    ["any name", "_A-b9=x\n", { "_A-b9": "x" }],
    ["a byte order mark in a value", "a=\uFEFFx", { a: "\uFEFFx" }],
    ["a NUL in a value", "a=x\0y", { a: "x\0y" }],
  ])("takes %s", (_name, text, values) => {
    expect(parse(text)).toEqual(values);
  });

  it.each([
    ["a line of neither form", "a=1\nhello\n", 'line 2 of $FLOW_OUTPUT is neither key=value nor key<<WORD: "hello"'],
    ["a value without its end", "a=1\nb<<EOF\nx\n", 'line 2 of $FLOW_OUTPUT begins a value that no line "EOF" ends'],
    ["a missing word", "b<<\nx\n", "line 1 of $FLOW_OUTPUT has no word after <<"],
    ["an empty key", "=x\n", 'line 1 of $FLOW_OUTPUT: "" is not a name'],
    ["a key with a space", "a b=x\n", '"a b" is not a name'],
    ["a key that begins with a digit", "1a=x\n", '"1a" is not a name'],
    ["__proto__", "__proto__=x\n", '"__proto__" is a reserved name'],
    ["Constructor", "Constructor=x\n", '"Constructor" is a reserved name'],
    ["stdout", "stdout=x\n", '"stdout" is an output every run step has already'],
    ["Exit-Code", "Exit-Code=0\n", '"Exit-Code" is an output every run step has already'],
    ["a key twice", "a=1\nb=2\nA=3\n", 'line 3 of $FLOW_OUTPUT: "A" is written twice'],
    ["bytes that are not UTF-8", Buffer.from([97, 61, 10, 98, 61, 0xff]), "line 2 of $FLOW_OUTPUT is not UTF-8"],
  ])("refuses %s", (_name, text, message) => {
    expect(parse(text)).toContain(message);
  });

  it("gives back what was written in either form", () => {
    const key = fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_-]{0,9}$/).filter((name) => !isReservedName(name));
    const value = fc.string({
      unit: fc.oneof(fc.string({ unit: "binary", maxLength: 1 }), fc.constantFrom("\n", "=", "<<")),
    });
    const taken = ["stdout", "stderr"];
    const entries = fc
      .uniqueArray(fc.tuple(key, value), { selector: ([name]) => name.toLowerCase() })
      .filter((list) => list.every(([name]) => !taken.includes(name.toLowerCase())));
    fc.assert(
      fc.property(entries, (list) => {
        const text = list.map(([name, words]) =>
          words.includes("\n") ? `${name}<<-end-of-it-\n${words}\n-end-of-it-\n` : `${name}=${words}\n`,
        );
        expect(parse(text.join(""))).toEqual(Object.fromEntries(list));
      }),
    );
  });

  it("never throws, whatever a script wrote", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => ["object", "string"].includes(typeof parse(bytes))),
    );
  });

  it("is read in linear time", () => {
    const begun = performance.now();
    expect(parse(Array.from({ length: 40_000 }, (_, index) => `key${index}=value\n`).join(""))).toHaveProperty(
      "key39999",
    );
    expect(parse(`a<<E\n${"\n".repeat(1_000_000)}`)).toContain("no line");
    expect(performance.now() - begun).toBeLessThan(2000);
  });
});

describe("the file of $FLOW_OUTPUT", () => {
  it("is empty when the script removed it", () => {
    expect(readFlowOutput(join(folder, "gone"))).toEqual({ ok: true, value: new Map() });
  });

  it.each([
    ["a link", (path: string) => symlinkSync("/etc/passwd", path), "cannot be read (ELOOP)"],
    ["a folder", (path: string) => mkdirSync(path), "no regular file"],
    ["a FIFO, which would be waited for", (path: string) => execFileSync("mkfifo", [path]), "no regular file"],
    ["longer than 1 MiB", (path: string) => writeFileSync(path, `a=${"x".repeat(1024 * 1024)}`), "holds 1048578 bytes"],
  ])("is refused as %s", (name, make, message) => {
    const path = join(folder, name);
    make(path);
    const result = readFlowOutput(path);
    expect(result.ok ? "" : result.error).toContain(message);
  });
});
