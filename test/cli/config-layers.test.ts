import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Json, JsonObject } from "../../src/model/json.ts";
import { Place } from "./flow.ts";

let place: Place;
let env: Record<string, string>;
beforeEach(() => {
  place = new Place({
    "flow.yaml": "name: layered\nsteps: { a: { agent: worker, prompt: go } }\n",
    "agents/worker.yaml": "name: worker\ninstructions: You work.\ntools: [Bash]\n",
    "r.yaml":
      'agents: { worker: [{ calls: [{ name: Bash, args: { command: "date > made.txt" } }] }, { text: done }] }\n',
    "other.yaml": "agents: { worker: [{ text: from the other script }] }\n",
  });
  env = { XDG_CONFIG_HOME: join(place.folder, "home") };
});
afterEach(() => place.remove());

const user = "home/flow/flow.config.yaml";

async function explain(): Promise<{ readonly effective: JsonObject[]; readonly rules: JsonObject[] }> {
  const { stdout } = await place.flow(["agents", "explain", "worker", "--json"], { env });
  return JSON.parse(stdout) as { effective: JsonObject[]; rules: JsonObject[] };
}

async function value(key: string): Promise<[Json | undefined, Json | undefined, Json | undefined]> {
  const found = (await explain()).effective.find((it) => it["key"] === key);
  return [found?.["value"], found?.["layer"], found?.["place"]];
}

describe("the configuration", () => {
  it("goes from the user over the project and FLOW_CONFIG to FLOW_CONFIG_CONTENT, and the agent's own word before all", async () => {
    place.write(user, "model: openai/one\n");
    expect(await value("model")).toEqual([
      "openai/one",
      "user",
      `${join(place.folder, user).replace(`${place.folder}/`, "")}:1`,
    ]);
    place.write("flow.config.yaml", "sandbox: off\nmodel: openai/two\n");
    expect(await value("model")).toEqual(["openai/two", "project", "flow.config.yaml:2"]);
    place.write("mine.yaml", "model: openai/three\n");
    env["FLOW_CONFIG"] = "mine.yaml";
    expect(await value("model")).toEqual(["openai/three", "config", "mine.yaml:1"]);
    env["FLOW_CONFIG_CONTENT"] = "model: openai/four";
    expect(await value("model")).toEqual(["openai/four", "config", "FLOW_CONFIG_CONTENT:1"]);
    expect(await value("sandbox")).toEqual(["off", "project", "flow.config.yaml:1"]);
    place.write("agents/worker.yaml", `${place.read("agents/worker.yaml")}model: openai/five\n`);
    expect(await value("model")).toEqual(["openai/five", "agent", "agents/worker.yaml:4"]);
    expect(await value("effort")).toEqual(["the provider's", "default", undefined]);
  });

  it("tells limits with who sets them, those of sub-agents too", async () => {
    expect(await value("limits.turns")).toEqual([50, "default", undefined]);
    expect(await value("limits.depth")).toEqual([1, "default", undefined]);
    place.write("flow.config.yaml", "limits: { turns: 2, cost: 5 }\n");
    expect(await value("limits.turns")).toEqual([2, "project", "flow.config.yaml:1"]);
    expect(await value("limits.cost")).toEqual([5, "project", "flow.config.yaml:1"]);
    const more = "subagents: [explore]\nlimits: { turns: 3, depth: 2, children: 4 }\n";
    place.write("agents/worker.yaml", `${place.read("agents/worker.yaml")}${more}`);
    for (const [key, set] of [
      ["limits.turns", 3],
      ["limits.depth", 2],
      ["limits.children", 4],
    ] as const)
      expect(await value(key)).toEqual([set, "agent", "agents/worker.yaml:5"]);
  });

  it("names the model of a workflow that names none", async () => {
    place.write("flow.config.yaml", "model: scripted/other.yaml\n");
    const { code, stdout } = await place.flow(["run", "flow.yaml", "--json"], { env });
    expect([code, place.log().includes("from the other script"), stdout.length > 0]).toEqual([0, true, true]);
  });

  it("gives rights that a workflow can take away", async () => {
    const run = ["run", "flow.yaml", "--script", "r.yaml"];
    expect((await place.flow(run, { env })).code).toBe(6);
    place.write(user, "permissions: { Bash: allow, Edit: allow }\n");
    expect((await place.flow(run, { env })).code).toBe(0);
    expect((await explain()).rules.map(({ rule, layer }) => [rule, layer])).toEqual([
      ["Bash", "user"],
      ["Edit", "user"],
    ]);
    place.write("flow.yaml", `permissions: { deny: [Bash] }\n${place.read("flow.yaml")}`);
    await place.flow(run, { env });
    expect(place.log()).not.toContain('"type":"tool.started"');
  });

  it("chooses the profile, unless the command line does", async () => {
    const run = ["run", "flow.yaml", "--script", "r.yaml"];
    place.write("flow.config.yaml", "profile: full\n");
    expect((await place.flow(run, { env })).code).toBe(0);
    await place.flow([...run, "--profile", "read"], { env });
    expect(place.log()).not.toContain('"type":"tool.started"');
  });

  it("sets limits where the workflow sets none of the kind", async () => {
    place.write("flow.config.yaml", "limits: { tokens: 1 }\n");
    const run = ["run", "flow.yaml", "--script", "other.yaml"];
    expect((await place.flow(run, { env })).code).toBe(4);
    place.write("flow.yaml", `limits: { tokens: 100000 }\n${place.read("flow.yaml")}`);
    expect((await place.flow(run, { env })).code).toBe(0);
  });

  it("takes agents out of use and says where", async () => {
    place.write("flow.config.yaml", "model: scripted/other.yaml\nagents:\n  disable: [worker]\n");
    const { code, stdout } = await place.flow(["validate", "flow.yaml"], { env });
    expect([code, stdout]).toEqual([
      2,
      expect.stringContaining("agent `worker` is disabled by the configuration") as string,
    ]);
    expect(stdout).toContain("flow.config.yaml:3:13");
  });

  it("gives words of other programs another model", async () => {
    place.write(".claude/agents/helper.md", "---\nname: helper\ndescription: x\nmodel: fable\n---\nYou help.\n");
    place.write("flow.config.yaml", "model-aliases: { fable: scripted/other.yaml }\n");
    const { stdout } = await place.flow(["agents", "explain", "helper", "--json"], { env });
    const { effective, fields, warnings } = JSON.parse(stdout) as {
      effective: Json[];
      fields: Json[];
      warnings: Json[];
    };
    expect(effective[0]).toMatchObject({
      key: "model",
      value: "scripted/other.yaml",
      place: ".claude/agents/helper.md:4",
    });
    expect(fields[2]).toMatchObject({
      key: "model",
      fate: "mapped",
      to: "model",
      note: "scripted/other.yaml",
      line: 4,
    });
    expect(warnings).toEqual([]);
  });

  it.each([
    ["modle: x\n", "flow.config.yaml:1:1 error FLOW2002: unknown key `modle`"],
    ["profile: everything\n", "flow.config.yaml:1:10 error FLOW2004"],
    ["limits: { turns: many }\n", "flow.config.yaml:1:18 error FLOW2001"],
    ['permissions: { deny: ["Bash(rm"] }\n', "flow.config.yaml:1:23 error FLOW6008"],
    ["- a\n", "flow.config.yaml:1:1 error FLOW2005"],
  ])("that is wrong stops everything at its place: %s", async (text, message) => {
    place.write("flow.config.yaml", text);
    const { code, stderr } = await place.flow(["run", "flow.yaml", "--script", "r.yaml"], { env });
    expect([code, stderr]).toEqual([2, expect.stringContaining(message) as string]);
    expect(place.runs()).toEqual([]);
  });
});

describe("flow agents", () => {
  it("explains an agent nobody has without a place in a file that nobody wrote", async () => {
    const { code, stderr } = await place.flow(["agents", "explain", "workr"], { env });
    expect([code, stderr]).toEqual([2, 'error: there is no agent "workr" here; did you mean `worker`?\n']);
  });

  it("explains an agent that reads secrets, and one that only others may use", async () => {
    place.write(
      "agents/worker.yaml",
      'name: worker\nmode: subagent\ninstructions: x\nmcp: { it: { command: x, env: { T: "${{ secrets.TOKEN }}" } } }\n',
    );
    const { code, stdout } = await place.flow(["agents", "explain", "worker"], { env });
    expect([code, stdout]).toEqual([0, expect.stringMatching(/defined\n +it +agents\/worker\.yaml/) as string]);
    place.write("flow.yaml", "secrets: [TOKEN]\nsteps: { a: { agent: worker, prompt: go } }\n");
    const refused = await place.flow(["validate", "flow.yaml"], { env });
    expect([refused.code, refused.stdout]).toEqual([2, expect.stringContaining("`mode: subagent`") as string]);
    expect(refused.stdout).not.toContain("FLOW8005");
  });

  it("lists every agent with its file, without those that are hidden or disabled", async () => {
    place.write("agents/ghost.yaml", "name: ghost\nhidden: true\ninstructions: x\n");
    place.write("agents/old.yaml", "name: old\ndisable: true\ninstructions: x\n");
    place.write(".opencode/agent/team/lead.md", "---\ndescription: Leads.\n---\nYou lead.\n");
    place.write(".gemini/agents/seer.md", "---\nname: seer\ndescription: Sees.\n---\nYou see.\n");
    const { code, stdout } = await place.flow(["agents"], { env });
    expect([code, stdout.split("\n").map((line) => line.split(/\s+/)[0])]).toEqual([
      0,
      ["worker", "seer", "team/lead", "explore", "general", "plan", "review", "verify", ""],
    ]);
    const all = await place.flow(["agents", "list", "--all", "--json"], { env });
    const { agents } = JSON.parse(all.stdout) as { agents: JsonObject[] };
    expect(agents.find(({ name }) => name === "compact")).toMatchObject({ file: "built-in", hidden: true });
    expect(
      agents
        .filter(({ file }) => file !== "built-in")
        .map(({ name, dialect, hidden, disabled }) => [name, dialect, hidden, disabled]),
    ).toEqual([
      ["ghost", "flow", true, false],
      ["old", "flow", false, true],
      ["worker", "flow", false, false],
      ["seer", "gemini", false, false],
      ["team/lead", "opencode", false, false],
    ]);
  });

  it("explains what an agent comes to, for people", async () => {
    place.write(
      ".claude/agents/helper.md",
      "---\nname: helper\ndescription: Helps.\ntools: Read, WebSearch\ncolor: red\n---\nYou help.\n",
    );
    const { code, stdout, stderr } = await place.flow(["agents", "explain", "helper"], { env });
    expect(code).toBe(0);
    expect(stdout).toMatch(/4 {2}tools +mapped +1 of 2 left out/);
    expect(stdout).toMatch(/5 {2}color +ignored/);
    expect(stdout).toMatch(/Read {2}allow/);
    expect(stderr + stdout).toContain("FLOW6020");
  });

  it("knows no agent of that name", async () => {
    const { code, stderr, stdout } = await place.flow(["agents", "explain", "warker"], { env });
    expect([code, stderr + stdout]).toEqual([2, expect.stringContaining("did you mean `worker`?") as string]);
  });
});
