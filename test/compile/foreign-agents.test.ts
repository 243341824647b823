import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import type { Compilation } from "../../src/flow.ts";
import type { Agent } from "../../src/model/plan.ts";
import { checkFiles, textAt } from "./checking.ts";

const folders = { claude: ".claude/agents", opencode: ".opencode/agents", gemini: ".gemini/agents" } as const;
type Dialect = keyof typeof folders;

async function read(dialect: Dialect, matter: string, body = "You work.\n"): Promise<Compilation> {
  return checkFiles({
    "main.yaml": "name: x\nmodel: scripted/r.yaml\nsteps: { a: { agent: it, prompt: hi } }\n",
    [`${folders[dialect]}/it.md`]: `---\n${matter}\n---\n${body}`,
  });
}

function agentOf({ plan, diagnostics }: Compilation): Agent {
  const [agent] = Object.values(plan?.agents ?? {});
  if (!agent) throw new Error(diagnostics.map(({ message }) => message).join("\n"));
  return agent;
}

function told({ diagnostics, sources }: Compilation): string[] {
  return diagnostics.map(({ code, at }) => `${code} ${textAt(sources.get(at.file) ?? "", at)}`);
}

type Variant = readonly [what: string, dialect: Dialect, matter: string, agent: object, problems?: readonly string[]];

const named = "name: it\ndescription: Does it.\n";
const narrow = (json: object): object => ({ permissions: { narrows: true, json } });

const variants: readonly Variant[] = [
  ["name and description", "claude", named, { name: "it", description: "Does it.", instructions: "You work." }],
  ["a description in quotes", "claude", 'name: it\ndescription: "Use: always"', { description: "Use: always" }],
  ["a description over lines", "claude", "name: it\ndescription: |\n  One.\n  Two.", { description: "One.\nTwo.\n" }],
  ["a folded description", "claude", "name: it\ndescription: >-\n  One\n  two.", { description: "One two." }],
  [
    "a `: ` in the description",
    "claude",
    "name: it\ndescription: Use: always",
    { description: "Use: always" },
    ["FLOW1018 Use: always"],
  ],
  ["tools as a text", "claude", `${named}tools: Read, Grep, Bash`, { tools: ["Read", "Grep", "Bash"] }],
  ["tools as a list", "claude", `${named}tools: [Read, Glob]`, { tools: ["Read", "Glob"] }],
  ["tools one a line", "claude", `${named}tools:\n  - Read\n  - Edit`, { tools: ["Read", "Edit"] }],
  ["a tool twice", "claude", `${named}tools: Read, Read`, { tools: ["Read"] }],
  ["tools in small letters", "claude", `${named}tools: read, web_fetch`, { tools: ["Read", "WebFetch"] }],
  ["a trailing comma", "claude", `${named}tools: "Read, "`, { tools: ["Read"] }],
  ["every tool by a star", "claude", `${named}tools: "*"`, { tools: undefined }],
  ["every tool in words", "claude", `${named}tools: All tools`, { tools: undefined }],
  ["tools without a value", "claude", `${named}tools:`, { tools: undefined }, ["FLOW6005 tools"]],
  ["a tool that is not here", "claude", `${named}tools: Read, WebSearch`, { tools: ["Read"] }, ["FLOW6020 WebSearch"]],
  ["a tool of former days", "claude", `${named}tools: MultiEdit, Read`, { tools: ["Edit", "Read"] }],
  ["a tool of a server", "claude", `${named}tools: Read`, { tools: ["Read"] }],
  [
    "commands in parentheses",
    "claude",
    `${named}tools: Read, Bash(git status:*)`,
    narrow({ Bash: { "*": "deny", "git status:*": "allow" } }),
  ],
  [
    "two commands",
    "claude",
    `${named}tools: Bash(git *), Bash(npm test)`,
    narrow({ Bash: { "*": "deny", "git *": "allow", "npm test": "allow" } }),
  ],
  [
    "a command and all commands",
    "claude",
    `${named}tools: Bash(git *), Bash`,
    { tools: ["Bash"], permissions: undefined },
  ],
  ["denied tools as a text", "claude", `${named}disallowedTools: Write, Edit`, narrow({ deny: ["Write", "Edit"] })],
  ["denied commands", "claude", `${named}disallowedTools: [Bash(rm *)]`, narrow({ deny: ["Bash(rm *)"] })],
  ["a denied server", "claude", `${named}disallowedTools: mcp__github`, narrow({ deny: ["mcp__github"] })],
  [
    "a denied tool that is not here",
    "claude",
    `${named}disallowedTools: NotebookEdit`,
    { permissions: undefined },
    ["FLOW6005 NotebookEdit"],
  ],
  [
    "an alias of a model",
    "claude",
    `${named}model: sonnet`,
    { models: [{ type: "data", json: "anthropic/claude-sonnet-5" }] },
  ],
  [
    "an alias with a window",
    "claude",
    `${named}model: sonnet[1m]`,
    { models: [{ type: "data", json: "anthropic/claude-sonnet-5" }] },
  ],
  [
    "an id of a model",
    "claude",
    `${named}model: claude-opus-4-8`,
    { models: [{ type: "data", json: "anthropic/claude-opus-4-8" }] },
  ],
  ["the model of the caller", "claude", `${named}model: inherit`, { models: [] }],
  ["a model nobody has", "claude", `${named}model: fable`, { models: [] }, ["FLOW6005 model"]],
  [
    "plan mode",
    "claude",
    `${named}permissionMode: plan`,
    narrow({ "modify-files": "deny", "execute-commands": "deny" }),
  ],
  ["the default mode", "claude", `${named}permissionMode: default`, { permissions: undefined }],
  [
    "a mode that would widen",
    "claude",
    `${named}permissionMode: bypassPermissions`,
    { permissions: undefined },
    ["FLOW6005 permissionMode"],
  ],
  [
    "another that would",
    "claude",
    `${named}permissionMode: acceptEdits`,
    { permissions: undefined },
    ["FLOW6005 permissionMode"],
  ],
  [
    "a mode nobody knows",
    "claude",
    `${named}permissionMode: yolo`,
    { permissions: undefined },
    ["FLOW6005 permissionMode"],
  ],
  ["turns", "claude", `${named}maxTurns: 7`, { limits: { turns: 7 } }],
  ["an effort", "claude", `${named}effort: high`, { effort: "high" }],
  ["an effort as a number", "claude", `${named}effort: 3`, { effort: undefined }, ["FLOW6005 effort"]],
  [
    "what only a session has",
    "claude",
    `${named}color: red\nbackground: true`,
    { name: "it" },
    ["FLOW6005 color", "FLOW6005 background"],
  ],
  ["a worktree", "claude", `${named}isolation: worktree`, { name: "it" }, ["FLOW6005 isolation"]],
  [
    "a first prompt",
    "claude",
    `${named}initialPrompt: "Begin with \${{ x }}."`,
    { prompt: { type: "data", json: "Begin with ${{ x }}." } },
  ],
  [
    "no project instructions",
    "claude",
    `${named}omitClaudeMd: true`,
    { settings: { json: { "instructions-files": "none" } } },
  ],
  ["a key nobody knows", "claude", `${named}version: 2`, { name: "it" }, ["FLOW6005 version"]],
  ["an expression in the text", "claude", 'name: it\ndescription: "Uses ${{ x }}."', { description: "Uses ${{ x }}." }],
  [
    "a name that is none here",
    "claude",
    "name: My Agent!\ndescription: x",
    { name: "My-Agent" },
    ["FLOW6005 My Agent!"],
  ],
  ["no name at all", "claude", "description: x", { name: "it" }],
  ["steps", "opencode", "description: x\nsteps: 9", { name: "it", limits: { turns: 9 } }],
  ["steps as they were called", "opencode", "description: x\nmaxSteps: 9", { limits: { turns: 9 } }],
  [
    "temperature and top_p",
    "opencode",
    "description: x\ntemperature: 0.1\ntop_p: 0.5",
    { temperature: 0.1, topP: 0.5 },
  ],
  ["a primary agent", "opencode", "description: x\nmode: primary", { mode: "primary" }],
  ["a subagent", "opencode", "description: x\nmode: subagent", { mode: "all" }],
  [
    "a model",
    "opencode",
    "description: x\nmodel: anthropic/claude-sonnet-4-6",
    { models: [{ type: "data", json: "anthropic/claude-sonnet-4-6" }] },
  ],
  [
    "a model of a provider that is not here",
    "opencode",
    "description: x\nmodel: opencode/big",
    { models: [] },
    ["FLOW6005 model"],
  ],
  ["a variant", "opencode", "description: x\nvariant: high", { effort: "high" }],
  [
    "tools that are off",
    "opencode",
    "description: x\ntools: { write: false, bash: false }",
    { permissions: { json: { Edit: "deny", Write: "deny", Bash: "deny" } } },
  ],
  ["all tools but one off", "opencode", 'description: x\ntools: { "*": false, read: true }', { tools: ["Read"] }],
  [
    "one permission for all",
    "opencode",
    "description: x\npermission: deny",
    { permissions: { json: { "*": "deny" } } },
  ],
  [
    "permissions by tool",
    "opencode",
    "description: x\npermission: { edit: deny, bash: ask }",
    { permissions: { json: { Edit: "deny", Bash: "ask" } } },
  ],
  [
    "permissions by command",
    "opencode",
    'description: x\npermission: { bash: { "*": ask, "git status*": allow } }',
    { permissions: { json: { Bash: { "*": "ask", "git status*": "allow" } } } },
  ],
  [
    "reading before searching",
    "opencode",
    'description: x\npermission: { "*": deny, grep: deny, read: allow }',
    { permissions: { json: { "*": "deny", Read: "allow", Grep: "deny" } } },
  ],
  [
    "a permission for what is not here",
    "opencode",
    "description: x\npermission: { doom_loop: deny }",
    { permissions: undefined },
    ["FLOW6005 doom_loop"],
  ],
  [
    "a command in the place of a tool",
    "opencode",
    'description: x\npermission: { "rm -rf *": deny }',
    { permissions: undefined },
    ['FLOW6005 "rm -rf *"'],
  ],
  [
    "a key for the provider",
    "opencode",
    "description: x\nserviceTier: flex",
    { settings: { json: { options: { serviceTier: "flex" } } } },
    ["FLOW6005 serviceTier"],
  ],
  ["turns and time", "gemini", `${named}max_turns: 12\ntimeout_mins: 5`, { limits: { turns: 12, duration: 300_000 } }],
  [
    "tools of Gemini",
    "gemini",
    `${named}tools: [read_file, run_shell_command, replace]`,
    { tools: ["Read", "Bash", "Edit"] },
  ],
  ["every tool of Gemini", "gemini", `${named}tools: ["*"]`, { tools: undefined }],
  [
    "a tool Gemini alone has",
    "gemini",
    `${named}tools: [read_file, google_web_search]`,
    { tools: ["Read"] },
    ["FLOW6020 google_web_search"],
  ],
  ["a local agent", "gemini", `${named}kind: local\ntemperature: 0.4`, { temperature: 0.4 }],
  ["a model of Gemini", "gemini", `${named}model: gemini-2.5-pro`, { models: [] }, ["FLOW6005 model"]],
  ["half a minute", "gemini", `${named}timeout_mins: 0.5`, { limits: { duration: 30_000 } }],
];

describe("an agent file of another program, unchanged:", () => {
  test.each(variants.map((variant) => ({ variant })))("$variant.0 ($variant.1)", async ({ variant }) => {
    const [, dialect, matter, agent, problems = []] = variant;
    const compiled = await read(dialect, matter);
    expect(told(compiled)).toEqual(problems);
    expect({ tools: undefined, permissions: undefined, effort: undefined, ...agentOf(compiled) }).toMatchObject(agent);
  });

  test("there are at least sixty variants", () => expect(variants.length).toBeGreaterThanOrEqual(60));

  test("the mark of UTF-8 before it and line ends of Windows change nothing", async () => {
    const files = {
      "main.yaml": "name: x\nmodel: scripted/r.yaml\nsteps: { a: { agent: it, prompt: hi } }\n",
      ".claude/agents/it.md": "\ufeff---\r\nname: it\r\ndescription: Does it.\r\ntools: Read\r\n---\r\nYou work.\r\n",
    };
    expect(agentOf(await checkFiles(files))).toMatchObject({ name: "it", tools: ["Read"], instructions: "You work." });
  });

  test("a server of one of its own is given as our `mcp`", async () => {
    const compiled = await read(
      "claude",
      `${named}mcpServers:\n  - docs: { type: stdio, command: node, args: [docs.js] }`,
    );
    expect(agentOf(compiled).settings.json).toMatchObject({ mcp: { docs: { command: "node", args: ["docs.js"] } } });
  });
});

describe("what is wrong in such a file has a place:", () => {
  test.each([
    ["none of its tools is here", "claude", `${named}tools: WebSearch, LSP`, "FLOW6020 WebSearch,FLOW6002 WebSearch"],
    ["turns that are no number", "claude", `${named}maxTurns: many`, "FLOW2001 many"],
    ["a memory nobody has", "claude", `${named}memory: everywhere`, "FLOW2004 everywhere"],
    ["a decision that is none", "opencode", "description: x\npermission: { bash: maybe }", "FLOW2004 maybe"],
    ["an agent elsewhere", "gemini", `${named}kind: remote`, "FLOW6004 remote"],
    ["YAML that is none", "claude", "name: [it\ndescription: x", "FLOW1006 name"],
  ] as const)("%s", async (_, dialect, matter, problems) => {
    const compiled = await read(dialect, matter);
    expect(compiled.plan).toBeUndefined();
    expect(new Set(told(compiled).map((line) => line.split(" ")[0]))).toEqual(
      new Set(problems.split(",").map((line) => line.split(" ")[0])),
    );
    for (const { at } of compiled.diagnostics) expect(at.file).toBe(`${folders[dialect]}/it.md`);
  });
});

describe("an agent is found", () => {
  const main = (name: string): string =>
    `name: x\nmodel: scripted/r.yaml\nsteps: { a: { agent: ${name}, prompt: hi } }\n`;
  const file = "---\nname: painter\ndescription: x\n---\nYou paint.\n";

  test.each([
    ["by the name inside, whatever its file is called", "painter", ".claude/agents/art/one.md"],
    ["by the name of its file", "two", ".gemini/agents/two.md"],
    ["by its path below OpenCode's folder", "art/three", ".opencode/agent/art/three.md"],
    ["beside the workflow", "four", "work/.claude/agents/four.md"],
    ["by its whole path", "../.claude/agents/five.md", ".claude/agents/five.md"],
  ])("%s", async (_, name, path) => {
    const compiled = await checkFiles({ "work/main.yaml": main(name), [path]: file }, "work/main.yaml");
    expect(agentOf(compiled).instructions).toBe("You paint.");
  });

  test("in our own folder first", async () => {
    const own = "name: painter\ninstructions: Ours.\n";
    const compiled = await checkFiles({
      "main.yaml": main("painter"),
      "agents/painter.yaml": own,
      ".claude/agents/painter.md": file,
    });
    expect(agentOf(compiled).instructions).toBe("Ours.");
  });

  test("by its name inside before another by the name of its file", async () => {
    const compiled = await checkFiles({
      "main.yaml": main("painter"),
      ".claude/agents/painter.md": file.replace("painter", "other").replace("You paint", "You draw"),
      ".claude/agents/zoe.md": file,
    });
    expect(agentOf(compiled).instructions).toBe("You paint.");
    expect(compiled.diagnostics).toEqual([]);
  });

  test("by the first of two that call themselves so in one folder, and that is said", async () => {
    const compiled = await checkFiles({
      "main.yaml": main("painter"),
      ".claude/agents/art/one.md": file,
      ".claude/agents/two.md": file.replace("You paint", "You draw"),
      ".gemini/agents/three.md": file,
    });
    expect(agentOf(compiled).instructions).toBe("You paint.");
    expect(compiled.diagnostics).toMatchObject([
      {
        code: "FLOW6004",
        severity: "warning",
        message: "two files call themselves `painter`: .claude/agents/art/one.md and .claude/agents/two.md",
      },
    ]);
  });
});

const samples = fileURLToPath(new URL("../../../shared/samples/", import.meta.url));
const isThere = existsSync(samples);
if (!isThere) console.log(`skipped: the samples of other projects are not at ${samples}`);

describe.skipIf(!isThere)("agent files somebody else wrote", () => {
  const sets = [
    ["claude-agents", ".claude/agents"],
    ["claude-agents-malformed", ".claude/agents"],
    ["opencode-agents", ".opencode/agents"],
  ] as const;
  const files = sets.flatMap(([set, folder]) =>
    isThere
      ? readdirSync(samples + set)
          .filter((name) => name.endsWith(".md"))
          .map((name) => [`${set}/${name}`, folder] as const)
      : [],
  );

  test.each(files)("%s loads", async (path, folder) => {
    const name = basename(path, ".md");
    const compiled = await checkFiles({
      "main.yaml": `name: x\nmodel: scripted/r.yaml\nsteps: { a: { agent: ${name}, prompt: hi } }\n`,
      [`${folder}/${name}.md`]: readFileSync(samples + path),
    });
    expect(compiled.diagnostics.filter(({ severity }) => severity === "error")).toEqual([]);
    expect(agentOf(compiled).instructions?.length ?? 0).toBeGreaterThan(200);
    const isMalformed = path.startsWith("claude-agents-malformed");
    expect(compiled.diagnostics.some(({ code }) => code === "FLOW1018")).toBe(isMalformed);
  });
});
