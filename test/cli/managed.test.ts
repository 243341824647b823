import { chmodSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { check } from "../../src/flow.ts";
import { governed } from "../../src/flow/governed.ts";
import type { Limits } from "../../src/model/plan.ts";
import { builtInCatalog } from "../../src/providers/catalog.ts";
import { type Ended, Place, project } from "./flow.ts";

let place: Place;
let env: Record<string, string>;
beforeEach(() => {
  place = new Place({ "replies.yaml": "steps: { a: [{ text: done }] }\n" });
  env = { FLOW_MANAGED: "managed.yaml" };
});
afterEach(() => place.remove());

function managed(text: string): void {
  place.write("managed.yaml", text);
}

const run = (...args: readonly string[]): Promise<Ended> => place.flow(["run", "flow.yaml", ...args], { env });

describe("the models of a managed file", () => {
  const asking = (model: string): void =>
    place.write("flow.yaml", `name: m\nsteps:\n  a: { agent: { prompt: hi, model: ${model} } }\n`);

  it.each([
    ["openai/gpt-5-mini", "`openai/gpt-5-mini`"],
    ["[anthropic/claude-haiku-4-5, openai/gpt-5-mini]", "`openai/gpt-5-mini`"],
    ['{ id: small, base-url: "http://127.0.0.1:1/v1" }', "`http://127.0.0.1:1/v1/small`"],
    [
      '{ id: small, base-url: "https://models.example.org.evil.example/v1" }',
      "`https://models.example.org.evil.example/",
    ],
  ])("are the only ones: %s is told before anything runs, with the line that says so", async (model, named) => {
    managed('# ours\nmodels: ["anthropic/*", "https://models.example.org/v1/*"]\n');
    asking(model);
    for (const ended of [await run(), await run("--dry-run"), await place.flow(["validate", "flow.yaml"], { env })]) {
      const said = ended.stdout + ended.stderr;
      expect([ended.code, said]).toEqual([2, expect.stringContaining("flow.yaml:3:3 error FLOW8010") as string]);
      expect(said).toContain(`the model ${named}`);
      expect(said).toContain("managed.yaml:2 allows only `anthropic/*`, `https://models.example.org/v1/*`");
    }
    expect(place.runs()).toEqual([]);
  });

  it("let what is on the list be asked, and a script stand for any", async () => {
    managed('models: ["anthropic/*"]\n');
    asking("anthropic/claude-haiku-4-5");
    expect((await run()).stderr).toContain("ANTHROPIC_API_KEY");
    asking("openai/gpt-5-mini");
    expect((await run("--script", "replies.yaml")).code).toBe(0);
    asking("scripted/replies.yaml");
    expect((await run()).code).toBe(0);
  });

  it("are judged by their address where a repository gives a known name to a server of its own", async () => {
    managed('models: ["openai/*"]\n');
    asking("openai/gpt-5-mini");
    place.write("flow.config.yaml", 'providers: { openai: { base-url: "http://127.0.0.1:1/v1" } }\n');
    const { code, stderr } = await run();
    expect([code, stderr]).toEqual([2, expect.stringContaining("`http://127.0.0.1:1/v1/gpt-5-mini`") as string]);
  });

  it("are judged when they are asked, where an expression names them", async () => {
    managed('models: ["anthropic/*"]\n');
    place.write(
      "flow.yaml",
      'inputs: { model: { type: string } }\nsteps: { a: { agent: { prompt: hi }, model: "${{ inputs.model }}" } }\n',
    );
    const { code, stderr } = await run("--input", "model=openai/gpt-5-mini");
    expect([code, stderr]).toEqual([6, expect.stringContaining("managed.yaml:1 allows only `anthropic/*`") as string]);
  });

  it("hold for the agents that an agent may spawn", async () => {
    managed('models: ["anthropic/*"]\n');
    place.write("agents/other.yaml", "name: other\ninstructions: x\nmodel: openai/gpt-5-mini\n");
    place.write(
      "flow.yaml",
      "steps: { a: { agent: { prompt: hi, model: anthropic/claude-haiku-4-5, subagents: [other] } } }\n",
    );
    const { code, stderr } = await run();
    expect([code, stderr]).toEqual([2, expect.stringContaining("agent `other`: the model `openai/") as string]);
  });
});

describe("a managed file", () => {
  it("allows MCP servers by name", async () => {
    const server = JSON.stringify({
      command: process.execPath,
      args: [join(project, "test/mcp/nasty-server.mjs"), ""],
    });
    place.write("flow.yaml", `mcp: { docs: ${server} }\nsteps: { a: { tool: mcp__docs__echo, with: { text: hi } } }\n`);
    managed("mcp: [docs]\n");
    expect((await run()).code).toBe(0);
    managed("mcp: []\n");
    const { code, stderr } = await run();
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining(
        "the MCP server `docs` is not allowed on this machine: managed.yaml:1 allows none",
      ) as string,
    ]);
  });

  it("lowers the limits of a run, and raises none", async () => {
    place.write("flow.yaml", "limits: { tokens: 100000 }\nsteps: { a: { agent: { prompt: hi } } }\n");
    const script = ["--script", "replies.yaml"];
    managed("limits: { tokens: 1 }\n");
    expect((await run(...script)).code).toBe(4);
    place.write("flow.yaml", place.read("flow.yaml").replace("100000", "1"));
    managed("limits: { tokens: 100000 }\n");
    expect((await run(...script)).code).toBe(4);
    place.write("flow.yaml", "steps: { a: { run: sleep 5 } }\n");
    managed("limits: { duration: 200ms }\n");
    expect((await run()).code).toBe(4);
  });

  it("holds for a run that goes on as for one that begins", async () => {
    place.write("flow.yaml", "steps: { a: { agent: { prompt: hi, model: openai/gpt-5-mini } } }\n");
    place.write("bad.yaml", "steps: { a: [{ error: 400 }] }\n");
    await place.flow(["run", "flow.yaml", "--script", "bad.yaml"]);
    managed("limits: { tokens: 1 }\n");
    const again = await place.flow(["resume", "latest", "--script", "replies.yaml"], { env });
    expect([again.code, again.stderr]).toEqual([4, expect.stringContaining("limits.tokens") as string]);
  });

  it("puts every agent into a sandbox, or the run does not start", async () => {
    managed("sandbox: on\n");
    place.write("agents/worker.yaml", "name: worker\ninstructions: x\nsandbox: off\n");
    place.write("flow.yaml", "steps: { a: { agent: { prompt: hi, sandbox: off } } }\n");
    mkdirSync(join(place.folder, "bin"));
    for (const program of ["bash", "git"]) symlinkSync(`/usr/bin/${program}`, join(place.folder, "bin", program));
    env["PATH"] = join(place.folder, "bin");
    const { code, stderr } = await run("--script", "replies.yaml");
    expect([code, stderr]).toEqual([3, expect.stringContaining("managed.yaml:1 says `sandbox: on`") as string]);
    const { stdout } = await place.flow(["agents", "explain", "worker"], { env });
    expect(stdout).toMatch(/sandbox +on +managed managed\.yaml:1/);
  });

  it.each([
    ["modles: [x]\n", "managed.yaml:1:1 error FLOW2002: unknown key `modles`"],
    ["permissions: { alow: [Bash] }\n", "did you mean `allow`?"],
    ['permissions: { deny: ["Bash(rm"] }\n', "managed.yaml:1:23 error FLOW6008"],
    ["limits: { duration: soon }\n", "managed.yaml:1:21 error"],
    ["sandbox: off\n", "managed.yaml:1:10 error FLOW2004"],
    ["{}\n", "managed.yaml:1:1 error"],
    ["models: [\n", "FLOW1006"],
  ])("that cannot be understood stops every run: %s", async (text, words) => {
    managed(text);
    place.write("flow.yaml", "steps: { a: { run: echo hi } }\n");
    const { code, stderr } = await run();
    expect([code, stderr]).toEqual([3, expect.stringContaining(words) as string]);
    expect(place.runs()).toEqual([]);
  });

  it("that is missing, or a folder, stops every run", async () => {
    place.write("flow.yaml", "steps: { a: { run: echo hi } }\n");
    expect((await run()).code).toBe(3);
    mkdirSync(join(place.folder, "managed.yaml"));
    chmodSync(join(place.folder, "managed.yaml"), 0o755);
    const { code, stderr } = await run();
    expect([code, stderr]).toEqual([3, expect.stringContaining("the managed file cannot be read") as string]);
  });
});

describe("what an agent may spawn under a managed file", () => {
  const text = `
agents:
  quiet: { instructions: x }
  deep: { instructions: x, subagents: [quiet], limits: { depth: 4 } }
steps:
  a: { agent: quiet, prompt: hi }
  g: { steps: { b: { agent: deep, prompt: hi, limits: { depth: 5, tokens: 10 } } } }
`;

  it.each([
    [0, { quiet: 0, deep: 0, step: 0 }],
    [2, { quiet: undefined, deep: 2, step: 2 }],
    [5, { quiet: undefined, deep: 4, step: 5 }],
  ])("is at most %d levels deep, and never deeper than without one", async (depth, expected) => {
    const { plan } = await check({ file: "-", stdin: Buffer.from(text), cwd: place.folder });
    if (plan === undefined) throw new Error("the workflow is broken");
    const bounds = { rules: [], models: [], servers: [], limits: { depth, children: 3 } };
    const found = governed(plan, { managed: bounds, catalog: builtInCatalog, asksModels: true });
    if (!found.ok) throw new Error(found.error[0]?.message);
    const { agents, workflows, root, digest } = found.value;
    const limitsOf = (name: string): Limits | undefined =>
      Object.values(agents).find((agent) => agent.name === name)?.limits;
    const group = workflows[root]?.scope.steps[1]?.scope;
    const step = group && "inline" in group ? group.inline.steps[0]?.limits : undefined;
    expect({ quiet: limitsOf("quiet")?.depth, deep: limitsOf("deep")?.depth, step: step?.depth }).toEqual(expected);
    expect([limitsOf("quiet")?.children, step?.tokens, digest]).toEqual([3, 10, plan.digest]);
  });
});

describe("a rule of a managed file", () => {
  it("for what is nearly a tool stops the run: it would protect nothing", async () => {
    managed('permissions:\n  deny:\n    - "Bsh(rm *)"\n');
    place.write("flow.yaml", "steps: { a: { run: 'true' } }\n");
    const { code, stderr } = await run();
    expect([code, place.runs()]).toEqual([3, []]);
    expect(stderr).toContain("managed.yaml:3");
    expect(stderr).toContain("did you mean `Bash`?");
  });
});
