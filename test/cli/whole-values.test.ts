import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Place } from "./flow.ts";

const big = "9007199254740993";
const refused = "too large";

describe("output over 1 MiB", () => {
  const flood = "head -c 3000000 /dev/zero | tr '\\\\0' x";

  it("fails nobody who does not read it, and whoever does, after a resume too", async () => {
    const place = new Place({
      "quiet.yaml": `steps:\n  a: { run: "${flood}" }\n  b: { needs: a, run: echo }\n`,
      "asks.yaml": `steps:\n  a: { run: "${flood}" }\n  b: { run: echo, if: "!contains(steps.a.outputs.stdout, 'FATAL')" }\n`,
      "items.yaml": `steps:\n  a: { foreach: [1], run: "${flood}" }\n  b: { run: echo, if: "!contains(steps.a.outputs.items[0].stdout, 'FATAL')" }\n`,
    });
    expect((await place.flow(["run", "quiet.yaml"])).code).toBe(0);
    for (const args of [
      ["run", "items.yaml"],
      ["run", "asks.yaml"],
      ["resume", "latest"],
    ]) {
      const ended = await place.flow(args);
      expect(ended.code).toBe(1);
      expect(ended.stderr).toContain("`stdout` is a text of more than 1048576 bytes");
    }
  });
});

describe("a number that cannot be kept exactly", () => {
  const place = new Place({
    "in.yaml":
      "inputs: { n: { type: integer, default: 1 }, l: { type: array, default: [] } }\nsteps: { a: { run: echo } }\n",
    "out.yaml": `steps:\n  a:\n    run: 'echo ''{"id": ${big}}'''\n    output: { type: object, properties: { id: { type: integer } } }\n`,
    "form.yaml": "steps:\n  a: { approve: ok?, form: { type: object, properties: { n: { type: integer } } } }\n",
    "deep.json": `{"l": ${"[".repeat(50_000)}${"]".repeat(50_000)}}`,
    "big.json": `{"n": ${big}}`,
  });

  it.each([
    [["run", "in.yaml", "-i", `n=${big}`], 2],
    [["run", "in.yaml", "-i", `l=[${big}]`], 2],
    [["run", "in.yaml", "--inputs", "big.json"], 2],
    [["run", "form.yaml", "--approve", "a", "--form", `n=${big}`], 2],
    [["run", "out.yaml"], 1],
    [["eval", `fromJSON('[${big}]')`], 1],
  ])("is refused by %j", async (args, code) => {
    const ended = await place.flow(args);
    expect(ended.stderr).toContain(refused);
    expect(ended.code).toBe(code);
  });

  it("and so is nesting that nobody can walk", async () => {
    const ended = await place.flow(["run", "in.yaml", "--inputs", "deep.json"]);
    expect(ended).toMatchObject({ code: 2, stderr: expect.stringContaining("nested deeper than 1000 levels") });
  });
});

describe("a file given as --inputs", () => {
  const place = new Place({ "in.yaml": "inputs: { t: { type: string } }\nsteps: { a: { run: echo } }\n" });
  writeFileSync(join(place.folder, "latin.json"), Buffer.from('{"t": "\xff"}', "latin1"));
  execFileSync("mkfifo", [join(place.folder, "pipe")]);

  it.each([
    ["latin.json", "byte 0xff is not UTF-8 (line 1, column 8)"],
    ["pipe", "not a regular file"],
    ["/dev/zero", "not a regular file"],
    ["absent.json", "there is no such file"],
  ])("is refused when it is %s", async (file, message) => {
    const ended = await place.flow(["run", "in.yaml", "--inputs", file]);
    expect(ended).toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
  });
});

describe("a timeout by an expression", () => {
  it("is as long as one that is written out, and longer is an error of the input", async () => {
    const place = new Place({
      "w.yaml": 'inputs: { w: { type: string } }\nsteps: { a: { run: sleep 0.1, timeout: "${{ inputs.w }}" } }\n',
    });
    expect((await place.flow(["run", "w.yaml", "-i", "w=596h"])).code).toBe(0);
    const ended = await place.flow(["run", "w.yaml", "-i", "w=30d"]);
    expect(ended).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("input: the timeout is no duration between"),
    });
  });
});

describe("a log that is none", () => {
  it("is not waited for when it is a pipe", async () => {
    const place = new Place();
    mkdirSync(join(place.folder, "r"));
    execFileSync("mkfifo", [join(place.folder, "r", "log.jsonl")]);
    for (const command of ["show", "logs", "resume"]) {
      const ended = await place.flow([command, "./r"]);
      expect(ended).toMatchObject({ code: 2, stderr: expect.stringContaining("not a regular file") });
    }
  });

  it("is damaged when a line is nested too deep to be walked", async () => {
    const place = new Place({ "a.yaml": "steps: { a: { run: echo } }\n" });
    await place.flow(["run", "a.yaml"]);
    const log = join(place.folder, ".flow/runs", place.runs()[0] ?? "", "log.jsonl");
    const lines = readFileSync(log, "utf8").split("\n");
    const deep = `{"seq":4,"time":"2026-11-22T03:00:00.000Z","type":"x","a":${"[".repeat(50_000)}${"]".repeat(50_000)}}`;
    writeFileSync(log, lines.toSpliced(3, 1, deep).join("\n"));
    for (const command of ["logs", "show", "resume"])
      expect(await place.flow([command, "latest"])).toMatchObject({
        code: 2,
        stderr: expect.stringContaining("nested deeper than 2000 levels"),
      });
  });

  it.each([["runs"], ["show", "latest"]])("nor is there a run in a file given as --runs-dir: %s", async (...args) => {
    const ended = await new Place().flow([...args, "--runs-dir", "/etc/passwd"]);
    expect(ended).toMatchObject({ code: 2, stderr: expect.stringContaining("it is not a folder") });
  });
});

it("a working directory that is gone is said, and no bug", async () => {
  const place = new Place({ "f.yaml": "steps: { a: { run: echo } }\n", "gone/x": "" });
  const ended = await place.shell("cd gone && rm -r ../gone && flow runs; echo $?; flow run ../f.yaml; echo $?");
  expect(ended.stdout).toBe("2\n2\n");
  expect(ended.stderr).toContain("the working directory is not there any more");
});
