import { createHash } from "node:crypto";
import { openSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Event, LogLine } from "../../src/model/event.ts";
import type { Json } from "../../src/model/json.ts";
import { createAppender } from "../../src/runlog/append.ts";
import { readWholeLog } from "../../src/runlog/read.ts";
import { createMask } from "../../src/runlog/redact.ts";
import { openLog } from "../../src/runlog/write.ts";
import { allSamples } from "./events-of-every-type.ts";
import { emptyFolder, newLog, stillClock } from "./open.ts";

const linesOf = (file: string): LogLine[] =>
  readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as LogLine);

function finished(outputs: Json): Event {
  return { type: "step.finished", step: "a", outcome: "success", conclusion: "success", outputs, duration: 1 };
}

const delta = (text: string, agent = "a-1"): Event => ({
  type: "message.delta",
  step: "a",
  agent,
  parent: null,
  turn: 1,
  delta: { type: "text", text },
});

async function readBack(folder: string): Promise<readonly LogLine[]> {
  const log = await readWholeLog(folder);
  if (!log.ok) throw new Error(log.error.message);
  return log.value.lines;
}

describe("a log", () => {
  it("holds every event as it was, numbered from 1 and stamped", async () => {
    const folder = emptyFolder();
    const clock = stillClock();
    const log = newLog(folder, { clock, deltas: true });
    for (const event of allSamples) {
      log.emit(event);
      clock.move(1);
    }
    log.close();
    expect(log.failure()).toBeUndefined();
    const lines = linesOf(log.file);
    expect(lines.map(({ seq }) => seq)).toEqual(lines.map((_, index) => index + 1));
    expect(lines[0]?.time).toBe("2026-11-21T00:00:00.000Z");
    expect(lines.at(-1)?.time).toBe(`2026-11-21T00:00:00.0${allSamples.length - 1}Z`);
    expect(lines).toEqual(allSamples.map((event, index) => ({ ...event, seq: index + 1, time: lines[index]?.time })));
  });

  it("can be read while it is written: an event is in the file when emit returns, or at the end of the turn", async () => {
    const log = newLog(emptyFolder());
    const failed: Event = { type: "step.finished", step: "a", outcome: "failure", conclusion: "failure", duration: 1 };
    for (let count = 0; count < 20; count += 2) {
      log.emit(finished(count));
      expect(linesOf(log.file)).toHaveLength(count);
      if (count % 4 === 0) await Promise.resolve();
      else log.emit(failed);
      expect(linesOf(log.file)).toHaveLength(count % 4 === 0 ? count + 1 : count + 2);
      if (count % 4 === 0) log.emit(failed);
    }
    log.close();
  });

  it("tells of a line when the file has it", async () => {
    const seen: string[] = [];
    const log = newLog(emptyFolder(), { onLine: (line) => seen.push(line) });
    log.emit(finished(1));
    log.emit(finished(2));
    expect(seen).toEqual([]);
    await Promise.resolve();
    expect(seen.map((line) => JSON.parse(line) as LogLine)).toEqual(linesOf(log.file));
    expect(seen).toHaveLength(2);
    log.close();
  });

  it("gives back any JSON value, large ones through blobs", async () => {
    const values = fc.array(fc.oneof(fc.jsonValue() as fc.Arbitrary<Json>, fc.constant("x".repeat(70_000))), {
      maxLength: 8,
    });
    await fc.assert(
      fc.asyncProperty(values, async (outputs) => {
        const folder = emptyFolder();
        const log = newLog(folder);
        for (const value of outputs) log.emit(finished(value));
        log.close();
        const lines = await readBack(folder);
        const kept = lines.map((line) => (line.type === "step.finished" ? line.outputs : undefined));
        expect(JSON.stringify(kept)).toBe(JSON.stringify(outputs));
      }),
      { numRuns: 60 },
    );
  });

  it("puts a value over 64 KiB beside the line, named by its content", async () => {
    const folder = emptyFolder();
    const log = newLog(folder);
    const small = "é".repeat(32_767);
    const large = "é".repeat(32_768);
    log.emit(finished(small));
    log.emit(finished(large));
    log.emit(finished(large));
    log.close();
    const json = JSON.stringify(large);
    const blob = createHash("sha256").update(json).digest("hex");
    const lines = linesOf(log.file);
    expect(lines[0]).toMatchObject({ outputs: small });
    expect(lines[1]).toMatchObject({ outputs: { blob, size: 65_538 } });
    expect(readdirSync(path.join(folder, "blobs"))).toEqual([blob]);
    expect(readFileSync(path.join(folder, "blobs", blob), "utf8")).toBe(json);
    expect((await readBack(folder))[2]).toMatchObject({ outputs: large });
  });

  it("never takes a user's value for a reference of its own", async () => {
    const folder = emptyFolder();
    const log = newLog(folder);
    const lookalike = { blob: "0".repeat(64), size: 3 };
    log.emit(finished(lookalike));
    log.close();
    expect((await readBack(folder))[0]).toMatchObject({ outputs: lookalike });
  });

  it("is private, and its folder ignores itself", () => {
    const root = path.join(emptyFolder(), ".flow");
    const folder = path.join(root, "runs", "one");
    const log = newLog(folder);
    log.close();
    expect(readFileSync(path.join(root, ".gitignore"), "utf8")).toBe("*\n");
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    expect(statSync(log.file).mode & 0o777).toBe(0o600);
    writeFileSync(path.join(root, ".gitignore"), "mine\n");
    newLog(path.join(root, "runs", "two")).close();
    expect(readFileSync(path.join(root, ".gitignore"), "utf8")).toBe("mine\n");
  });

  it("keeps long texts in files of their own, masked", () => {
    const folder = emptyFolder();
    const log = newLog(folder, { secrets: [{ name: "S", value: "hunter22" }] });
    const kept = log.keep("whole hunter22 output");
    log.close();
    const file = kept.ok ? kept.value : "";
    expect(file).toMatch(/^files\/[0-9a-f]{16}\.txt$/);
    expect(readFileSync(path.join(folder, file), "utf8")).toBe("whole *** output");
  });
});

describe("deltas", () => {
  it("are dropped unless asked for, and leave no gap", () => {
    const log = newLog(emptyFolder());
    log.emit(finished(1));
    log.emit(delta("a"));
    log.emit(finished(2));
    log.close();
    expect(linesOf(log.file).map(({ seq, type }) => `${seq} ${type}`)).toEqual(["1 step.finished", "2 step.finished"]);
  });

  it("wait for the next state event and stand before it", () => {
    const log = newLog(emptyFolder(), { deltas: true });
    log.emit(delta("a"));
    log.emit(delta("b"));
    expect(linesOf(log.file)).toEqual([]);
    log.emit({ type: "step.undo.started", step: "a" });
    expect(linesOf(log.file).map(({ seq, type }) => `${seq} ${type}`)).toEqual([
      "1 message.delta",
      "2 message.delta",
      "3 step.undo.started",
    ]);
    log.emit(delta("x".repeat(70_000)));
    expect(linesOf(log.file)).toHaveLength(4);
    log.close();
  });

  it("wait 50 ms at most, and whoever reads along is told", () => {
    const due: (() => void)[] = [];
    const after = (ms: number, callback: () => void): (() => void) => {
      if (ms === 50) due.push(callback);
      return () => due.splice(0);
    };
    let grown = 0;
    const log = newLog(emptyFolder(), { deltas: true, clock: { ...stillClock(), after }, onGrowth: () => grown++ });
    log.emit(delta("a"));
    log.emit(delta("b"));
    expect([due.length, linesOf(log.file).length, grown]).toEqual([1, 0, 0]);
    due[0]?.();
    expect([due.length, linesOf(log.file).length, grown]).toEqual([0, 2, 1]);
    log.emit(delta("c"));
    log.emit({ type: "step.undo.started", step: "a" });
    expect([due.length, linesOf(log.file).length, grown]).toEqual([0, 4, 2]);
    log.close();
  });

  it("hide a secret cut at any place, between the deltas of other agents", () => {
    const value = "hunter22-secret";
    for (let at = 1; at < value.length; at++) {
      const log = newLog(emptyFolder(), { deltas: true, secrets: [{ name: "S", value }] });
      log.emit(delta(`say ${value.slice(0, at)}`));
      log.emit(delta("another agent", "b-1"));
      log.emit(delta(`${value.slice(at)} hunt`));
      log.emit({ type: "step.ready", step: "c" });
      log.close();
      const texts = linesOf(log.file).map((line) =>
        line.type === "message.delta" && line.agent === "a-1" && line.delta.type === "text" ? line.delta.text : "",
      );
      expect(texts.join("")).toBe("say *** hunt");
    }
  });
});

describe("secrets in a log", () => {
  const secrets = ["hunter2-and-more", 'with "quotes" \\ and 修', "success", "true", "12345678", "nabcdef"].map(
    (value, index) => ({ name: `S${index}`, value }),
  );

  it("are in no line and no blob, and every line stays what it was otherwise", async () => {
    const folder = emptyFolder();
    const log = newLog(folder, { secrets });
    const hidden = Object.fromEntries(
      secrets.map(({ value }) => [value, [value, `a ${value} b`, JSON.stringify(value)]]),
    );
    log.emit(finished({ ...hidden, n: 12345678, flag: true }));
    log.emit(finished([hidden, "x".repeat(70_000)]));
    log.emit({ ...finished("\nabcdef"), duration: 12345678 } as Event);
    log.close();
    const written = [
      log.file,
      ...readdirSync(path.join(folder, "blobs")).map((name) => path.join(folder, "blobs", name)),
    ]
      .map((file) => readFileSync(file, "utf8"))
      .join("");
    expect(written).not.toMatch(/hunter2|quotes/);
    const lines = await readBack(folder);
    expect(lines).toHaveLength(3);
    expect(lines[0]).toMatchObject({ outcome: "success", outputs: { n: "***", flag: true } });
    expect(lines[2]).toMatchObject({ outcome: "success", outputs: "\nabcdef", duration: 12345678 });
  });

  it("never survive in outputs, wherever they stand and however they are encoded", async () => {
    const encodings = [
      (text: string): string => text,
      encodeURIComponent,
      (text: string): string => Buffer.from(text).toString("base64"),
      (text: string): string => Buffer.from(text).toString("hex"),
      (text: string): string => JSON.stringify(text),
    ];
    const value = fc.string({ unit: fc.constantFrom(...'QXZ0258"\\\n/+é修'.split("")), minLength: 6, maxLength: 30 });
    await fc.assert(
      fc.asyncProperty(value, fc.constantFrom(...encodings), fc.jsonValue(), async (secret, encode, other) => {
        fc.pre(secret.trim().length >= 6);
        const folder = emptyFolder();
        const log = newLog(folder, { secrets: [{ name: "S", value: secret }] });
        const text = `<${encode(secret)}>`;
        log.emit(finished({ text, [text]: [text], other: other as Json, json: JSON.stringify({ text }) }));
        log.close();
        const [line] = await readBack(folder);
        const outputs = line?.type === "step.finished" ? line.outputs : undefined;
        expect(JSON.stringify(outputs)).not.toContain(JSON.stringify(encode(secret)).slice(1, -1));
      }),
      { numRuns: 100 },
    );
  });
});

describe("a log that cannot be written", () => {
  it("is refused before the run when it is there already", () => {
    const folder = emptyFolder();
    newLog(folder).close();
    const again = openLog({ folder, clock: stillClock(), mask: createMask([]) });
    expect(again.ok ? "" : again.error.message).toMatch(/^cannot start the run's log .*log\.jsonl: EEXIST/);
  });

  it("is refused before the run when a file stands in the way", () => {
    const folder = emptyFolder();
    writeFileSync(path.join(folder, "runs"), "");
    const opened = openLog({ folder: path.join(folder, "runs", "one"), clock: stillClock(), mask: createMask([]) });
    expect(opened.ok ? "" : opened.error.message).toMatch(/ENOTDIR/);
  });

  it("says so when the disk is full, every time", () => {
    const appender = createAppender(openSync("/dev/full", "w"));
    expect(appender.append("line\n")).toMatch(/ENOSPC|half-written/);
    expect(appender.append("line\n")).toMatch(/ENOSPC/);
    appender.close();
  });

  it("keeps what it acknowledged and takes no more after a value that is too large", async () => {
    const folder = emptyFolder();
    const log = newLog(folder);
    log.emit(finished(1));
    log.emit(finished("x".repeat(64 * 1024 * 1024)));
    expect(log.failure()).toMatch(/cannot write .*log\.jsonl: a value has 67108866 bytes of JSON/);
    log.emit(finished(2));
    log.close();
    expect(await readBack(folder)).toHaveLength(1);
  });

  it("fails the log, not the process, on a value too deep for JSON", () => {
    let deep: Json = 0;
    for (let depth = 0; depth < 200_000; depth++) deep = [deep];
    const log = newLog(emptyFolder());
    log.emit(finished(deep));
    expect(log.failure()).toMatch(/cannot write/);
    log.close();
  });

  it("fails when a blob cannot be kept", () => {
    const folder = emptyFolder();
    const log = newLog(folder);
    writeFileSync(path.join(folder, "blobs"), "a file where the folder should be");
    log.emit(finished("x".repeat(70_000)));
    expect(log.failure()).toMatch(/EEXIST|ENOTDIR/);
    log.close();
  });
});
