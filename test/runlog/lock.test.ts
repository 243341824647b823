import { spawn } from "node:child_process";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { lockRun } from "../../src/runlog/lock.ts";
import { emptyFolder } from "./open.ts";

const locker = fileURLToPath(new URL("locker.ts", import.meta.url));
const id = "00000000-0000-4000-8000-000000000000";

function lockFile(folder: string): string {
  return path.join(folder, "lock");
}

function taken(folder: string): () => void {
  const lock = lockRun(folder);
  if (!lock.ok) throw new Error(lock.error.message);
  return () => lock.value.release();
}

describe("the lock of a run", () => {
  it("is had by one at a time; who comes second hears who has it", () => {
    const folder = emptyFolder();
    const release = taken(folder);
    const second = lockRun(folder);
    expect(second).toMatchObject({ ok: false, error: { kind: "held" } });
    expect(!second.ok && second.error.message).toBe(
      `the run is being written by process ${process.pid} on ${hostname()}`,
    );
    release();
    release();
    taken(folder)();
    expect(readdirSync(folder)).toEqual([]);
  });

  it("of a process that is gone is taken over, even when its number lives again", () => {
    const folder = emptyFolder();
    for (const [pid, started] of [
      [2 ** 22 + 1, "x"],
      [process.pid, "another boot:1"],
    ]) {
      writeFileSync(lockFile(folder), JSON.stringify({ pid, host: hostname(), started, id }));
      taken(folder)();
    }
    expect(readdirSync(folder)).toEqual([]);
  });

  it("of a heir that died before it came into its place is taken over, too", () => {
    const folder = emptyFolder();
    const dead = { pid: 2 ** 22 + 1, host: hostname(), started: "x" };
    const heir = id.replace(/0$/, "1");
    writeFileSync(lockFile(folder), JSON.stringify({ ...dead, id }));
    writeFileSync(path.join(folder, `lock.after-${id}`), JSON.stringify({ ...dead, id: heir }));
    const release = taken(folder);
    expect(readdirSync(folder)).toEqual(["lock"]);
    expect(lockRun(folder).ok).toBe(false);
    release();
    expect(readdirSync(folder)).toEqual([]);
  });

  it("of another machine is never taken over, and the message says what to do", () => {
    const folder = emptyFolder();
    writeFileSync(lockFile(folder), JSON.stringify({ pid: 1, host: "elsewhere", started: "x", id }));
    const lock = lockRun(folder);
    expect(!lock.ok && lock.error.message).toBe(
      `the run is being written by process 1 on elsewhere; if that machine is gone, delete ${lockFile(folder)}`,
    );
    expect(existsSync(lockFile(folder))).toBe(true);
  });

  it("that is no lock, or that cannot be made, is said", () => {
    const folder = emptyFolder();
    for (const text of ["", "null", "{}", JSON.stringify({ pid: 1, host: "h", started: "", id: "../../x" })]) {
      writeFileSync(lockFile(folder), text);
      const lock = lockRun(folder);
      expect([text, !lock.ok && lock.error.message]).toEqual([text, expect.stringContaining("is not a lock of flow")]);
    }
    const below = path.join(lockFile(folder), "run");
    expect(lockRun(below)).toMatchObject({ ok: false, error: { kind: "failed" } });
  });
});

describe("fifty processes that want one run at once", () => {
  it.each([
    ["a run that nobody has", false],
    ["a run whose owner is dead", true],
  ])("%s goes to exactly one of them", { timeout: 60_000 }, async (_what, isDead) => {
    const folder = emptyFolder();
    const dead = { pid: 2 ** 22 + 1, host: hostname(), started: "x", id };
    if (isDead) writeFileSync(lockFile(folder), JSON.stringify(dead));
    const gate = path.join(folder, "go");
    const processes = Array.from({ length: 50 }, () => spawn(process.execPath, [locker, folder, gate]));
    const said = processes.map((child) => {
      let text = "";
      child.stdout.setEncoding("utf8").on("data", (piece: string) => (text += piece));
      return {
        ready: new Promise((resolve) => child.stdout.once("data", resolve)),
        ended: new Promise<string>((resolve) => child.once("close", () => resolve(text.split("\n")[1] ?? ""))),
      };
    });
    await Promise.all(said.map(({ ready }) => ready));
    writeFileSync(gate, "");
    const answers = await Promise.all(said.map(({ ended }) => ended));
    expect(answers.filter((answer) => answer === "won")).toHaveLength(1);
    expect(answers.filter((answer) => answer === "held")).toHaveLength(49);
    expect(readdirSync(folder).filter((name) => name.startsWith("lock"))).toEqual([]);
  });
});
