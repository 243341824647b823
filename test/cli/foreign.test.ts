import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Place } from "./flow.ts";

let place: Place;
beforeEach(() => {
  place = new Place({
    "flow.yaml": "name: foreign\nsteps: { a: { agent: worker, prompt: go } }\n",
    "r.yaml":
      'agents: { worker: [{ calls: [{ name: Bash, args: { command: "echo one" } }, { name: Bash, args: { command: date } }] }, { text: done }] }\n',
  });
});
afterEach(() => place.remove());

async function verdicts(matter: string, ...args: string[]): Promise<string[]> {
  place.write(".claude/agents/worker.md", `---\nname: worker\ndescription: x\n${matter}\n---\nYou work.\n`);
  await place.flow(["run", "flow.yaml", "--script", "r.yaml", ...args]);
  return place.events().flatMap((event) => (event.type === "permission.judged" ? [event.decision] : []));
}

describe("what a Claude Code file says of permissions", () => {
  it("gives nothing that the run does not", async () => {
    expect(await verdicts("tools: Bash(echo *)")).toEqual(["ask", "deny"]);
    expect(await verdicts("tools: Bash\npermissionMode: bypassPermissions")).toEqual(["ask", "ask"]);
  });

  it("takes away what the run would give", async () => {
    expect(await verdicts("tools: Bash(echo *)", "--profile", "full")).toEqual(["allow", "deny"]);
    expect(await verdicts("disallowedTools: Bash(date)", "--profile", "full")).toEqual(["allow", "deny"]);
    expect(await verdicts("tools: Bash, Read\npermissionMode: plan", "--profile", "full")).toEqual(["deny", "deny"]);
  });
});

describe("agents that OpenCode's own configuration defines", () => {
  const config = `{
  // Written by hand.
  "$schema": "https://opencode.ai/config.json",
  "agent": {
    "reviewer": {
      "description": "Reviews. // no comment",
\t"prompt": "{file:./prompts/review.md}\\nBe brief.", /* of the project */
      "permission": { "bash": "deny" },
    },
    "broken": { "prompt": "{file:../outside.md}" },
  },
}
`;

  it("are run as they are, comments, tabs and prompts of files included", async () => {
    place.write("opencode.jsonc", config);
    place.write("prompts/review.md", "You review ${{ all }} of it.\n");
    place.write("flow.yaml", "steps: { a: { agent: reviewer, prompt: go } }\n");
    place.write("r.yaml", "agents: { reviewer: [{ text: reviewed }] }\n");
    expect((await place.flow(["run", "flow.yaml", "--script", "r.yaml"])).code).toBe(0);
    const first = place.events().find((event) => event.type === "message");
    expect(JSON.stringify(first)).toContain("You review ${{ all }} of it.\\nBe brief.");
    const { stdout } = await place.flow(["agents"]);
    expect(stdout).toMatch(/reviewer +opencode\.jsonc#reviewer +Reviews\. \/\/ no comment/);
    const explained = JSON.parse((await place.flow(["agents", "explain", "reviewer", "--json"])).stdout) as {
      readonly fields: readonly { readonly key: string; readonly line: number }[];
    };
    expect(explained.fields.map(({ key, line }) => `${line} ${key}`)).toEqual([
      "6 description",
      "7 prompt",
      "8 permission",
    ]);
  });

  it("read no prompt from outside of the project, and say at its place what is wrong", async () => {
    place.write("opencode.jsonc", config);
    place.write("flow.yaml", "steps: { a: { agent: broken, prompt: go } }\n");
    const { code, stdout } = await place.flow(["validate", "flow.yaml"]);
    expect([code, stdout]).toEqual([
      2,
      expect.stringContaining("opencode.jsonc:10:27 error FLOW1001: the file `../outside.md` of this prompt") as string,
    ]);
  });

  it("stand behind files, and a configuration that cannot be read is in the way of nothing else", async () => {
    place.write("opencode.json", '{ "agent": { "worker": { "description": "json" } } }\n');
    place.write(".opencode/agents/worker.md", "---\ndescription: markdown\n---\nYou work.\n");
    expect((await place.flow(["agents"])).stdout).toMatch(/worker +\.opencode\/agents\/worker\.md +markdown/);
    place.write("opencode.json", '{ "agent": { "other": }\n');
    expect((await place.flow(["validate", "flow.yaml"])).code).toBe(0);
    place.write("flow.yaml", "steps: { a: { agent: other, prompt: go } }\n");
    const { code, stdout } = await place.flow(["validate", "flow.yaml"]);
    expect([code, stdout]).toEqual([2, expect.stringContaining("opencode.json:1:") as string]);
  });
});

describe("a user's own agents", () => {
  it.each([
    [".claude/agents/helper.md", "---\nname: helper\ndescription: mine\n---\nYou help.\n"],
    [".config/opencode/agents/helper.md", "---\ndescription: mine\n---\nYou help.\n"],
    [".config/opencode/opencode.json", '{ "agent": { "helper": { "description": "mine" } } }'],
    [".gemini/agents/any.md", "---\nname: helper\ndescription: mine\n---\nYou help.\n"],
  ])("in ~/%s can be named, and the project's go before", async (file, text) => {
    const home = new Place({ [file]: text });
    place.write("flow.yaml", "steps: { a: { agent: helper, prompt: go } }\n");
    const env = { HOME: home.folder };
    const described = async (): Promise<string> => (await place.flow(["agents"], { env })).stdout;
    expect((await place.flow(["validate", "flow.yaml"], { env })).code).toBe(0);
    expect(await described()).toMatch(/helper +~\/\.\S+ +mine/);
    place.write("agents/helper.md", "---\nname: helper\ndescription: ours\n---\nYou help.\n");
    expect(await described()).toMatch(/helper +agents\/helper\.md +ours/);
    home.remove();
  });

  it("are none where HOME is relative or missing, and no name leaves their folder", async () => {
    place.write("home/.claude/agents/helper.md", "---\nname: helper\ndescription: mine\n---\nYou help.\n");
    place.write("home/.claude/notes.md", "---\nname: notes\ndescription: mine\n---\nSecret.\n");
    place.write("flow.yaml", "steps: { a: { agent: helper, prompt: go } }\n");
    for (const HOME of ["home", ""])
      expect((await place.flow(["validate", "flow.yaml"], { env: { HOME } })).code).toBe(2);
    const env = { HOME: `${place.folder}/home` };
    expect((await place.flow(["validate", "flow.yaml"], { env })).code).toBe(0);
    place.write("flow.yaml", "steps: { a: { agent: ../notes, prompt: go } }\n");
    expect((await place.flow(["validate", "flow.yaml"], { env })).code).toBe(2);
  });
});

describe("a server that a Claude Code file names and nobody has set up", () => {
  it.each(["tools: Bash(echo *), mcp__github__create_issue", "mcpServers: [github]"])(
    "is left out with a warning: %s",
    async (matter) => {
      place.write(".claude/agents/worker.md", `---\nname: worker\ndescription: x\n${matter}\n---\nYou work.\n`);
      const { code, stderr } = await place.flow(["run", "flow.yaml", "--script", "r.yaml", "--profile", "full"]);
      expect([code, stderr]).toEqual([0, expect.stringContaining("warning FLOW6012") as string]);
      expect(stderr).toContain("there is no MCP server `github`");
    },
  );
});
