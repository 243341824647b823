import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Place } from "./flow.ts";

const typed = `
name: typed
inputs:
  text: { type: string }
  count: { type: integer, default: 3 }
  ratio: { type: number, default: 0.5 }
  deep: { type: boolean, default: false }
  list: { type: array, items: { type: string }, default: [] }
  tag: { type: string, pattern: '^v\\d+$', default: v1 }
  mail: { type: string, format: email, default: a@example.org }
steps:
  show:
    run: echo ran >> ran.txt
outputs:
  given: \${{ inputs }}
`;

const hostile = `$(touch HACKED); "\`touch HACKED\`" \\ ' \${{ 1 }} %s é修🎉`;

let place: Place;
beforeAll(() => {
  place = new Place({
    "typed.yaml": typed,
    "none.yaml": "name: none\nsteps: { a: { run: [echo, hi] } }\noutputs: { a: '${{ steps.a.outputs.stdout }}' }\n",
    "echo.yaml": `
name: echo
inputs: { text: { type: string } }
steps:
  show:
    run: printf %s "$TEXT"
    env: { TEXT: "\${{ inputs.text }}" }
outputs: { text: "\${{ steps.show.outputs.stdout }}" }
`,
    "all.json": '{ "text": "from file", "count": 7, "list": ["a", "b"] }',
    "wrong.json": '{ "text": 5, "lst": [] }',
    "list.json": "[1]",
    "broken.json": "{ text: 1 }",
  });
});
afterAll(() => place.remove());

interface Given {
  readonly outputs: { readonly given: Readonly<Record<string, unknown>> };
}

async function given(...args: string[]): Promise<Readonly<Record<string, unknown>>> {
  const { code, stdout, stderr } = await place.flow(["run", "typed.yaml", "--json", "-q", ...args]);
  expect(stderr).toBe("");
  expect(code).toBe(0);
  return (JSON.parse(stdout) as Given).outputs.given;
}

describe("inputs of flow run", () => {
  it("take their declared types from the command line", async () => {
    const args = ["text=5", "count=-2", "ratio=1e3", "deep=true", 'list=["x"]', "tag=v22", "mail=b@example.org"];
    expect(await given(...args.flatMap((arg) => ["--input", arg]))).toEqual({
      text: "5",
      count: -2,
      ratio: 1000,
      deep: true,
      list: ["x"],
      tag: "v22",
      mail: "b@example.org",
    });
  });

  it("keep everything after the first = and an empty text", async () => {
    expect(await given("-i", "text=a=b=c")).toMatchObject({ text: "a=b=c" });
    expect(await given("-i", "text=")).toMatchObject({ text: "" });
  });

  it("come from a file, and --input goes before it", async () => {
    expect(await given("--inputs", "all.json", "-i", "count=1")).toMatchObject({
      text: "from file",
      count: 1,
      list: ["a", "b"],
      ratio: 0.5,
    });
  });

  it("arrive byte for byte, whatever they hold", async () => {
    const { code, stdout } = await place.flow(["run", "echo.yaml", "--json", "-q", "-i", `text=${hostile}`]);
    expect(code).toBe(0);
    expect((JSON.parse(stdout) as { outputs: unknown }).outputs).toEqual({ text: hostile });
    expect(() => place.read("HACKED")).toThrow();
  });

  const wrong: readonly { readonly args: readonly string[]; readonly says: readonly string[] }[] = [
    { args: [], says: ["typed.yaml:4:", "FLOW7001", "input `text` is required", "--input text=…"] },
    {
      args: ["-i", "text=a", "-i", "cuont=1"],
      says: ["typed.yaml:3:1 ", "FLOW7002", '"cuont"', "did you mean `count`?"],
    },
    { args: ["-i", "text=a", "-i", "count=1.5"], says: ["typed.yaml:5:", "FLOW7003", "`count`", "whole number"] },
    { args: ["-i", "text=a", "-i", "count=many"], says: ["FLOW7003", "`count`", '"many"'] },
    { args: ["-i", "text=a", "-i", "deep=yes"], says: ["FLOW7003", "`deep` must be `true` or `false`"] },
    { args: ["-i", "text=a", "-i", "list=x"], says: ["FLOW7003", "`list` must be a JSON array"] },
    { args: ["-i", "text=a", "-i", 'list=["a",1]'], says: ["FLOW7003", "`list` at `1`"] },
    { args: ["-i", "text=a", "-i", "tag=x"], says: ["FLOW7003", "`tag`", "v\\d+"] },
    { args: ["-i", "text=a", "-i", "mail=x"], says: ["FLOW7003", "`mail`", "email"] },
    { args: ["-i", "text=a", "-i", "text=b"], says: ["FLOW7003", "`text` was given twice"] },
    { args: ["--inputs", "wrong.json"], says: ["`text`", '"lst"', "did you mean `list`?", "2 errors"] },
    { args: ["-i", "text"], says: ["write it as name=value"] },
    { args: ["-i", "=x"], says: ["write it as name=value"] },
    { args: ["--inputs", "absent.json"], says: ["--inputs: absent.json cannot be read: there is no such file"] },
    { args: ["--inputs", "list.json"], says: ["--inputs: list.json does not hold a JSON object"] },
    { args: ["--inputs", "broken.json"], says: ["--inputs: broken.json is not JSON"] },
  ];
  it.each(wrong)("are refused with a reason before anything runs: $args", async ({ args, says }) => {
    const fresh = new Place(Object.fromEntries(files().map((file) => [file, place.read(file)])));
    const { code, stdout, stderr } = await fresh.flow(["run", "typed.yaml", ...args]);
    expect(stdout).toBe("");
    for (const text of says) expect(stderr).toContain(text);
    expect(code).toBe(2);
    expect(fresh.runs()).toEqual([]);
    expect(() => fresh.read("ran.txt")).toThrow();
    fresh.remove();
  });

  it("are all told at once", async () => {
    const { code, stderr } = await place.flow(["run", "typed.yaml", "-i", "count=x", "-i", "nope=1"]);
    expect(code).toBe(2);
    for (const text of ["`text` is required", "`count`", '"nope"', "3 errors"]) expect(stderr).toContain(text);
  });

  it("are refused as one JSON document with --json", async () => {
    const { code, stdout, stderr } = await place.flow(["run", "typed.yaml", "--json"]);
    expect(code).toBe(2);
    expect(stderr).toBe("");
    const diagnostic = { code: "FLOW7001", severity: "error" };
    expect(JSON.parse(stdout)).toMatchObject({
      schemaVersion: 1,
      outcome: "invalid",
      exitCode: 2,
      diagnostics: [diagnostic],
    });
  });
});

function files(): string[] {
  return ["typed.yaml", "all.json", "wrong.json", "list.json", "broken.json"];
}

describe("a workflow on standard input", () => {
  it("runs in the working directory, where its agents and scripts are found too", async () => {
    const here = new Place({
      "sub/agents/echo.md": "---\nname: echo\ntools: []\nprompt: Say it.\n---\nYou echo.\n",
      "sub/replies.yaml": "agents: { echo: [{ text: from the script }] }\n",
    });
    const stdin = `
name: piped
model: scripted/replies.yaml
steps:
  where: { run: pwd }
  say: { agent: echo }
outputs:
  where: \${{ steps.where.outputs.stdout }}
  said: \${{ steps.say.outputs.text }}
`;
    const { code, stdout, stderr } = await here.flow(["run", "-"], { stdin, cwd: "sub" });
    expect(stderr).not.toContain("graph -");
    expect(stdout).toBe(`where: ${here.folder}/sub\nsaid: from the script\n`);
    expect(code).toBe(0);
    expect(here.events()[0]).toMatchObject({ type: "run.started", workflow: "-" });
    here.remove();
  });

  it("is refused with its position", async () => {
    const { code, stderr } = await place.flow(["run", "-"], { stdin: "name: x\nstepz: {}\n" });
    expect(stderr).toContain("-:2:1 error");
    expect(stderr).toContain("steps");
    expect(code).toBe(2);
  });

  it("may be empty, which is an error and no wait", async () => {
    const { code, stderr } = await place.flow(["run", "-"]);
    expect(stderr).toContain("-:1:1 error");
    expect(code).toBe(2);
  });
});
