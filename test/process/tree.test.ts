import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { Marks } from "../../src/process/marks.ts";
import { Pipes } from "../../src/process/pipes.ts";
import { type ProcessOptions, type ProcessResult, runProcess } from "../../src/process/run.ts";
import { killAll, processesWith, rounds, stubborn, uniqueSleep, untilRunning } from "./leftovers.ts";

const folder = mkdtempSync(join(tmpdir(), "flow-tree-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const tokens: string[] = [];
afterEach(() => tokens.splice(0).forEach(killAll));

function token(): string {
  const time = uniqueSleep();
  tokens.push(time);
  return time;
}

function bash(script: string, more: Partial<ProcessOptions> = {}): Promise<ProcessResult> {
  const env = { PATH: process.env["PATH"] ?? "" };
  return runProcess({
    argv: ["bash", "-c", script],
    cwd: folder,
    env,
    marks: new Marks("tree-test"),
    grace: 300,
    ...more,
  });
}

describe("an aborted process", () => {
  it.each(["waits for its children", "is deaf itself"])("that %s leaves none of five stubborn ones", async (how) => {
    for (let round = 0; round < rounds; round++) {
      const time = token();
      const abort = new AbortController();
      const own = how === "is deaf itself" ? "trap '' TERM INT HUP\nwhile :; do sleep 0.1; done" : "wait";
      const running = bash(`${stubborn(time)}\n${own}`, { signal: abort.signal });
      await untilRunning(`sleep\0${time}`, 5);
      const begun = performance.now();
      abort.abort();
      expect((await running).kind).toBe("aborted");
      expect(performance.now() - begun).toBeLessThan(300 + 1000);
      expect(processesWith(time)).toEqual([]);
    }
  });

  it("that takes SIGTERM well is not kept waiting for the grace time", async () => {
    const abort = new AbortController();
    const time = token();
    const running = bash(`trap 'echo tidy; exit 0' TERM; sleep ${time} & wait`, {
      signal: abort.signal,
      grace: 20_000,
    });
    await untilRunning(`sleep\0${time}`, 1);
    abort.abort();
    const result = await running;
    expect(result).toMatchObject({ kind: "aborted", stdout: { text: "tidy\n" } });
    if (result.kind === "aborted") expect(result.duration).toBeLessThan(5000);
  });

  it("that is stopped dies within the grace time", async () => {
    const abort = new AbortController();
    const time = token();
    const running = bash(`sleep ${time} & kill -STOP $$`, { signal: abort.signal });
    await untilRunning(`sleep\0${time}`, 1);
    await delay(100);
    const begun = performance.now();
    abort.abort();
    expect((await running).kind).toBe("aborted");
    expect(performance.now() - begun).toBeLessThan(1300);
    expect(processesWith(time)).toEqual([]);
  });

  it("never starts when the abort came before", async () => {
    const file = join(folder, "started");
    expect((await bash(`touch ${file}`, { signal: AbortSignal.abort() })).kind).toBe("aborted");
    expect(() => rmSync(file)).toThrow(/ENOENT/);
  });

  it("leaves no listener on the signal it was given", async () => {
    const { signal } = new AbortController();
    let listening = 0;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...args: Parameters<typeof add>) => ((listening += 1), add(...args));
    signal.removeEventListener = (...args: Parameters<typeof remove>) => ((listening -= 1), remove(...args));
    await bash("true", { signal });
    expect(listening).toBe(0);
  });

  it("ends while it floods its output, on real pipes too", async () => {
    for (const more of [{}, { pipes: new Pipes(folder) }]) {
      const abort = new AbortController();
      const running = bash("trap '' TERM; yes", { signal: abort.signal, ...more });
      setTimeout(() => abort.abort(), 100);
      const result = await running;
      expect(result.kind).toBe("aborted");
      if (result.kind === "aborted") expect(result.stdout.bytes).toBeGreaterThan(0);
    }
  });

  it("is ended together with fifty others", async () => {
    const time = token();
    const abort = new AbortController();
    const marks = new Marks("fifty");
    const running = Array.from({ length: 50 }, () =>
      bash(`setsid sleep ${time} >/dev/null 2>&1 & sleep ${time}`, { signal: abort.signal, grace: 2000, marks }),
    );
    await untilRunning(`sleep\0${time}`, 100);
    const begun = performance.now();
    abort.abort();
    const results = await Promise.all(running);
    expect(results.every(({ kind }) => kind === "aborted")).toBe(true);
    expect(performance.now() - begun).toBeLessThan(4000);
    expect(processesWith(time)).toEqual([]);
  });
});

describe("what survives its step", () => {
  it("is found when its run ends, and only by that run", async () => {
    const [mine, other] = [token(), token()];
    const escape = (time: string): string => `setsid sleep ${time} >/dev/null 2>&1 < /dev/null & sleep 0.1`;
    expect((await bash(escape(mine), { marks: new Marks("2026-a") })).kind).toBe("exited");
    expect((await bash(escape(other), { marks: new Marks("2026-ab") })).kind).toBe("exited");
    expect([processesWith(mine).length, processesWith(other).length]).toEqual([1, 1]);
    expect(await new Marks("2026-a").reap()).toBe(1);
    expect([processesWith(mine).length, processesWith(other).length]).toEqual([0, 1]);
    expect(await new Marks("2026-ab").reap()).toBe(1);
    expect(await new Marks("2026-ab").reap()).toBe(0);
  });

  it("never includes flow itself, not even inside another run with the same name", async () => {
    const marks = JSON.stringify(new URL("../../src/process/marks.ts", import.meta.url).href);
    const source = `import { Marks } from ${marks}; console.log(await new Marks("same").reap());`;
    const argv = [process.execPath, "--input-type=module-typescript", "-e", source];
    const { name, value } = new Marks("same").next();
    const env = { PATH: process.env["PATH"] ?? "", [name]: value };
    const result = await runProcess({ argv, cwd: folder, env, marks: new Marks("other") });
    expect(result).toMatchObject({ kind: "exited", code: 0, stdout: { text: "0\n" } });
  });
});
