import { Ajv2020 } from "ajv/dist/2020.js";
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Place } from "./flow.ts";

const root = new URL("../../", import.meta.url);
const { version } = JSON.parse(readFileSync(new URL("package.json", root), "utf8")) as { readonly version: string };

let place: Place;
beforeAll(() => {
  place = new Place({
    "good.yaml": `
name: good
inputs: { go: { type: boolean, default: true } }
steps:
  plan: { run: echo plan }
  build: { needs: [plan], run: echo built }
  check: { needs: [plan], if: inputs.go, run: echo checked }
  ship: { needs: [build, check], run: echo shipped }
outputs: { x: "\${{ steps.ship.outputs.stdout }}" }
`,
    "bad.yaml": `
name: bad
steps:
  a: { run: echo, neds: [b] }
  b: { needs: [c], run: "echo \${{ inputs.x }}" }
  d: { if: "steps.a.outcom == 1", run: true }
`,
    "fixable.yaml":
      'name: fixable\ninputs: { who: { type: string } }\nsteps:\n  a:\n    run: echo "hello ${{ inputs.who }}"\n',
    "context.json":
      '{ "inputs": { "n": 2, "list": [1, 2], "name": "修复" }, "steps": { "a": { "outputs": { "x": null } } } }',
  });
});
afterAll(() => place.remove());

describe("flow", () => {
  it("without a command prints its help, which names every command and exit code, and exits 2", async () => {
    const { code, stdout, stderr } = await place.flow([]);
    for (const text of ["run", "validate", "graph", "eval", "schema", "Exit codes:", "130 interrupted"])
      expect(stderr).toContain(text);
    expect([code, stdout]).toEqual([2, ""]);
    expect(await place.flow(["--help"])).toMatchObject({ code: 0, stderr: "", stdout: stderr });
  });

  it("says its version", async () => {
    for (const flag of ["--version", "-V"])
      expect(await place.flow([flag])).toMatchObject({ code: 0, stdout: `${version}\n`, stderr: "" });
  });

  const usage: readonly (readonly [readonly string[], string])[] = [
    [["rnu"], "error: unknown command 'rnu'\n(Did you mean run?)"],
    [["run"], "error: missing required argument 'file'"],
    [["run", "good.yaml", "--dry-rn"], "(Did you mean --dry-run?)"],
    [["run", "good.yaml", "extra.yaml"], "too many arguments"],
    [["run", "good.yaml", "--parallel", "0"], "a whole number from 1 to 10000"],
    [["run", "good.yaml", "--parallel", "many"], "a whole number from 1 to 10000"],
    [["run", "absent.yaml"], "absent.yaml:1:1 error FLOW1001"],
    [["run", "."], ".:1:1 error FLOW1002"],
    [["validate"], "missing required argument 'files'"],
    [["graph", "good.yaml", "--format", "png"], "Allowed choices are text, mermaid, dot, json"],
    [["schema", "plan"], "Allowed choices are workflow, agent, event"],
    [["eval"], "missing required argument 'expression'"],
    [["eval", "1", "--context", "absent.json"], "--context: absent.json cannot be read: there is no such file"],
  ];
  it.each(usage)("refuses %j", async (args, text) => {
    const { code, stdout, stderr } = await place.flow(args);
    expect(stderr).toContain(text);
    expect([code, stdout, place.runs()]).toEqual([2, "", []]);
  });
});

describe("a bug of ours", () => {
  // What stands for a bug: the program's own files are broken under it.
  const broken = [
    "--import",
    `data:text/javascript,${encodeURIComponent("JSON.stringify = () => { throw new TypeError('boom') }")}`,
  ];

  it("is exit 70 and one line that tells how to get the stack", async () => {
    const { code, stdout, stderr } = await place.flow(["run", "good.yaml", "--dry-run"], { node: broken });
    expect(stderr).toBe("flow: this is a bug of flow: boom (--debug shows where)\n");
    expect([code, stdout]).toEqual([70, ""]);
  });

  it("shows the stack with --debug", async () => {
    const { code, stderr } = await place.flow(["run", "good.yaml", "--dry-run", "--debug"], { node: broken });
    expect(stderr).toMatch(/^flow: this is a bug of flow: boom\nTypeError: boom\n {4}at /);
    expect(code).toBe(70);
  });

  it("is the same when nobody waits for it", async () => {
    const later = "setTimeout(() => { throw new Error('late') }, 300)";
    place.write("slow.yaml", "name: slow\nsteps: { a: { run: sleep 3 } }\n");
    const { code, stderr } = await place.flow(["run", "slow.yaml", "-q"], {
      node: ["--import", `data:text/javascript,${later}`],
    });
    expect(stderr).toBe("flow: this is a bug of flow: late (--debug shows where)\n");
    expect(code).toBe(70);
  });
});

describe("flow validate", () => {
  it("says that a file is valid, and how many steps it has", async () => {
    expect(await place.flow(["validate", "good.yaml"])).toMatchObject({
      code: 0,
      stdout: "valid good.yaml (4 steps)\n",
      stderr: "",
    });
  });

  it("tells every problem of every file with its position, and exits 2", async () => {
    const { code, stdout } = await place.flow(["validate", "bad.yaml", "good.yaml", "absent.yaml"]);
    for (const text of [
      "bad.yaml:4:19 error",
      "did you mean `needs`?",
      "FLOW8002",
      "valid good.yaml",
      "absent.yaml:1:1 error FLOW1001",
    ])
      expect(stdout).toContain(text);
    expect(code).toBe(2);
  });

  it("tells them as one JSON document", async () => {
    const { code, stdout } = await place.flow(["validate", "bad.yaml", "--format", "json"]);
    const { schemaVersion, diagnostics, errors } = JSON.parse(stdout) as {
      schemaVersion: 1;
      diagnostics: { at: object }[];
      errors: number;
    };
    expect([code, schemaVersion, errors]).toEqual([2, 1, diagnostics.length]);
    expect(diagnostics[0]?.at).toMatchObject({ file: "bad.yaml", line: 4, column: 19 });
  });

  it("repairs with --fix what has one right rewriting", async () => {
    const { code, stdout } = await place.flow(["validate", "fixable.yaml", "--fix"]);
    expect(stdout).toBe("fixable.yaml: 1 problem fixed\nvalid fixable.yaml (1 step)\n");
    expect(code).toBe(0);
    const { stdout: said } = await place.flow(["run", "fixable.yaml", "-q", "--json", "-i", "who=$(touch HACKED)"]);
    expect(JSON.parse(said)).toMatchObject({ outcome: "success" });
    expect(place.log()).toContain("hello $(touch HACKED)");
    expect(() => place.read("HACKED")).toThrow();
  });
});

describe("flow graph", () => {
  it.each([
    ["text", /plan +run/],
    ["mermaid", /^flowchart |^graph /],
    ["dot", /^digraph /],
    ["json", /^\{/],
  ])("prints %s", async (format, pattern) => {
    const { code, stdout, stderr } = await place.flow(["graph", "good.yaml", "--format", format]);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(pattern);
    for (const step of ["plan", "build", "check", "ship"]) expect(stdout).toContain(step);
  });

  it("of a bad file is its problems on stderr and exit 2", async () => {
    const { code, stdout, stderr } = await place.flow(["graph", "bad.yaml"]);
    expect(stderr).toContain("bad.yaml:4:19 error");
    expect([code, stdout]).toEqual([2, ""]);
  });

  it("reads standard input", async () => {
    const { code, stdout } = await place.flow(["graph", "-"], { stdin: place.read("good.yaml") });
    expect(stdout).toContain("ship");
    expect(code).toBe(0);
  });
});

describe("flow eval", () => {
  it.each([
    [["1 + 1 == 2"], 2, ""],
    [["inputs.n == 2", "--context", "context.json"], 0, "true\n"],
    [["inputs.name", "--context", "context.json"], 0, "修复\n"],
    [["inputs.name", "--context", "context.json", "--json"], 0, '"修复"\n'],
    [["inputs.list", "--context", "context.json"], 0, "[1,2]\n"],
    [["format('{0}!', 'hi')"], 0, "hi!\n"],
  ] as const)("%j exits %i and prints %j", async (args, code, stdout) => {
    expect(await place.flow(["eval", ...args])).toMatchObject({ code, stdout });
  });

  it("shows where an expression is wrong", async () => {
    const { code, stdout, stderr } = await place.flow(["eval", "inputs.n == nope.x", "--context", "context.json"]);
    expect(stderr).toMatch(/^error: .*nope.*\n {2}inputs\.n == nope\.x\n {14}\^+\n/);
    expect([code, stdout]).toEqual([2, ""]);
  });

  it("puts the caret under the place behind wide characters too", async () => {
    const { stderr } = await place.flow(["eval", "'修' == nope.x"]);
    expect(stderr).toMatch(/\n {2}'修' == nope\.x\n {10}\^/);
  });

  it("prints an error as JSON, and exits 1 for one of the values", async () => {
    const { code, stdout } = await place.flow(["eval", "fromJSON('{')", "--json"]);
    expect(JSON.parse(stdout)).toMatchObject({ error: { offset: 0, message: expect.any(String) as string } });
    expect(code).toBe(1);
  });

  it("tells what an expression refers to", async () => {
    const { code, stdout } = await place.flow([
      "eval",
      "default(steps.a.outputs.x, inputs.n)",
      "--context",
      "context.json",
      "--refs",
    ]);
    expect(JSON.parse(stdout)).toMatchObject([
      { reference: "steps.a.outputs.x", guarded: true },
      { reference: "inputs.n" },
    ]);
    expect(code).toBe(0);
  });
});

describe("flow schema", () => {
  it.each(["agent", "event"])("prints the schema of a %s as it is published", async (name) => {
    const { code, stdout } = await place.flow(["schema", name]);
    expect(stdout).toBe(readFileSync(new URL(`schemas/${name}.schema.json`, root), "utf8"));
    expect(code).toBe(0);
  });

  it("prints the schema of a workflow with that of an agent inside, so that one file is enough", async () => {
    const { code, stdout } = await place.flow(["schema", "workflow"]);
    expect(code).toBe(0);
    expect(stdout).not.toContain("agent.schema.json");
    const check = new Ajv2020({ strict: false, validateFormats: false }).compile(JSON.parse(stdout));
    expect(check({ steps: { a: { agent: "x" } }, agents: { x: { tools: ["Read"] } } })).toBe(true);
    expect(check({ steps: { a: { agent: "x" } }, agents: { x: { tools: "Read" } } })).toBe(false);
    expect(check.errors?.[0]?.instancePath).toBe("/agents/x/tools");
  });
});
