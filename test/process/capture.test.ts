import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { Capture, type CaptureOptions, type Captured } from "../../src/process/capture.ts";

const folder = mkdtempSync(join(tmpdir(), "flow-capture-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;

function freshPath(): string {
  files += 1;
  return join(folder, `spill-${files}`);
}

function captured(chunks: readonly Buffer[], options: CaptureOptions): Captured {
  const capture = new Capture(options);
  for (const chunk of chunks) capture.add(chunk);
  return capture.finish();
}

const gap = /\n\[flow: (\d+) of (\d+) bytes left out here(?:; .*)?\]\n/;

describe("a captured stream", () => {
  it("keeps what fits, however it was cut into chunks", () => {
    const text = fc.string({ unit: "grapheme", maxLength: 300 });
    fc.assert(
      fc.property(text, fc.array(fc.nat(300)), (whole, cuts) => {
        const bytes = Buffer.from(whole);
        expect(captured(cut(bytes, cuts), { maxBytes: 4000 })).toEqual({
          text: whole,
          bytes: bytes.length,
          truncated: false,
        });
      }),
    );
  });

  it("shows the beginning and the end of a longer one, and counts the rest", () => {
    const ascii = fc.string({ minLength: 20, maxLength: 400, unit: fc.constantFrom("a", "b", "c", "d", "e") });
    fc.assert(
      fc.property(ascii, fc.array(fc.nat(400)), fc.integer({ min: 8, max: 19 }), (whole, cuts, maxBytes) => {
        const result = captured(cut(Buffer.from(whole), cuts), { maxBytes });
        const half = Math.floor(maxBytes / 2);
        const [head, missing, all, tail] = result.text.split(gap);
        expect([head, tail]).toEqual([whole.slice(0, half), whole.slice(half - maxBytes)]);
        expect([Number(missing), Number(all)]).toEqual([whole.length - maxBytes, whole.length]);
        expect(result).toMatchObject({ bytes: whole.length, truncated: true });
      }),
    );
  });

  it("leaves out a character that a cut would go through", () => {
    for (const character of ["é", "€", "😀"]) {
      for (let shift = 0; shift < 4; shift++) {
        const whole = "x".repeat(shift) + character.repeat(100);
        const { text } = captured([Buffer.from(whole)], { maxBytes: 61 });
        expect(text).not.toContain("\u{FFFD}");
        const [head = "", missing, all, tail = ""] = text.split(gap);
        expect(Buffer.byteLength(head + tail) + Number(missing)).toBe(Number(all));
      }
    }
  });

  it("lies whole in its file when that is large enough, and the text names the file", () => {
    const path = freshPath();
    const chunks = Array.from({ length: 50 }, (_, index) => Buffer.from(`line ${index}\n`));
    const result = captured(chunks, { maxBytes: 64, spill: { path, maxBytes: 10_000 } });
    expect(result.file).toBe(path);
    expect(result.text).toContain(`all of it is in ${path}]`);
    expect(readFileSync(path)).toEqual(Buffer.concat(chunks));
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it("lies in its file up to the limit", () => {
    const path = freshPath();
    const chunks = Array.from({ length: 50 }, () => Buffer.from("0123456789"));
    const result = captured(chunks, { maxBytes: 64, spill: { path, maxBytes: 205 } });
    expect(statSync(path).size).toBe(205);
    expect(result.text).toContain(`the first 205 are in ${path}]`);
  });

  it("makes no file when it fits", () => {
    const path = freshPath();
    captured([Buffer.alloc(64)], { maxBytes: 64, spill: { path, maxBytes: 1000 } });
    expect(existsSync(path)).toBe(false);
  });

  it("survives a file that cannot be written, and says so", () => {
    const inTheWay = freshPath();
    writeFileSync(inTheWay, "");
    const path = join(inTheWay, "file");
    const result = captured([Buffer.alloc(100, "x")], { maxBytes: 64, spill: { path, maxBytes: 1000 } });
    expect(result.file).toBeUndefined();
    expect(result.text).toMatch(/not kept in a file \((ENOTDIR|EEXIST)/);
  });

  it("is filtered before anything of it is kept", () => {
    const path = freshPath();
    const held: Buffer[] = [];
    const filter = {
      write: (chunk: Buffer): Buffer => (held.push(chunk), Buffer.alloc(0)),
      end: (): Buffer => Buffer.from(Buffer.concat(held).toString().replaceAll("secret", "***")),
    };
    const chunks = ["a sec", "ret ".repeat(1), "z".repeat(100)].map((text) => Buffer.from(text));
    const result = captured(chunks, { maxBytes: 64, spill: { path, maxBytes: 1000 }, filter });
    expect(result.text).toMatch(/^a \*\*\* z/);
    expect(readFileSync(path, "utf8")).toBe(`a *** ${"z".repeat(100)}`);
    expect(result.bytes).toBe(109);
  });

  it("costs no more memory in a million pieces", () => {
    const before = process.memoryUsage().rss;
    const capture = new Capture({ maxBytes: 1024 * 1024 });
    for (let index = 0; index < 1_000_000; index++) capture.add(Buffer.of(120));
    expect(capture.finish().text.length).toBe(1_000_000);
    expect(process.memoryUsage().rss - before).toBeLessThan(64 * 1024 * 1024);
  });
});

describe("memory", () => {
  const mib = 1024 * 1024;
  /** A tenth of what is promised; all of it in the torture suite. */
  const torture = process.env["FLOW_TORTURE"] !== undefined;
  const [text, nul, line] = torture ? [2048, 300, 200] : [205, 30, 20];
  const commands = [
    [`${text} MiB of text`, "yes 'a line of text that is not very short' | head -c $BYTES", text],
    [`${nul} MiB of NUL`, "head -c $BYTES /dev/zero", nul],
    [`one line of ${line} MiB`, "head -c $BYTES /dev/zero | tr '\\0' x", line],
  ] as const;

  it.each(commands)(
    "stays flat through %s",
    (_name, script, size) => {
      const at = (file: string): string => JSON.stringify(new URL(`../../src/process/${file}`, import.meta.url).href);
      const path = freshPath();
      const source = `
      import { runProcess } from ${at("run.ts")};
      import { Marks } from ${at("marks.ts")};
      import { Pipes } from ${at("pipes.ts")};
      const options = { cwd: "/", env: { PATH: process.env.PATH, BYTES: "${size * mib}" }, marks: new Marks("memory"), pipes: new Pipes(${JSON.stringify(folder)}) };
      await runProcess({ ...options, argv: ["true"] });
      const before = process.memoryUsage().rss;
      const spill = { stdout: ${JSON.stringify(path)}, stderr: ${JSON.stringify(`${path}.err`)} };
      const { stdout, kind } = await runProcess({ ...options, argv: ["bash", "-c", ${JSON.stringify(script)}], spill });
      const growth = process.resourceUsage().maxRSS * 1024 - before;
      console.log(JSON.stringify({ kind, growth, bytes: stdout.bytes, length: stdout.text.length }));`;
      const args = ["--input-type=module-typescript", "-e", source];
      const child = spawnSync(process.execPath, args, { encoding: "utf8" });
      const seen = JSON.parse(child.stdout) as { kind: string; growth: number; bytes: number; length: number };
      expect(seen).toMatchObject({ kind: "exited", bytes: size * mib });
      expect(seen.growth).toBeLessThan(64 * mib);
      expect(seen.length).toBeLessThan(mib + 500);
      expect(statSync(path).size).toBe(Math.min(size, 64) * mib);
      rmSync(path);
    },
    120_000,
  );
});

function cut(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = [0, ...cuts.map((place) => Math.min(place, bytes.length)).sort((a, b) => a - b), bytes.length];
  return places.slice(1).map((end, index) => bytes.subarray(places[index], end));
}
