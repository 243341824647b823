import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Place, project } from "./flow.ts";

let place: Place;
let env: Record<string, string>;
beforeEach(() => {
  place = new Place({
    "flow.yaml": 'steps: { a: { tool: mcp__it__env, with: {} } }\noutputs: { at: "${{ steps.a.outputs.text }}" }\n',
  });
  env = { XDG_CONFIG_HOME: join(place.folder, "home"), PLAIN: "from outside" };
});
afterEach(() => place.remove());

const nasty = join(project, "test/mcp/nasty-server.mjs");
const named = (name: string, more: object = {}): string =>
  JSON.stringify({ command: process.execPath, args: [nasty, ""], env: { WHERE: name }, ...more });
const configured = (name: string, more: object = {}): string => `mcp: { it: ${named(name, more)} }\n`;

/** Which of the definitions was started. */
async function started(): Promise<string | undefined> {
  const { stdout, stderr } = await place.flow(["run", "flow.yaml"], { env });
  return /"?WHERE"?[=:]\s*"?([\w ]+)/.exec(stdout)?.[1] ?? stderr;
}

describe("an MCP server of a configuration", () => {
  it("is known to every workflow; nearer definitions go before, and a user's comes last", async () => {
    const { stderr } = await place.flow(["run", "flow.yaml"], { env });
    expect(stderr).toContain(
      "neither in this file's `mcp`, nor in a configuration's, nor in the project's `.mcp.json`",
    );
    place.write("home/flow/flow.config.yaml", configured("user"));
    expect(await started()).toBe("user");
    place.write(".mcp.json", JSON.stringify({ mcpServers: { it: JSON.parse(named("shared")) as object } }));
    expect(await started()).toBe("shared");
    place.write("flow.config.yaml", configured("project"));
    expect(await started()).toBe("project");
    env["FLOW_CONFIG_CONTENT"] = configured("content");
    expect(await started()).toBe("content");
    place.write("flow.yaml", `${configured("workflow")}${place.read("flow.yaml")}`);
    expect(await started()).toBe("workflow");
  });

  it("starts in the workspace, wherever flow is started", async () => {
    const script = JSON.stringify({ command: process.execPath, args: ["tools/server.mjs"] });
    place.write("flow.config.yaml", `mcp: { it: ${script} }\n`);
    place.write("tools/server.mjs", `process.argv[2] = ""; await import(${JSON.stringify(nasty)});\n`);
    place.write("sub/flow.yaml", place.read("flow.yaml"));
    expect((await place.flow(["run", "flow.yaml"], { env, cwd: "sub" })).code).toBe(0);
  });

  it("reads the secrets that a workflow declares, and no others", async () => {
    place.write("flow.config.yaml", configured("${{ secrets.DEPLOY }}"));
    env["DEPLOY"] = "canary 12345";
    const undeclared = await place.flow(["validate", "flow.yaml"], { env });
    expect([undeclared.code, undeclared.stdout]).toEqual([
      2,
      expect.stringContaining(
        "`it` of flow.config.yaml reads the secret `DEPLOY`, which is not declared here",
      ) as string,
    ]);
    expect(undeclared.stdout).toContain("declare it: `secrets: [DEPLOY]`");
    place.write("flow.yaml", `secrets: [DEPLOY]\n${place.read("flow.yaml")}`);
    const { code, stdout } = await place.flow(["run", "flow.yaml"], { env });
    expect([code, stdout + place.log()]).toEqual([0, expect.not.stringContaining("canary") as string]);
    expect(stdout).toContain("***");
  });

  it.each([
    ["mcp: { it: { command: x, wiht: y } }", "flow.config.yaml:1:26 error FLOW2002: unknown key `wiht`"],
    ["mcp: { it: { comand: x } }", "did you mean `command`?"],
    ["mcp: { a__b: { command: x } }", "flow.config.yaml:1:8 error FLOW3001: a server cannot be named"],
    ['mcp: { it: { command: "x y" } }', "FLOW2004: `command` is one program"],
    ['mcp: { it: { command: "${{ secrets.X }}" } }', "FLOW5004"],
    ['mcp: { it: { command: x, env: { A: "${{ inputs.x }}" } } }', "`inputs` has no value in `mcp` of a configuration"],
    ["mcp: { it: { url: http://x/mcp, headers: { A: ghp_abcdefghijklmnopqrstuvwxyz0123456789 } } }", "FLOW8004"],
  ])("is checked as one of a workflow: %s", async (text, words) => {
    place.write("flow.config.yaml", `${text}\n`);
    const { code, stderr } = await place.flow(["run", "flow.yaml"], { env });
    expect([code, stderr]).toEqual([2, expect.stringContaining(words) as string]);
  });

  it("is listed, pinned and looked at without a workflow", async () => {
    place.write("flow.config.yaml", configured("${{ secrets.DEPLOY }}"));
    const missing = await place.flow(["mcp", "list"], { env });
    expect([missing.code, missing.stdout]).toEqual([
      3,
      "it (flow.config.yaml): cannot be used: it reads the secret DEPLOY, which is not set\n",
    ]);
    env["DEPLOY"] = "12345678";
    const listed = await place.flow(["mcp", "list"], { env });
    expect(listed.stdout).toMatch(/^it \(flow\.config\.yaml\): \d+ tools, not pinned/);
    expect((await place.flow(["mcp", "lock"], { env })).code).toBe(0);
    expect(place.read("flow.lock")).toContain('"flow.config.yaml#it"');
    expect((await place.flow(["doctor"], { env })).stdout).toMatch(/^mcp it +\d+ tools$/m);
    place.write("agents/w.md", "---\nname: w\ndescription: x\nmcp: [it]\n---\nYou work.\n");
    const { stdout } = await place.flow(["agents", "explain", "w"], { env });
    expect(stdout).toMatch(/MCP servers, and where they are defined\n +it +flow\.config\.yaml/);
  });
});
