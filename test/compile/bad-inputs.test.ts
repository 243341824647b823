import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { check, prepare, run } from "../../src/flow.ts";
import { diagnosticsJson, renderDiagnostics } from "../../src/render/diagnostics.ts";
import { plainPalette } from "../../src/render/palette.ts";
import { checkFiles, checkText, planOf, problemsOf } from "./checking.ts";

const folder = mkdtempSync(join(tmpdir(), "flow-bad-"));
mkdirSync(join(folder, ".git"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Every way a hostile file can be wrong that one text shows: its code and the text under the caret. */
const texts: readonly (readonly [id: string, text: string, problems: readonly string[]])[] = [
  [
    "yaml-01 two steps need each other",
    "steps:\n  a: { run: x, needs: b }\n  b: { run: x, needs: a }\n",
    ["FLOW4001 2:23 b"],
  ],
  ["yaml-02 a step needs itself", "steps:\n  a: { run: x, needs: a }\n", ["FLOW4001 2:23 a"]],
  [
    "yaml-04 a mapping reads a step that comes later",
    'steps:\n  a: { set: { v: "${{ steps.b.outputs.v }}" } }\n  b: { set: { v: 1 }, needs: a }\n',
    ["FLOW4001 2:29 b"],
  ],
  [
    "yaml-05 an output that is not declared",
    'steps:\n  a: { set: { v: 1 } }\n  b: { set: { v: "${{ steps.a.outputs.w }}" } }\n',
    ["FLOW5010 3:39 w"],
  ],
  ['yaml-07 the keys 1 and "1"', '1: a\n"1": b\n', ["FLOW1012 1:1 1", 'FLOW1011 2:1 "1"']],
  ["yaml-08 two steps with one id", "steps:\n  a: { run: x }\n  a: { run: y }\n", ["FLOW1011 3:3 a"]],
  [
    "yaml-10 ids that are equal after normalization",
    "steps:\n  café: { run: x }\n  cafe\u0301: { run: y }\n",
    ["FLOW3001 2:3 café", "FLOW3001 3:3 cafe\u0301"],
  ],
  [
    "yaml-11 a step called __proto__",
    "steps:\n  __proto__: { run: x }\n  b: { run: x, needs: __proto__ }\n",
    ["FLOW1016 2:3 __proto__"],
  ],
  ["yaml-13 an id with a control character", 'steps:\n  "a\\u0001b": { run: x }\n', ['FLOW1005 2:3 "a\\u0001b"']],
  [
    "yaml-14 __proto__ as a key of inputs",
    "inputs: { __proto__: { polluted: 1 } }\nsteps: { a: { run: x } }\n",
    ["FLOW1016 1:11 __proto__"],
  ],
  [
    "yaml-14 __proto__ as a key of env, with and a schema",
    "steps:\n  a: { run: x, env: { __proto__: a } }\n  b: { agent: { prompt: x }, with: { __proto__: a } }\n  c: { agent: { prompt: x }, output: { properties: { __proto__: {} } } }\n",
    ["FLOW1016 2:23 __proto__", "FLOW1016 3:38 __proto__", "FLOW1016 4:54 __proto__"],
  ],
  [
    "yaml-14 constructor as a key of inputs",
    "inputs: { constructor: { type: string } }\nsteps: { a: { run: x } }\n",
    ["FLOW3003 1:11 constructor"],
  ],
  ["yaml-19 an alias of the value it stands in", "steps: &x\n  a: *x\n", ["FLOW1009 2:6 *x"]],
  ["yaml-28 a NUL byte", 'steps:\n  a: { run: "a\0b" }\n', ["FLOW1005 2:15 \0"]],
  ["yaml-29 a line separator", "steps:\n  a: { run: x }\n  b\u2028: { run: x }\n", ["FLOW1005 3:3 b\u2028"]],
  [
    "yaml-29 a line separator in an expression",
    'steps:\n  a: { set: { v: "${{ run.\u2028id }}" } }\n',
    ["FLOW5001 2:27 \u2028"],
  ],
  ["yaml-31 a Cyrillic letter in a key", "stеps:\n  a: { run: x }\n", ["FLOW2002 1:1 stеps"]],
  ["yaml-35 a byte order mark in the middle", "steps:\n  \ufeffa: { run: x }\n", ["FLOW1005 2:3 \ufeff"]],
  ["yaml-37 bare carriage returns", "steps:\r  a: { run: x }\r", ["FLOW1005 1:7 \r", "FLOW1005 1:23 \r"]],
  ["yaml-38 a tab as indentation", "steps:\n\ta: { run: x }\n", ["FLOW1006 2:1 \t"]],
  ["yaml-40 an empty file", "", ["FLOW2005 1:1 "]],
  ["yaml-40 nothing but comments", "# nothing\n", ["FLOW2005 2:1 "]],
  ["yaml-40 a text at the root", "hello\n", ["FLOW2005 1:1 hello"]],
  ["yaml-40 a list at the root", "- a\n", ["FLOW2005 1:1 - a"]],
  ["yaml-41 a directive", "%YAML 1.1\n---\nsteps: { a: { run: x } }\n", ["FLOW1007 1:1 %YAML 1.1"]],
  ["yaml-43 a number where a text belongs", "steps:\n  a: { run: x, stdin: 0o17 }\n", ["FLOW2001 2:23 0o17"]],
  ["yaml-43 null where a text belongs", "steps:\n  a: { run: ~ }\n", ["FLOW2001 2:13 ~"]],
  [
    "yaml-44 a number that no one can count",
    "steps: { a: { agent: { prompt: x, max-output: 99999999999999999999 }, limits: { turns: 1e400 } } }\n",
    ["FLOW1006 1:47 99999999999999999999", "FLOW1006 1:88 1e400"],
  ],
  ["yaml-46 a timeout of 0", "steps:\n  a: { run: x, timeout: 0 }\n", ["FLOW2001 2:25 0"]],
  ["yaml-46 a timeout of -1", "steps:\n  a: { run: x, timeout: -1 }\n", ["FLOW2001 2:25 -1"]],
  ["yaml-46 a timeout without a unit", 'steps:\n  a: { run: x, timeout: "5" }\n', ['FLOW2004 2:25 "5"']],
  ["yaml-46 a timeout of no time", "steps:\n  a: { run: x, timeout: 0s }\n", ["FLOW2004 2:25 0s"]],
  ["yaml-47 a billion tries", "steps:\n  a: { run: x, retry: 1e9 }\n", ["FLOW2004 2:23 1e9"]],
  ["yaml-47 no step at once", "limits: { parallel: 0 }\nsteps:\n  a: { run: x }\n", ["FLOW2004 1:21 0"]],
  [
    "yaml-47 minus one, and a billion steps at once",
    "steps:\n  a: { run: x, foreach: [1], parallel: -1 }\n  b: { run: x, foreach: [1], parallel: 1e9 }\n",
    ["FLOW2004 2:40 -1", "FLOW2004 3:40 1e9"],
  ],
  [
    "yaml-49 a mapping of lists",
    "steps:\n  a: [run]\n  b: { run: x, needs: 1 }\n  c: { run: x, env: { A: { b: c } } }\n",
    ["FLOW2001 2:6 [run]", "FLOW2001 3:23 1", "FLOW2001 4:26 { b: c }"],
  ],
  [
    "yaml-53 a schema that refers to the network",
    "inputs: { a: { $ref: https://example.org/schema.json } }\nsteps: { a: { run: x } }\n",
    ["FLOW2011 1:22 https://example.org/schema.json"],
  ],
  ["yaml-62 a condition that cannot be read", "steps:\n  a: { run: x, if: run.id == }\n", ["FLOW5001 2:27 =="]],
  ["yaml-62 an unknown function", "steps:\n  a: { run: x, if: matches(run.id) }\n", ["FLOW5002 2:20 matches"]],
  [
    "yaml-62 10 KB of parentheses",
    `steps:\n  a: { run: x, if: "${"(".repeat(5000)}1${")".repeat(5000)}" }\n`,
    [`FLOW5014 2:21 ${"(".repeat(5000)}1${")".repeat(5000)}`],
  ],
  [
    "yaml-64 an expression as a key",
    'steps:\n  a: { set: { "${{ run.id }}": 1 } }\n',
    ['FLOW5004 2:15 "${{ run.id }}"'],
  ],
  ["yaml-64 an expression as an id", 'steps:\n  "${{ run.id }}": { run: x }\n', ['FLOW3001 2:3 "${{ run.id }}"']],
  ["yaml-64 an expression as a shell", 'steps:\n  a: { run: x, shell: "${{ run.id }}" }\n', ["FLOW5004 2:24 ${{"]],
  [
    "yaml-64 an expression as the path of a workflow",
    'steps:\n  a: { workflow: "${{ run.id }}" }\n',
    ["FLOW5004 2:19 ${{"],
  ],
  [
    "yaml-64 an expression in a permission rule",
    'permissions: { Bash: { "${{ run.id }}": allow }, allow: ["Bash(${{ run.id }})"] }\nsteps: { a: { run: x } }\n',
    ["FLOW5004 1:64 ${{"],
  ],
  [
    "yaml-64 an expression in the command of an MCP server",
    'mcp: { s: { command: "${{ run.id }}" } }\nsteps: { a: { run: x } }\n',
    ["FLOW5004 1:23 ${{"],
  ],
  ["yaml-64 an expression as an agent", 'steps:\n  a: { agent: "${{ run.id }}" }\n', ["FLOW5004 2:16 ${{"]],
  [
    "yaml-65 a secret in a prompt",
    'secrets: [T]\nsteps:\n  a: { agent: { instructions: x }, prompt: "${{ secrets.T }}" }\n',
    ["FLOW8001 3:49 secrets"],
  ],
  [
    "yaml-65 a secret in a script",
    'secrets: [T]\nsteps:\n  a: { run: "echo ${{ secrets.T }}" }\n',
    ["FLOW8002 3:19 ${{ secrets.T }}"],
  ],
  [
    "expr-01 the way to Function",
    `steps:\n  a: { set: { v: "\${{ constructor.constructor('return process')() }}" } }\n`,
    ["FLOW5002 2:23 constructor"],
  ],
  [
    "expr-01 an inherited property",
    'inputs: { a: {} }\nsteps:\n  a: { set: { v: "${{ inputs.__proto__.polluted }}" } }\n',
    ["FLOW5010 3:30 __proto__"],
  ],
  [
    "expr-07 a condition with text behind it",
    'steps:\n  a: { run: x, if: "${{ false }} " }\n',
    ['FLOW5005 2:20 "${{ false }} "'],
  ],
  [
    "expr-08 a regular expression in an expression",
    "steps:\n  a: { run: x, if: \"matches(run.id, '(a+)+$')\" }\n",
    ["FLOW5002 2:21 matches"],
  ],
];

describe("a bad file is refused with the place:", () => {
  test.each(texts)("%s", async (_, text, problems) => {
    const before = Reflect.ownKeys(Object.prototype);
    expect(problemsOf(await checkText(text))).toEqual(problems);
    expect(Reflect.ownKeys(Object.prototype)).toEqual(before);
  });

  test("yaml-22 mappings nested 5,000 deep, 12 MB", async () => {
    const text = Array.from({ length: 5_000 }, (_, depth) => `${" ".repeat(depth)}a:`).join("\n");
    expect(problemsOf(await checkText(text)).map((it) => it.slice(0, 8))).toEqual(["FLOW1003"]);
  });

  test("yaml-32 bytes that are not UTF-8", async () => {
    expect(problemsOf(await checkFiles({ "main.yaml": Buffer.from([0x61, 0x3a, 0x20, 0xff]) }))[0]).toMatch(
      /^FLOW1004 1:4/,
    );
  });

  test("yaml-26 a path that is a folder or a device", async () => {
    for (const file of [".", "/dev/null", "/dev/zero"])
      expect((await check({ file, cwd: folder })).diagnostics.map((it) => it.code)).toEqual(["FLOW1002"]);
  });

  test("yaml-34 a byte order mark at the start changes nothing", async () => {
    const text = "steps:\n  a: { run: x }\n";
    expect((await planOf(`\ufeff${text}`)).digest).toBe((await planOf(text)).digest);
  });

  test("yaml-56 300 steps, each with all before it", async () => {
    const steps = Array.from(
      { length: 300 },
      (_, index) =>
        `  s${index}: { run: x, needs: [${Array.from({ length: index }, (_unused, other) => `s${other}`).join(", ")}] }`,
    );
    expect((await checkText(`steps:\n${steps.join("\n")}\n`)).plan).toBeDefined();
  });

  test("yaml-58 workflows that contain each other", async () => {
    const found = await checkFiles({
      "main.yaml": "steps:\n  a: { workflow: ./b.yaml }\n",
      "b.yaml": "steps:\n  a: { workflow: ./main.yaml }\n",
    });
    expect(problemsOf(found)).toEqual(["FLOW3007 2:18 ./main.yaml"]);
    expect(problemsOf(await checkFiles({ "main.yaml": "steps:\n  a: { workflow: ./main.yaml }\n" }))).toEqual([
      "FLOW3007 2:18 ./main.yaml",
    ]);
  });

  test("yaml-59 a chain 6 deep, and 1,001 workflows in one", async () => {
    const chain = Object.fromEntries(
      Array.from({ length: 7 }, (_, index) => [
        index === 0 ? "main.yaml" : `${index}.yaml`,
        `steps:\n  a: { ${index === 6 ? "run: x" : `workflow: ./${index + 1}.yaml`} }\n`,
      ]),
    );
    expect(problemsOf(await checkFiles(chain))).toEqual(["FLOW3008 2:18 ./6.yaml"]);
    const many = Array.from({ length: 1_001 }, (_, index) => index);
    const files = Object.fromEntries(many.map((index) => [`w${index}.yaml`, "steps: { a: { run: x } }\n"]));
    const main = `steps:\n${many.map((index) => `  s${index}: { workflow: ./w${index}.yaml }`).join("\n")}\n`;
    expect(problemsOf(await checkFiles({ ...files, "main.yaml": main })).map((it) => it.slice(0, 8))).toEqual([
      "FLOW3008",
    ]);
  });

  test("yaml-61 a file that changes after it was checked is not read again", async () => {
    const cwd = mkdtempSync(join(folder, "changed-"));
    mkdirSync(join(cwd, ".git"));
    writeFileSync(join(cwd, "main.yaml"), "steps:\n  a: { workflow: ./sub.yaml }\n");
    writeFileSync(join(cwd, "sub.yaml"), "steps:\n  b: { run: echo checked }\n");
    const prepared = await prepare({ file: "main.yaml", cwd });
    writeFileSync(join(cwd, "sub.yaml"), "steps:\n  b: { run: echo changed }\n");
    expect(JSON.stringify(prepared)).toContain('"script":"echo checked"');
    expect(JSON.stringify("plan" in prepared && prepared.plan)).not.toContain("changed");
  });

  test("yaml-68 a sub-workflow that is empty, a folder, or spelt in another case", async () => {
    const main =
      "steps:\n  a: { workflow: ./empty.yaml }\n  b: { workflow: ./folder }\n  c: { workflow: ./Empty.yaml }\n";
    const found = await checkFiles({ "main.yaml": main, "empty.yaml": "", "folder/x.yaml": "" });
    expect(problemsOf(found).toSorted()).toEqual([
      "FLOW2005 1:1 ",
      "FLOW3006 3:18 ./folder",
      "FLOW3006 4:18 ./Empty.yaml",
    ]);
  });

  test("path-01 a sub-workflow may lie outside of the workspace, and is named by its path", async () => {
    const found = await checkFiles({
      "main.yaml": "steps:\n  a: { workflow: ../../nowhere/secret.yaml }\n  b: { workflow: file:///etc/passwd }\n",
    });
    expect(problemsOf(found)).toEqual(["FLOW3006 2:18 ../../nowhere/secret.yaml", "FLOW3006 3:18 file:///etc/passwd"]);
  });
});

describe("yaml-67 a credential in a file", () => {
  const key = `ghp_${"a1B2c3D4e5".repeat(4)}`;
  const body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC";
  const credentials: readonly (readonly [string, string, string])[] = [
    ["a plain value", `steps:\n  a: { run: x, env: { T: ${key} } }\n`, key],
    ["a script", `steps:\n  a:\n    run: |\n      curl -H "Authorization: ${key}"\n`, key],
    ["the line beside another mistake", `steps:\n  a:\n    rnu: x\n    name: ${key}\n`, key],
    ["the line of another mistake", `steps:\n  a: { rnu: ${key} }\n`, key],
    ["two in one text", `vars:\n  t: |\n    ${key}\n    ${key}zz\nsteps: { a: { run: x } }\n`, key],
    [
      "a private key of several lines",
      `vars:\n  k: |\n    -----BEGIN PRIVATE KEY-----\n    ${body}\n    -----END PRIVATE KEY-----\nsteps: { a: { run: x, wrong: 1 } }\n`,
      body,
    ],
    [
      "a URL with a password",
      "vars: { u: 'https://me:hunter2secret@example.org' }\nsteps: { a: { run: x } }\n",
      "hunter2secret",
    ],
    ["an agent's instructions", `steps:\n  a: { agent: { prompt: ${key} } }\n`, key],
  ];
  test.each(credentials)("is named and never shown: %s", async (_, text, secret) => {
    const { diagnostics, sources } = await checkText(text);
    expect(diagnostics.map((it) => it.code)).toContain("FLOW8004");
    expect(renderDiagnostics(diagnostics, sources, { palette: plainPalette })).not.toContain(secret.slice(0, 12));
    expect(JSON.stringify(diagnosticsJson(diagnostics))).not.toContain(secret.slice(0, 12));
  });

  test.each([
    "sk-ant-…",
    "ghp_xxx",
    "https://user@example.org",
    "https://${{ inputs.u }}:${{ inputs.p }}@example.org",
    "the key begins with `sk-proj-`",
  ])("is not seen in `%s`", async (text) => {
    const found = await checkText(
      `inputs: { u: { type: string }, p: { type: string } }\nvars: { t: ${JSON.stringify(text)} }\nsteps: { a: { run: x } }\n`,
    );
    expect(problemsOf(found)).toEqual([]);
  });
});

const flow = fileURLToPath(new URL("../../dist/flow.cjs", import.meta.url));

interface Ended {
  readonly code: number | null;
  readonly text: string;
  readonly seconds: number;
  /** Of the process at its largest. */
  readonly megabytes: number;
}

/** `flow validate` on one file in a process of its own. */
async function validate(content: string): Promise<Ended> {
  const cwd = mkdtempSync(join(folder, "big-"));
  mkdirSync(join(cwd, ".git"));
  writeFileSync(join(cwd, "main.yaml"), content);
  const report = `process.on("exit", () => require("node:fs").writeSync(2, "\\nrss " + process.resourceUsage().maxRSS))`;
  const preload = join(cwd, "rss.cjs");
  writeFileSync(preload, report);
  const started = performance.now();
  const child = spawn(process.execPath, ["-r", preload, flow, "validate", "main.yaml"], {
    cwd,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let text = "";
  child.stdout.on("data", (data: Buffer) => (text += data));
  child.stderr.on("data", (data: Buffer) => (text += data));
  const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
  return {
    code,
    text,
    seconds: (performance.now() - started) / 1_000,
    megabytes: Number(/rss (\d+)/.exec(text)?.[1] ?? Number.NaN) / 1_024,
  };
}

describe("a file made to be slow or large ends in time and memory:", () => {
  const laughs = Array.from(
    { length: 9 },
    (_, level) =>
      `  l${level}: &l${level} [${Array.from({ length: 9 }, () => (level === 0 ? "x" : `*l${level - 1}`)).join(", ")}]`,
  ).join("\n");
  const files: readonly (readonly [id: string, content: string, code: string])[] = [
    ["yaml-16 nine levels of nine aliases", `vars:\n${laughs}\nsteps: { a: { run: x } }\n`, "FLOW1009"],
    [
      "yaml-17 5,000 anchors",
      `vars:\n${Array.from({ length: 5_000 }, (_, index) => `  k${index}: &a${index} x`).join("\n")}\n`,
      "FLOW1009",
    ],
    ["yaml-20 400 nested explicit keys", `${"? ".repeat(400)}x`, "FLOW10"],
    ["yaml-23 2,000 dashes on one line", `steps: \n${"- ".repeat(2_000)}x`, "FLOW1010"],
    [
      "yaml-50 50,000 wrong items in a list",
      `vars: 1\nsecrets: [${Array.from({ length: 50_000 }, () => "1").join(", ")}]\nsteps: { a: { run: x } }\n`,
      "FLOW2001",
    ],
    [
      "yaml-52 a schema nested 500 deep",
      `inputs:\n  a: ${'{"items": '.repeat(500)}{}${"}".repeat(500)}\nsteps: { a: { run: x } }\n`,
      "FLOW1010",
    ],
    [
      "yaml-62 4,000 nested parentheses",
      `steps:\n  a: { run: x, if: "${"(".repeat(4_000)}1${")".repeat(4_000)}" }\n`,
      "FLOW5014",
    ],
    [
      "4,000 inputs and 4,000 names that are none",
      `inputs:\n${Array.from({ length: 4_000 }, (_, index) => `  i${index}: { type: string }`).join("\n")}\nsteps:\n  a:\n    set:\n${Array.from({ length: 4_000 }, (_, index) => `      v${index}: "\${{ inputs.j${index} }}"`).join("\n")}\n`,
      "FLOW5010",
    ],
  ];
  test.each(files)(
    "%s",
    async (id, content, code) => {
      expect(Buffer.byteLength(content)).toBeLessThan(262_144);
      const ended = await validate(content);
      expect(ended.text).toContain(code);
      expect(ended.code).toBe(2);
      expect(ended.text).toMatch(/main\.yaml:\d+:\d+ error/);
      // The bound is 1 s; a machine that runs other tests beside this one may take several times as long.
      expect(ended.seconds).toBeLessThan(5);
      // The densest file there is, a scalar every three bytes, takes the parser more than the 200 MB of every other.
      expect(ended.megabytes).toBeLessThan(id.startsWith("yaml-50") ? 320 : 200);
    },
    60_000,
  );

  test("yaml-25 a file of 10 MB is not read", async () => {
    const ended = await validate(`# ${"x".repeat(10 * 1024 * 1024)}\n`);
    expect([ended.code, /FLOW\d+/.exec(ended.text)?.[0]]).toEqual([2, "FLOW1003"]);
    expect(ended.megabytes).toBeLessThan(120);
  });

  test("yaml-50 100,000 wrong items, 50 of them printed", async () => {
    const ended = await validate(
      `steps:\n${Array.from({ length: 100_000 }, (_, index) => `  s${index}: { wrong: 1 }`).join("\n")}\n`,
    );
    expect(ended.code).toBe(2);
    expect(ended.text.match(/error FLOW/g)).toHaveLength(50);
    expect(ended.megabytes).toBeLessThan(800);
  }, 60_000);
});

describe("what a bad file leaves behind", () => {
  test("is nothing: no log, no step, exit 2", async () => {
    const cwd = mkdtempSync(join(folder, "run-"));
    mkdirSync(join(cwd, ".git"));
    const runsDir = join(cwd, "runs");
    writeFileSync(join(cwd, "main.yaml"), "steps:\n  a: { run: touch HIT }\n  b: { run: x, needs: c }\n");
    const result = await run({ file: "main.yaml", cwd, runsDir });
    expect(result.started ? undefined : result.refusal.exitCode).toBe(2);
    expect(readdirSync(cwd).toSorted()).toEqual([".git", "main.yaml"]);
    expect(existsSync(dirname(runsDir))).toBe(true);
  });

  test("expr-02 an input's value is never an expression, expr-04 nor code", async () => {
    const cwd = mkdtempSync(join(folder, "run-"));
    mkdirSync(join(cwd, ".git"));
    writeFileSync(
      join(cwd, "main.yaml"),
      'inputs: { t: { type: string } }\nsteps:\n  a: { run: printf %s "$T", env: { T: "${{ inputs.t }}" } }\noutputs: { t: "${{ steps.a.outputs.stdout }}" }\n',
    );
    for (const value of [
      "${{ secrets.X }}",
      "{{ env.X }}",
      "$(touch HIT)",
      "`touch HIT`",
      '"; touch HIT; "',
      "'; touch HIT; '",
      "a[$(touch HIT)]",
      "-n",
    ]) {
      const result = await run({
        file: "main.yaml",
        cwd,
        runsDir: join(cwd, "runs"),
        inputs: { t: value },
      });
      expect(result.started && result.end.outputs).toEqual({ t: value });
    }
    expect(existsSync(join(cwd, "HIT"))).toBe(false);
  }, 60_000);
});
