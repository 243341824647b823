import { chmodSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { killAll, processesWith, uniqueSleep, untilRunning } from "../process/leftovers.ts";
import { Bench, outputs, stdout } from "./attempt.ts";

const bench = new Bench();
afterAll(() => bench.remove());

describe("a run step", () => {
  it("gives its streams without their final newlines, and what it wrote to $FLOW_OUTPUT", async () => {
    const script = `printf ' a\\n\\nb\\n\\n\\n'; echo warn >&2; echo "key=one two" >> "$FLOW_OUTPUT"`;
    const streams = { stdout: " a\n\nb", stderr: "warn", "exit-code": 0 };
    expect(await bench.run({ run: script })).toEqual({
      outcome: "success",
      result: streams,
      outputs: { ...streams, key: "one two" },
    });
  });

  it("stops at the first command that fails, also inside a pipe", async () => {
    const result = await bench.run({ run: "echo before; false | cat; echo after" });
    expect(result).toMatchObject({ outcome: "failure", error: { kind: "exit", message: "exited with 1" } });
    expect(outputs(result)["stdout"]).toBe("before");
  });

  it("keeps its streams, exit code and $FLOW_OUTPUT when it fails", async () => {
    const script = `echo out; echo k=v >> "$FLOW_OUTPUT"; printf 'first\\n\\033[31mthe reason\\033[0m\\n\\n' >&2; exit 255`;
    expect(await bench.run({ run: script })).toEqual({
      outcome: "failure",
      error: { kind: "exit", message: "exited with 255: the reason" },
      outputs: { stdout: "out", stderr: "first\n\u001B[31mthe reason\u001B[0m", "exit-code": 255, k: "v" },
    });
  });

  it("fails as signal when one ended it, with the shells' exit code", async () => {
    const result = await bench.run({ run: "echo dying >&2; kill -KILL $$" });
    expect(result).toMatchObject({ outcome: "failure", error: { kind: "signal", message: "ended by SIGKILL: dying" } });
    expect(outputs(result)["exit-code"]).toBe(137);
  });

  it("sources no start-up file, reads no stdin, and can open its streams by name", async () => {
    for (const name of [".bashrc", ".bash_profile", ".profile"]) writeFileSync(join(bench.cwd, name), "echo SOURCED");
    const script = `wc -c; shopt -q login_shell || echo no login; echo x > /dev/stderr; cat /dev/stdin`;
    const result = await bench.run({ run: script, inputs: { env: { HOME: bench.cwd } } });
    expect(outputs(result)).toEqual({ stdout: "0\nno login", stderr: "x", "exit-code": 0 });
    const withStdin = await bench.run({
      run: ["bash", "-c", "cat /dev/stdin"],
      inputs: { stdin: "in", env: { HOME: bench.cwd } },
    });
    expect(outputs(withStdin)["stdout"]).toBe("in");
  });

  it("takes values of every type", async () => {
    const env = { TEXT: "a b", NUMBER: 1.5, YES: true, NOTHING: null, LIST: [1, "x"], MAP: { a: 1 } };
    const names = Object.keys(env);
    const script = `for name in ${names.join(" ")}; do printf '%s|' "\${!name}"; done; cat`;
    const result = await bench.run({ run: script, inputs: { env, stdin: { a: [null] } } });
    expect(outputs(result)["stdout"]).toBe('a b|1.5|true||[1,"x"]|{"a":1}|{"a":[null]}');
    const listed = await bench.run({ run: ["printf", "%s|", ...Object.values(env)] });
    expect(outputs(listed)["stdout"]).toBe('a b|1.5|true||[1,"x"]|{"a":1}|');
  });

  it("knows its run and its step, and its folder", async () => {
    const result = await bench.run({ run: 'echo "$FLOW_RUN_ID $FLOW_STEP"; echo "$PWD"; printenv PWD' });
    expect(outputs(result)["stdout"]).toBe(`20260101-abc group[2]/one#3\n${bench.cwd}\n${bench.cwd}`);
  });

  it("has a private script and a private $FLOW_OUTPUT, which are gone afterwards", async () => {
    const result = await bench.run({
      run: 'stat -c %a "$0" "$FLOW_OUTPUT"; umask 000; echo "$0 $FLOW_OUTPUT"; rm "$FLOW_OUTPUT"; mkdir "$FLOW_OUTPUT"',
    });
    expect(result).toMatchObject({ outcome: "failure", error: { kind: "output" } });
    const [script = "", output = "", names = ""] = stdout(result).split("\n");
    expect([script, output]).toEqual(["600", "600"]);
    expect(names.split(" ").map((file) => existsSync(file))).toEqual([false, false]);
    expect(readdirSync(bench.temp).filter((name) => !name.startsWith("pipe-"))).toEqual([]);
  });

  it.each([
    ["sh", 'echo "$0" > /dev/null; echo "$((1 + 1))"; false; echo no', "failure", "2"],
    ["python3", "import sys\nprint(len(sys.argv))", "success", "1"],
    ["bash -u {0} extra", 'echo "$1"', "success", "extra"],
    ["no-such-shell", "echo hi", "failure", undefined],
  ])("runs its script by shell: %s", async (shell, run, outcome, stdout) => {
    const result = await bench.run({ run, shell });
    expect(result.outcome).toBe(outcome);
    if (stdout === undefined) expect(result).toMatchObject({ error: { kind: "unavailable" } });
    else expect(outputs(result)["stdout"]).toBe(stdout);
  });

  it("resolves cwd from the folder flow was started in", async () => {
    mkdirSync(join(bench.cwd, "sub"));
    const at = async (cwd: string) => bench.run({ run: ["pwd"], inputs: { cwd } });
    expect(outputs(await at("sub"))["stdout"]).toBe(join(bench.cwd, "sub"));
    expect(outputs(await at("/"))["stdout"]).toBe("/");
    expect(await at("missing")).toMatchObject({
      outcome: "failure",
      error: { kind: "input", message: expect.stringContaining(`${join(bench.cwd, "missing")}" does not exist`) },
    });
  });

  // Long enough that no random name of a folder holds one.
  it("gives provider keys, CI tokens and declared secrets to nobody who does not name them", async () => {
    const inheritedEnvironment = {
      PATH: process.env["PATH"],
      OPENAI_API_KEY: "canary-1",
      GITHUB_TOKEN: "canary-2",
      MINE: "canary-3",
      S: "canary-4",
    };
    const options = { inheritedEnvironment, providerKeys: ["MINE"], secretNames: ["S"] };
    const seen = await bench.run({ run: "cat /proc/self/environ | tr '\\0' '\\n'" }, options);
    expect(outputs(seen)["stdout"]).not.toMatch(/canary/);
    const given = await bench.run({ run: 'echo "$S"', inputs: { env: { S: "canary-4" } } }, options);
    expect(outputs(given)["stdout"]).toBe("canary-4");
  });
});

describe("a run step that cannot be given its values", () => {
  const long = "x".repeat(128 * 1024);
  it.each([
    ["a long env value", { env: { A: long } }, "env A is 131075 bytes long, more than the 128 KiB"],
    ["a NUL in env", { env: { A: "a\0b" } }, "env A holds a NUL character"],
    ["an env name with =", { env: { "A=B": "x" } }, '"A=B" is not the name of a variable'],
    ["a name of flow's own", { env: { FLOW_OUTPUT: "x" } }, "env FLOW_OUTPUT is set by flow itself"],
    ["a mark of flow's own", { env: { FLOW_MARK_x: "x" } }, "env FLOW_MARK_x is set by flow itself"],
    ["a cwd that is no text", { cwd: 7 }, "cwd must be a path, it is 7"],
    ["an empty cwd", { cwd: "" }, 'cwd must be a path, it is ""'],
  ])("because of %s fails as input", async (_name, inputs, message) => {
    const result = await bench.run({ run: "touch HIT", inputs });
    expect(result).toMatchObject({ outcome: "failure", error: { kind: "input" } });
    if (result.outcome === "failure") expect(result.error.message).toContain(message);
    expect(existsSync(join(bench.cwd, "HIT"))).toBe(false);
  });

  it("fails as input for a long argument too, and stdin takes it", async () => {
    expect(await bench.run({ run: ["echo", long] })).toMatchObject({
      error: { kind: "input", message: expect.stringContaining("stdin") },
    });
    expect(await bench.run({ run: ["echo", "a\0"] })).toMatchObject({ error: { kind: "input" } });
    expect(outputs(await bench.run({ run: ["wc", "-c"], inputs: { stdin: long } }))["stdout"]).toBe(
      String(long.length),
    );
  });

  it("takes values up to the system's limit", async () => {
    const value = "x".repeat(128 * 1024 - "A=".length - 1);
    expect(outputs(await bench.run({ run: 'echo "${#A}"', inputs: { env: { A: value } } }))["stdout"]).toBe(
      String(value.length),
    );
  });

  it("fails as input when they are too many for the system together", async () => {
    const env = Object.fromEntries(Array.from({ length: 60 }, (_, index) => [`A${index}`, "x".repeat(120_000)]));
    expect(await bench.run({ run: "true", inputs: { env } })).toMatchObject({ error: { kind: "input" } });
  });
});

describe("a program that cannot start", () => {
  it("fails as unavailable and is named", async () => {
    const file = join(bench.cwd, "plain");
    writeFileSync(file, "#!/bin/sh\n");
    chmodSync(file, 0o644);
    for (const [program, text] of [
      ["no-such-program-x", "no such program in PATH"],
      ["./plain", "chmod +x"],
    ] as const) {
      const result = await bench.run({ run: [program] });
      expect(result).toMatchObject({ outcome: "failure", error: { kind: "unavailable" } });
      if (result.outcome === "failure")
        expect(result.error.message).toMatch(new RegExp(`"${program}".*${text.replace("+", "\\+")}`));
    }
  });

  it("fails as unavailable when the temporary folder is gone", async () => {
    const result = await bench.run({ run: "true" }, { tempFolder: join(bench.folder, "gone") });
    expect(result).toMatchObject({ error: { kind: "unavailable", message: expect.stringContaining("ENOENT") } });
  });
});

describe("$FLOW_OUTPUT of a step", () => {
  it("that is malformed fails it, with the line", async () => {
    const result = await bench.run({ run: 'echo hello; echo bad > "$FLOW_OUTPUT"' });
    expect(result).toMatchObject({ outcome: "failure", error: { kind: "output" } });
    if (result.outcome === "failure") expect(result.error.message).toContain("line 1 of $FLOW_OUTPUT");
    expect(outputs(result)["stdout"]).toBe("hello");
  });

  it("that is malformed does not hide why the step failed", async () => {
    const result = await bench.run({ run: 'echo bad > "$FLOW_OUTPUT"; exit 3' });
    expect(result).toMatchObject({ error: { kind: "exit", cause: expect.stringContaining("line 1") } });
  });
});

describe("a run step with an output schema", () => {
  const output = { type: "object" };

  it("gives the fields of its JSON", async () => {
    const result = await bench.run({
      run: `echo '{"a": 1, "__proto__": {"x": 1}}'; echo b=2 > "$FLOW_OUTPUT"`,
      output,
    });
    expect(result.outcome).toBe("success");
    expect(Object.keys(outputs(result)).sort()).toEqual(["__proto__", "a", "b", "exit-code", "stderr", "stdout"]);
    expect(outputs(result)["a"]).toBe(1);
    expect(Object.hasOwn(Object.prototype, "x")).toBe(false);
  });

  it.each([
    ["no JSON", "echo hello", "stdout is not one JSON object"],
    ["nothing", "true", "stdout is not one JSON object"],
    ["two objects", "echo '{} {}'", "stdout is not one JSON object"],
    ["a list", "echo '[]'", "stdout is JSON, but not an object"],
    ["a field of a stream's name", `echo '{"Stdout": 1}'`, 'a field "Stdout"'],
    ["a field that is written twice", `echo '{"a": 1}'; echo A=2 > "$FLOW_OUTPUT"`, 'a field "a"'],
    ["too much", `printf '{"a":"%s"}' "$(head -c 3000 /dev/zero | tr '\\0' x)"`, "stdout is 3008 bytes long"],
  ])("fails on %s", async (_name, run, message) => {
    const result = await bench.run({ run, output }, { maxBytes: 2000 });
    expect(result).toMatchObject({ outcome: "failure", error: { kind: "output" } });
    if (result.outcome === "failure") expect(result.error.message).toContain(message);
    expect(outputs(result)["exit-code"]).toBe(0);
  });

  it("fails with what the check found, and the check sees schema and value", async () => {
    const asked: unknown[] = [];
    const checkOutput = (...args: unknown[]) => (asked.push(args), Promise.resolve(["/a must be a string"]));
    const result = await bench.run({ run: `echo '{"a":1}'`, output }, { checkOutput });
    expect(asked).toEqual([[output, { a: 1 }]]);
    expect(result).toMatchObject({
      error: { kind: "output", message: expect.stringContaining("/a must be a string") },
    });
  });
});

describe("a run step's long output", () => {
  it("is a value with a beginning and an end; the whole lies in a file", async () => {
    const result = await bench.run({ run: "seq 1 100000" }, { maxBytes: 2000 });
    const text = stdout(result);
    expect(text).toMatch(/^1\n2\n/);
    expect(text).toMatch(/99999\n100000$/);
    const file = /all of it is in (.*)\]/.exec(text)?.[1] ?? "";
    expect(file.startsWith(join(bench.spill, "one-"))).toBe(true);
    expect(readFileSync(file, "utf8").split("\n").length).toBe(100_001);
  });

  it.each(["seq 1 100000", "yes '' | head -c 9000", "yes ü | head -c 9001", "printf '%02001d' 0"])(
    "stays longer than what is read as a whole: %s",
    async (run) => {
      const result = await bench.run({ run }, { maxBytes: 2000 });
      expect(Buffer.byteLength(stdout(result))).toBeGreaterThan(2000);
    },
  );
});

describe("a cancelled run step", () => {
  it("leaves no process and keeps what it had", async () => {
    const time = uniqueSleep();
    const abort = new AbortController();
    try {
      const script = `echo begun; echo k=v >> "$FLOW_OUTPUT"; setsid sleep ${time} & sleep ${time}`;
      const running = bench.run({ run: script, signal: abort.signal }, { grace: 300 });
      await untilRunning(`sleep\0${time}`, 2);
      abort.abort();
      expect(await running).toEqual({ outcome: "cancelled", outputs: { stdout: "begun", stderr: "", k: "v" } });
      expect(processesWith(time)).toEqual([]);
    } finally {
      killAll(time);
    }
  });

  it("does not start when it was cancelled before", async () => {
    const result = await bench.run({ run: "touch STARTED", signal: AbortSignal.abort() });
    expect(result).toEqual({ outcome: "cancelled" });
    expect(existsSync(join(bench.cwd, "STARTED"))).toBe(false);
  });
});
