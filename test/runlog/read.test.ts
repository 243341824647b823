import { writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { type LogRecord, readLog, readWholeLog } from "../../src/runlog/read.ts";
import { emptyFolder, newLog } from "./open.ts";

const line = (seq: number, step = "a"): string =>
  JSON.stringify({ seq, time: "2026-11-21T00:00:00.000Z", type: "step.ready", step });

async function records(content: string | Buffer): Promise<string[]> {
  const folder = emptyFolder();
  writeFileSync(path.join(folder, "log.jsonl"), content);
  const found: string[] = [];
  for await (const record of readLog(folder)) found.push(told(record));
  return found;
}

function told(record: LogRecord): string {
  switch (record.kind) {
    case "line":
      return `line ${record.line.seq} at ${record.number}`;
    case "torn":
      return `torn at byte ${record.at}, line ${record.number}`;
    case "unreadable":
      return "unreadable";
    case "gap":
    case "unknown":
    case "damaged":
      return `${record.kind} at ${record.number}: ${record.message.replace(/^.*log\.jsonl:\d+: /, "")}`;
    default:
      return record satisfies never;
  }
}

const three = `${line(1)}\n${line(2, "修复")}\n${line(3)}\n`;
const whole = ["line 1 at 1", "line 2 at 2", "line 3 at 3"];

describe("reading a log", () => {
  it("gives its lines with their numbers", async () => {
    expect(await records(three)).toEqual(whole);
  });

  it("drops the end of a log cut at any byte, and says where the whole part ends", async () => {
    const bytes = Buffer.from(three);
    const ends = [0, ...[...bytes.entries()].filter(([, byte]) => byte === 10).map(([at]) => at + 1)];
    for (let cut = 0; cut <= bytes.length; cut++) {
      const complete = ends.findLastIndex((end) => end <= cut);
      const expected = whole.slice(0, complete);
      if (ends[complete] !== cut) expected.push(`torn at byte ${ends[complete]}, line ${complete + 1}`);
      expect(await records(bytes.subarray(0, cut))).toEqual(expected);
    }
  });

  it("drops a tail of NUL bytes, as a power loss leaves it", async () => {
    const nul = Buffer.alloc(5000);
    expect(await records(Buffer.concat([Buffer.from(three), nul]))).toEqual([
      ...whole,
      `torn at byte ${Buffer.byteLength(three)}, line 4`,
    ]);
  });

  it.each([
    ["half a line", `${line(1)}\n${line(2).slice(0, 20)}\n${line(3)}\n`, /^damaged at 2: the line is damaged: /],
    ["two glued lines", `${line(1)}\n${line(2)}${line(3)}\n`, /^damaged at 2/],
    [
      "no UTF-8",
      Buffer.concat([Buffer.from(`${line(1)}\n`), Buffer.from([0xff, 10]), Buffer.from(`${line(2)}\n`)]),
      /^damaged at 2/,
    ],
    ["a list", `${line(1)}\n[]\n${line(2)}\n`, /^damaged at 2: the line is damaged: not a JSON object/],
    [
      "no stamp",
      `${line(1)}\n{"type":"step.ready"}\n`,
      /^damaged at 2: the line is damaged: no `seq`, `time` and `type`/,
    ],
    ["a byte order mark inside", `${line(1)}\n\uFEFF${line(2)}\n`, /^damaged at 2/],
  ])("stops at a damaged line and names it: %s", async (_name, content, last) => {
    const found = await records(content);
    expect(found[0]).toBe("line 1 at 1");
    expect(found[1]).toMatch(last);
    expect(found).toHaveLength(2);
  });

  it("reads what an editor on Windows made of it", async () => {
    expect(await records(`\uFEFF${three.replaceAll("\n", "\r\n")}\r\n`)).toEqual(whole);
  });

  it("tells of missing lines and of types it does not know, and goes on", async () => {
    const unknown = line(5).replace("step.ready", "constructor");
    expect(await records(`${line(1)}\n${line(4)}\n${unknown}\n${line(6)}\n`)).toEqual([
      "line 1 at 1",
      "gap at 2: expected seq 2, found 4",
      "line 4 at 2",
      'unknown at 3: an event of the unknown type "constructor"',
      "line 6 at 4",
    ]);
  });

  it("reads lines longer than any buffer, and refuses one without end", async () => {
    const long = line(2, "x".repeat(3_000_000));
    expect(await records(`${line(1)}\n${long}\n${line(3)}\n`)).toEqual(whole);
    expect((await records(`${line(1)}\n${"x".repeat(20_000_000)}`))[1]).toMatch(/^damaged at 2: .* too long/);
  });

  it("keeps keys such as __proto__ as data", async () => {
    const folder = emptyFolder();
    writeFileSync(path.join(folder, "log.jsonl"), `${line(1).slice(0, -1)},"__proto__":{"polluted":1}}\n`);
    for await (const record of readLog(folder)) expect(record.kind).toBe("line");
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });

  it("says when there is nothing to read", async () => {
    const folder = emptyFolder();
    const read = await readWholeLog(folder);
    expect(read.ok ? "" : read.error.message).toMatch(/^cannot read .*log\.jsonl: ENOENT/);
  });
});

describe("a reference to a blob", () => {
  const finished = {
    type: "step.finished",
    step: "a",
    outcome: "success",
    conclusion: "success",
    duration: 1,
  } as const;

  it.each([
    ["is gone", undefined, /ENOENT/],
    ["has another length", "short", /has 5 bytes where the log says 70002/],
    ["has other content", JSON.stringify("y".repeat(70_000)), /does not match its name/],
  ])("is an error when the file %s", async (_name, content, message) => {
    const folder = emptyFolder();
    const log = newLog(folder);
    log.emit({ ...finished, outputs: "x".repeat(70_000) });
    log.close();
    for await (const record of readLog(folder)) {
      if (record.kind !== "line" || record.line.type !== "step.finished") continue;
      const { blob } = record.line.outputs as { blob: string };
      const file = path.join(folder, "blobs", blob);
      if (content === undefined) (await import("node:fs")).rmSync(file);
      else writeFileSync(file, content);
    }
    const read = await readWholeLog(folder);
    expect(read.ok ? "" : read.error.message).toMatch(message);
  });
});
