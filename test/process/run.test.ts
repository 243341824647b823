import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { Marks } from "../../src/process/marks.ts";
import { Pipes } from "../../src/process/pipes.ts";
import { type ProcessOptions, type ProcessResult, type Ran, runProcess } from "../../src/process/run.ts";
import { killAll, processesWith, uniqueSleep } from "./leftovers.ts";

const folder = mkdtempSync(join(tmpdir(), "flow-process-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const environment = { PATH: process.env["PATH"] ?? "/usr/bin:/bin", HOME: folder };

function start(argv: readonly string[], more: Partial<ProcessOptions> = {}): Promise<ProcessResult> {
  return runProcess({ argv, cwd: folder, env: environment, marks: new Marks("run-test"), ...more });
}

async function run(script: string, more: Partial<ProcessOptions> = {}): Promise<Ran> {
  const result = await start(["bash", "-c", script], more);
  if (result.kind === "spawn_failed") throw new Error(result.message);
  return result;
}

describe.each([
  ["Node's sockets", undefined],
  ["real pipes", new Pipes(folder)],
])("a process on %s", (_name, pipes) => {
  const on = pipes === undefined ? {} : { pipes };

  it("gives its exit code and both streams", async () => {
    const result = await run("echo out; echo err >&2; exit 255", on);
    expect(result).toMatchObject({ kind: "exited", code: 255 });
    expect([result.stdout.text, result.stderr.text]).toEqual(["out\n", "err\n"]);
    expect(result.duration).toBeGreaterThan(0);
  });

  it("reads an empty stdin unless it is given one", async () => {
    expect((await run("wc -c", on)).stdout.text.trim()).toBe("0");
    const text = "é\n".repeat(400_000);
    const result = await run("cat", { stdin: text, maxBytes: 4_000_000, ...on });
    expect(result.stdout.text === text).toBe(true);
  });

  it("may ignore a large stdin, a hundred times", async () => {
    const stdin = "x".repeat(1_000_000);
    for (let round = 0; round < 100; round++) {
      expect((await start(["true"], { stdin, ...on })).kind).toBe("exited");
    }
  });

  it("may close its streams and run on", async () => {
    const result = await run("exec >&- 2>&-; sleep 0.2; exit 7", on);
    expect(result).toMatchObject({ kind: "exited", code: 7 });
    expect(result.duration).toBeGreaterThan(190);
  });

  it("may be ended by a signal", async () => {
    expect(await run("kill -SEGV $$", on)).toMatchObject({ kind: "signalled", signal: "SIGSEGV" });
  });

  it("loses no output written just before it exits", async () => {
    const result = await run("head -c 900000 /dev/zero | tr '\\0' x", on);
    expect(result.stdout.bytes).toBe(900_000);
  });

  it("decodes characters split between writes, and shows invalid bytes as U+FFFD", async () => {
    const result = await run("printf '\\xc3'; sleep 0.05; printf '\\xa9'; printf '\\xff!'", on);
    expect(result.stdout.text).toBe("é\u{FFFD}!");
  });
});

describe("real pipes", () => {
  it("can be opened again by name", async () => {
    const script = "echo a > /dev/stderr; echo b | tee /dev/stdout > /dev/null; cat /dev/stdin";
    const result = await run(script, { stdin: "c\n", pipes: new Pipes(folder) });
    expect(result.stderr.text).toBe("a\n");
    expect(result.stdout.text).toContain("c\n");
    expect(result).toMatchObject({ kind: "exited", code: 0 });
  });

  it("are not needed: without mkfifo the process still runs", async () => {
    const missing = new Pipes(join(folder, "missing"));
    expect((await run("echo hello", { pipes: missing })).stdout.text).toBe("hello\n");
  });

  it("leave no descriptor open", async () => {
    const pipes = new Pipes(folder);
    const open = () => run("ls /proc/$PPID/fd | wc -l", { pipes }).then(({ stdout }) => Number(stdout.text));
    const before = await open();
    for (let round = 0; round < 20; round++) await start(["true"], { pipes, stdin: "x" });
    await start(["/no/such/program"], { pipes, stdin: "x" });
    expect(await open()).toBeLessThanOrEqual(before + 1);
  });
});

describe("a process that cannot start", () => {
  const plain = join(folder, "plain.txt");
  writeFileSync(plain, "#!/bin/sh\n");
  chmodSync(plain, 0o644);
  const orphan = join(folder, "orphan");
  writeFileSync(orphan, "#!/no/such/interpreter\n", { mode: 0o755 });

  it.each([
    ["a program that is nowhere in PATH", ["no-such-program-x"], {}, "program", "ENOENT", "no such program in PATH"],
    ["a path that does not exist", ["/no/such/program"], {}, "program", "ENOENT", "there is no such file"],
    ["a script without its interpreter", [orphan], {}, "program", "ENOENT", "interpreter"],
    ["a file that is not executable", [plain], {}, "program", "EACCES", "not executable (chmod +x)"],
    ["a directory", [folder], {}, "program", "EACCES", "is a directory"],
    ["a missing working directory", ["true"], { cwd: "/no/such/cwd" }, "cwd", "ENOENT", "/no/such/cwd"],
    ["a file as working directory", ["true"], { cwd: plain }, "cwd", "ENOTDIR", "not a directory"],
    ["a NUL in an argument", ["true", "a\0b"], {}, "arguments", "ERR_INVALID_ARG_VALUE", "null bytes"],
    ["no program", [""], {}, "arguments", "ERR_INVALID_ARG_VALUE", "empty"],
    ["arguments that are too long", ["true", "x".repeat(200_000)], {}, "arguments", "E2BIG", "use stdin"],
  ] as const)("%s", async (...[, argv, more, reason, code, text]) => {
    const result = await start(argv, more);
    expect(result).toMatchObject({ kind: "spawn_failed", reason, code });
    if (result.kind === "spawn_failed") expect(result.message).toContain(text);
  });

  it("for want of descriptors says so, and the next one starts", async () => {
    const source = `
      import { openSync, closeSync } from "node:fs";
      import { runProcess } from ${JSON.stringify(new URL("../../src/process/run.ts", import.meta.url).href)};
      import { Marks } from ${JSON.stringify(new URL("../../src/process/marks.ts", import.meta.url).href)};
      const marks = new Marks("emfile");
      const go = () => runProcess({ argv: ["true"], cwd: "/", env: { PATH: process.env.PATH }, marks });
      const open = [];
      try { for (;;) open.push(openSync("/dev/null")); } catch {}
      const starved = await go();
      open.forEach((fd) => closeSync(fd));
      console.log(JSON.stringify([starved, (await go()).kind]));`;
    const file = join(folder, "emfile.ts");
    writeFileSync(file, source);
    const result = await run(`ulimit -n 64; exec "$NODE" ${file}`, { env: { ...environment, NODE: process.execPath } });
    const [starved, next] = JSON.parse(result.stdout.text) as [ProcessResult, string];
    expect(starved).toMatchObject({ kind: "spawn_failed", reason: "resources", code: "EMFILE" });
    expect(next).toBe("exited");
  });
});

describe("what a process leaves in the background", () => {
  it("ends with it, and does not keep it waiting", async () => {
    const time = uniqueSleep();
    const result = await run(`sleep ${time} & nohup sleep ${time} & echo done`);
    expect(result).toMatchObject({ kind: "exited", code: 0 });
    expect(result.stdout.text).toContain("done");
    expect(result.duration).toBeLessThan(3000);
    expect(processesWith(time)).toEqual([]);
  });

  it("is found outside the process group when it holds the streams", async () => {
    const time = uniqueSleep();
    const result = await run(`setsid sleep ${time} & echo done`);
    expect(result.kind).toBe("exited");
    expect(processesWith(time)).toEqual([]);
  });

  it("may finish its work in a moment", async () => {
    const log = join(folder, "tee.log");
    const result = await run(`exec > >(sleep 0.03; tee ${log}); echo all of it`);
    expect(result.stdout.text).toBe("all of it\n");
  });

  it("is cut off when it cleared its environment and cannot be found", async () => {
    const time = uniqueSleep();
    try {
      const result = await run(`env -i setsid sleep ${time} & echo done`);
      expect(result.stdout.text).toBe("done\n");
      expect(result.duration).toBeLessThan(3000);
    } finally {
      killAll(time);
    }
  });
});
