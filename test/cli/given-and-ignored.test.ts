import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Place } from "./flow.ts";

let place: Place;
beforeEach(() => {
  place = new Place({
    "flow.yaml": `steps:
  r: { repeat: { until: 'iteration > 1', max: 3 }, approve: Go? }
  f: { foreach: [a, b], approve: Go? }
  g: { approve: Go?, form: { type: object, properties: { n: { type: number } } } }
`,
    "plain.yaml": 'steps: { a: { run: ["true"] } }\n',
    "1.json": "{}",
    "a.yaml": "agents: { x: [{ text: hi }] }\n",
    "b.yaml": "agents: { x: [{ text: hi }] }\n",
  });
});
afterEach(() => place.remove());

describe("what would be accepted and ignored is refused", () => {
  it.each([
    [["plain.yaml", "--inputs", "1.json", "--inputs", "1.json"], "is given twice"],
    [["plain.yaml", "--script", "a.yaml", "--script", "b.yaml"], "is given twice"],
    [["plain.yaml", "--script", "nofile.yaml"], "there is no file nofile.yaml"],
    [["plain.yaml", "--dry-run", "--script", "nofile.yaml"], "there is no file nofile.yaml"],
    [["plain.yaml", "--script", "a.yaml", "--replay", "b"], "exclude each other"],
    [["plain.yaml", "--replay", "nofile.jsonl"], "there is no log nofile.jsonl"],
    [["flow.yaml", "--approve", "g", "--form", "n=1", "--form", "n=2"], "`n` of `g` is given twice"],
    [["flow.yaml", "--approve", "r#77"], "there is never a `r#77`"],
    [["flow.yaml", "--approve", "f[2]"], "there is never a `f[2]`: the list has 2 items"],
  ])("%j: %s", async (args, message) => {
    const { code, stderr } = await place.flow(["run", ...args]);
    expect(stderr).toContain(message);
    expect(code).toBe(2);
  });

  it("a configuration that is not there, or speaks of scripts", async () => {
    const missing = await place.flow(["run", "plain.yaml"], { env: { FLOW_CONFIG: "nofile" } });
    expect([missing.code, missing.stderr]).toEqual([
      2,
      expect.stringContaining("the configuration cannot be read: there is no such file"),
    ]);
    place.write(
      "flow.config.yaml",
      "providers:\n  scripted: { base-url: http://127.0.0.1:1/v1 }\n  own: { base-url: 'http://u:geheim@127.0.0.1:1' }\nmodels:\n  scripted/a.yaml: { window: 10 }\n",
    );
    const { code, stderr } = await place.flow(["run", "plain.yaml"]);
    for (const at of ["2:3", "3:20", "5:3"]) expect(stderr).toContain(`flow.config.yaml:${at}`);
    expect(code).toBe(2);
  });
});

describe("the model's address", () => {
  it("holds no password, which is not repeated in the message", async () => {
    place.write(
      "m.yaml",
      'model: { id: m, base-url: "http://u:geheim@127.0.0.1:1" }\nsteps: { a: { agent: { prompt: hi } } }\n',
    );
    const { code, stderr } = await place.flow(["run", "m.yaml"]);
    expect(stderr).toContain("holds a user or a password");
    expect(stderr).not.toContain("geheim");
    expect(code).toBe(2);
  });
});

describe("a script's own words about the model", () => {
  it("make more input than its window an overflow", async () => {
    place.write("w.yaml", "steps: { a: { agent: { prompt: hi, model: scripted/s.yaml } } }\n");
    place.write("s.yaml", "window: 400\nsteps: { a: [{ text: hello, usage: { input: 500, output: 1 } }] }\n");
    const { code, stderr } = await place.flow(["run", "w.yaml"]);
    expect(stderr).toContain("longer than the model's window of 400 tokens");
    expect(code).toBe(1);
  });

  it("and a first call that nobody can pay is no turn, and nothing is spent", async () => {
    place.write(
      "w.yaml",
      "limits: { cost: 0.0001 }\nsteps: { a: { agent: { prompt: hi, model: scripted/s.yaml } } }\n",
    );
    place.write("s.yaml", "price: { input: 3, output: 15 }\nsteps: { a: [{ text: hello }] }\n");
    const { code, stderr } = await place.flow(["run", "w.yaml"]);
    expect(stderr).toContain("budget after 0 turns");
    expect(stderr).toContain("spent $0.00,");
    expect(code).toBe(4);
  });
});

describe("an agent's file that is a pipe", () => {
  it("is named for what it is", async () => {
    place.write("agents/x.md", "---\n---\nhi");
    execFileSync("mkfifo", [join(place.folder, "agents", "z.md")]);
    place.write("z.yaml", "steps: { a: { agent: z, prompt: hi } }\n");
    const { code, stderr } = await place.flow(["run", "z.yaml"]);
    expect(stderr).toContain("agents/z.md cannot be read: it is a pipe, socket or device");
    expect(stderr).not.toContain("there is no agent");
    expect(code).toBe(2);
  });
});

describe("an undo that fails", () => {
  it("is named at the end and in --json", async () => {
    place.write(
      "u.yaml",
      'steps:\n  a: { run: ["true"], undo: { run: ["false"] } }\n  b: { needs: [a], run: ["false"] }\n',
    );
    expect((await place.flow(["run", "u.yaml"])).stderr).toMatch(/undo +of a failed/);
    const { stdout } = await place.flow(["run", "u.yaml", "--json"]);
    expect(JSON.parse(stdout)).toMatchObject({ notUndone: [{ step: "a", kind: "exit" }] });
  });
});

describe("the kept code of the command", () => {
  it("never lies in a folder that is relative to the project", async () => {
    const base = { NODE_COMPILE_CACHE: "", NODE_DISABLE_COMPILE_CACHE: "" };
    await place.flow(["validate", "plain.yaml"], { env: { ...base, HOME: "relative", XDG_CACHE_HOME: "" } });
    await place.flow(["validate", "plain.yaml"], { env: { ...base, HOME: place.folder, XDG_CACHE_HOME: "rel" } });
    expect([existsSync(join(place.folder, "relative")), existsSync(join(place.folder, "rel"))]).toEqual([false, false]);
  });
});

describe("a folder whose name is not UTF-8", () => {
  it("is said, where the file is there", async () => {
    const { stderr } = await place.shell(
      "mkdir $'b\\xff' && cp plain.yaml $'b\\xff/' && flow run $'b\\xff/plain.yaml'",
    );
    expect(stderr).toContain("not UTF-8");
  });
});
