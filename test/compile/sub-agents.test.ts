import { describe, expect, test } from "vitest";
import type { Compilation } from "../../src/flow.ts";
import { checkFiles } from "./checking.ts";

const folders = { ours: "agents", claude: ".claude/agents", opencode: ".opencode/agents" } as const;

/** A workflow whose step runs `it`, among agents that others may mean. */
function files(dialect: keyof typeof folders, matter: string): { readonly [path: string]: string } {
  return {
    "main.yaml": "name: x\nmodel: scripted/r.yaml\nsteps: { a: { agent: it, prompt: hi } }\n",
    [`${folders[dialect]}/it.md`]: `---\n${matter}\n---\nYou work.\n`,
    "agents/ours.md": "---\ndescription: Ours.\n---\nOurs.\n",
    "agents/quiet.md": "---\nhidden: true\n---\nQuiet.\n",
    "agents/off.md": "---\ndisable: true\n---\nOff.\n",
    "agents/first.md": "---\nmode: primary\n---\nFirst.\n",
    ".claude/agents/theirs.md": "---\nname: theirs\ndescription: Theirs.\n---\nTheirs.\n",
  };
}

/** Whom `it` may spawn: the names it has for them, and where they are from. */
function spawned({ plan, diagnostics }: Compilation): string[] {
  const it = Object.values(plan?.agents ?? {}).find(({ name }) => name === "it");
  if (!it) throw new Error(diagnostics.map(({ message }) => message).join("\n"));
  return (it.subagents ?? []).map(({ name, value }) => `${name} ${value}`).sort();
}

const everybody = [
  "explore built-in/explore",
  "general built-in/general",
  "ours agents/ours.md",
  "plan built-in/plan",
  "review built-in/review",
  "theirs .claude/agents/theirs.md",
  "verify built-in/verify",
];

describe("whom an agent may spawn", () => {
  test.each([
    [
      "those it names",
      "ours",
      "subagents: [ours, explore, theirs]",
      ["explore built-in/explore", "ours agents/ours.md", "theirs .claude/agents/theirs.md"],
    ],
    ["one that is hidden, when it is named", "ours", "subagents: [quiet]", ["quiet agents/quiet.md"]],
    ["everybody that is open", "ours", 'subagents: ["*"]', everybody],
    [
      "everybody, and one that is hidden",
      "ours",
      "subagents: ['*', quiet]",
      [...everybody, "quiet agents/quiet.md"].sort(),
    ],
    ["nobody without a word of it", "ours", "description: x", []],
    ["everybody, of Claude Code's bare Task", "claude", "name: it\ndescription: x\ntools: Read, Task", everybody],
    ["everybody, by the tool's other name", "claude", "name: it\ndescription: x\ntools: [Read, Agent]", everybody],
    [
      "those in the parentheses",
      "claude",
      "name: it\ndescription: x\ntools: Read, Task(ours, theirs)",
      ["ours agents/ours.md", "theirs .claude/agents/theirs.md"],
    ],
    ["nobody without the tool", "claude", "name: it\ndescription: x\ntools: Read", []],
    [
      "everybody, of OpenCode's rules for tasks",
      "opencode",
      "description: x\npermission: { task: { '*': deny, ours: allow } }",
      everybody,
    ],
    ["everybody, of OpenCode's tool", "opencode", "description: x\ntools: { task: true }", everybody],
    ["nobody that OpenCode denies altogether", "opencode", "description: x\npermission: { task: deny }", []],
  ] as const)("%s", async (_, dialect, matter, expected) => {
    const compiled = await checkFiles(files(dialect, matter));
    expect(compiled.diagnostics.filter(({ severity }) => severity === "error")).toEqual([]);
    expect(spawned(compiled).filter((name) => !name.startsWith("it "))).toEqual(expected);
  });

  test("is looked for beside the workflow first, before what comes with flow", async () => {
    const compiled = await checkFiles({
      ...files("ours", "subagents: [explore]"),
      "agents/explore.yaml": "instructions: Ours.\n",
    });
    expect(spawned(compiled)).toEqual(["explore agents/explore.yaml"]);
  });

  test("in another program's file may be unknown: it is left out, and that is told", async () => {
    const compiled = await checkFiles(files("claude", "name: it\ndescription: x\ntools: Read, Task(nobody, ours)"));
    expect(compiled.diagnostics.map(({ code, severity }) => `${code} ${severity}`)).toEqual(["FLOW6001 warning"]);
    expect(spawned(compiled)).toEqual(["ours agents/ours.md"]);
  });

  test("is nobody that a configuration disables, when nobody named it", async () => {
    const compiled = await checkFiles({
      ...files("ours", 'subagents: ["*"]'),
      "flow.config.yaml": "agents: { disable: [ours, verify] }\n",
    });
    expect(spawned(compiled)).toEqual(everybody.filter((name) => !/^(ours|verify)/.test(name)));
  });

  test("may name each other in a circle", async () => {
    const compiled = await checkFiles({
      ...files("ours", "subagents: [ours]"),
      "agents/ours.md": "---\nsubagents: [it, explore]\n---\nOurs.\n",
    });
    expect(compiled.diagnostics).toEqual([]);
    expect(Object.keys(compiled.plan?.agents ?? {}).sort()).toEqual([
      "agents/it.md",
      "agents/ours.md",
      "built-in/explore",
    ]);
  });
});

describe("how deep", () => {
  test.each([
    ["6", "FLOW2004"],
    ["-1", "FLOW2004"],
    ["1.5", "FLOW2001"],
  ])("`limits.depth: %s` is no depth", async (depth, code) => {
    const { diagnostics } = await checkFiles(files("ours", `subagents: [ours]\nlimits: { depth: ${depth} }`));
    expect(diagnostics.map((it) => it.code)).toEqual([code]);
  });
});
