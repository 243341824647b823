import { execFile, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync, statSync, writeSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { readWholeLog } from "../../src/runlog/read.ts";
import { emptyFolder } from "./open.ts";

const child = fileURLToPath(new URL("child.ts", import.meta.url));

async function readBack(folder: string): Promise<number> {
  const read = await readWholeLog(folder);
  if (!read.ok) throw new Error(read.error.message);
  expect(read.value.notes.filter((note) => note.includes("seq"))).toEqual([]);
  return read.value.lines.length;
}

describe("a process killed while it writes", () => {
  it("has lost nothing that it acted on", { timeout: 60_000 }, async () => {
    for (let round = 0; round < 5; round++) {
      const folder = emptyFolder();
      const writer = spawn(process.execPath, [child, "write", folder], { stdio: ["ignore", "pipe", "inherit"] });
      let output = "";
      writer.stdout.setEncoding("utf8");
      const ended = new Promise((resolve) => writer.once("close", resolve));
      writer.stdout.on("data", (text: string) => {
        if (output === "") setTimeout(() => writer.kill("SIGKILL"), 20 + round * 37);
        output += text;
      });
      await ended;
      const actedOn = Number(output.split("\n").at(-2));
      expect(actedOn).toBeGreaterThan(0);
      expect(await readBack(folder)).toBeGreaterThanOrEqual(actedOn);
    }
  });
});

describe("a disk that takes only a part of a line", () => {
  it("ends the log behind the last whole line, with a reason", async () => {
    const folder = emptyFolder();
    // A limit on the size of files makes the kernel cut a write short, as a full disk does.
    const command = `ulimit -f 8; exec "$0" "$1" write "$2"`;
    const { stdout } = await promisify(execFile)("bash", ["-c", command, process.execPath, child, folder]);
    const printed = stdout.trim().split("\n");
    expect(printed.at(-1)).toMatch(/^cannot write .*log\.jsonl: EFBIG/);
    const text = readFileSync(path.join(folder, "log.jsonl"), "utf8");
    expect(text.endsWith("}\n")).toBe(true);
    expect(Buffer.byteLength(text)).toBeLessThan(8192);
    expect(await readBack(folder)).toBe(Number(printed.at(-2)));
  });
});

describe("a log of 100 MB", () => {
  it("is read in little memory", { timeout: 120_000 }, async () => {
    const folder = emptyFolder();
    const file = path.join(folder, "log.jsonl");
    const fd = openSync(file, "w");
    let seq = 0;
    for (let block = 0; block < 100; block++) {
      let text = "";
      while (text.length < 1_050_000)
        text += `{"seq":${++seq},"time":"2026-11-21T00:00:00.000Z","type":"step.ready","step":"${"x".repeat(120)}"}\n`;
      writeSync(fd, text);
    }
    closeSync(fd);
    const { stdout } = await promisify(execFile)(process.execPath, [child, "read", folder]);
    const { lines, peak } = JSON.parse(stdout) as { lines: number; peak: number };
    console.log(
      `read ${lines} lines, ${Math.round(statSync(file).size / 1e6)} MB, at most ${Math.round(peak / 1e6)} MB resident`,
    );
    expect(lines).toBe(seq);
    expect(peak).toBeLessThan(200e6);
  });
});
