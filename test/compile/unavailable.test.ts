import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { unavailable } from "../../src/compile/checks/unavailable.ts";
import { run } from "../../src/flow.ts";
import { languageTools } from "../../src/tools/names.ts";
import { checkText } from "./checking.ts";

const folder = mkdtempSync(join(tmpdir(), "flow-unavailable-"));
mkdirSync(join(folder, ".git"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A value of the right shape for every key that has ever been on the list. */
const values: { readonly [key: string]: string } = {
  approval: "never",
  approve: "Go on?",
  cache: "true",
  check: "{ run: x }",
  children: "1",
  cost: "1",
  depth: "1",
  duration: "1s",
  env: "{ A: b }",
  guards: "false",
  hidden: "true",
  hooks: "{ Stop: [{ hooks: [{ command: x }] }] }",
  "instructions-files": "none",
  isolation: "worktree",
  mcp: "{ s: { command: x } }",
  memory: "none",
  options: "{ a: 1 }",
  parallel: "1",
  permissions: "{ Read: allow }",
  sandbox: "auto",
  skills: "[a]",
  team: "{ members: [explore] }",
  tokens: "1",
  tools: "{ t: { description: x, parameters: { type: object }, run: [x] } }",
  turns: "1",
};

const plain = 'steps:\n  a: { run: "true" }\n';
const agentStep = (more: string): string => `steps:\n  a:\n    agent: { prompt: hi }\n    ${more}\n`;
const agent = (more: string): string => `steps:\n  a: { agent: { prompt: hi, ${more} } }\n`;

/** The shortest workflow that uses a key of an area. */
const uses: { readonly [area: string]: (key: string, value: string) => string } = {
  workflow: (key, value) => `${key}: ${value}\n${plain}`,
  kind: (key, value) => `steps:\n  a: { ${key}: ${value} }\n`,
  step: (key, value) => agentStep(`${key}: ${value}`),
  "agent step": (key, value) => agentStep(`${key}: ${value}`),
  "tool step": (key, value) => `steps:\n  a: { tool: Read, with: { file_path: a }, ${key}: ${value} }\n`,
  limits: (key, value) => `limits: { ${key}: ${value} }\n${plain}`,
  agent: (key, value) => agent(`${key}: ${value}`),
  hook: (key) => agent(`hooks: { ${key}: [{ hooks: [{ command: x }] }] }`),
};

const keys = Object.entries(unavailable).flatMap(([area, list]) => list.map((key) => [area, key] as const));

test("the list stands in test/unavailable.txt, where a longer one would be seen", () => {
  const written = readFileSync(new URL("../unavailable.txt", import.meta.url), "utf8").split("\n");
  const tools = [...languageTools].flatMap(([tool, there]) => (there ? [] : [`tool: ${tool}`]));
  const lines = [...keys.map(([area, key]) => `${area}: ${key}`), ...tools];
  expect(written.filter((line) => line !== "" && !line.startsWith("#"))).toEqual(lines.sort());
});

describe("a key that is not there yet is refused by a run and never ignored:", () => {
  test.each(keys)("%s `%s`", async (area, key) => {
    await expectRefusal(uses[area]?.(key, values[key] ?? "") ?? "", key);
  });

  test.each([...languageTools].filter(([, there]) => !there))("the tool `%s`", async (tool) => {
    await expectRefusal(agent(`tools: [${tool}]`), tool);
    await expectRefusal(agentStep(`tools: [${tool}]`), tool);
  });

  test("in the `undo` of a step as well", async () => {
    await expectRefusal(
      "agents: { j: { prompt: hi, team: { members: [explore] } } }\nsteps:\n  a: { run: x, undo: { agent: j } }\n",
      "team",
    );
  });
});

async function expectRefusal(text: string, key: string): Promise<void> {
  const { plan, diagnostics, sources } = await checkText(text);
  expect(diagnostics.map((it) => [it.code, it.severity])).toEqual([["FLOW9001", "warning"]]);
  expect(plan).toBeDefined();
  const [only] = diagnostics;
  const line = (sources.get("-") ?? "").split("\n")[(only?.at.line ?? 1) - 1] ?? "";
  expect(line.slice((only?.at.column ?? 1) - 1)).toMatch(new RegExp(`^${key}`));
  writeFileSync(join(folder, "main.yaml"), text);
  const result = await run({ file: "main.yaml", cwd: folder, runsDir: join(folder, "runs") });
  expect(result.started ? "started" : result.refusal.exitCode).toBe(2);
  expect(readdirSync(folder)).not.toContain("runs");
}
