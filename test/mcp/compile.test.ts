import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { check } from "../../src/flow.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "flow-mcp-"));
  mkdirSync(join(folder, ".git"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function problems(workflow: string, servers?: object | string): Promise<string[]> {
  writeFileSync(join(folder, "w.yaml"), workflow);
  if (servers !== undefined)
    writeFileSync(
      join(folder, ".mcp.json"),
      typeof servers === "string" ? servers : JSON.stringify({ mcpServers: servers }, undefined, "\t"),
    );
  const { diagnostics } = await check({ file: "w.yaml", cwd: folder });
  return diagnostics.map(
    ({ severity, code, at, message, suggestion }) =>
      `${severity} ${code} ${at.file}:${at.line}:${at.column} ${message}${suggestion === undefined ? "" : ` (${suggestion})`}`,
  );
}

const agent = (settings: string): string => `steps: { a: { agent: { prompt: hi, ${settings} } } }\n`;

describe("a server", () => {
  it.each([
    ["is named in an agent's list", agent("mcp: [it]")],
    ["is named by its tool", agent("tools: [Read, mcp__it__look]")],
    ["is named by all its tools", agent("tools: ['mcp__it__*', mcp__it]")],
    ["is named by a step", "steps: { a: { tool: mcp__it__look, env: { A: b } } }\n"],
    ["is named by an undo", "steps: { a: { run: 'true', undo: { tool: mcp__it__look } } }\n"],
  ])("of the project %s", async (_, workflow) => {
    expect(await problems(workflow, { it: { command: "x", args: ["${A:-b}"] } })).toEqual([]);
    expect(await problems(workflow.replaceAll("it", "at"), { it: { command: "x" } })).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^error FLOW6012 w\.yaml:1:\d+ there is no MCP server `at`.*did you mean `it`\?/),
      ]),
    );
  });

  it("of the workflow hides the project's", async () => {
    expect(
      await problems(`mcp: { it: { url: "http://127.0.0.1/mcp" } }\n${agent("mcp: [it]")}`, { it: "broken" }),
    ).toEqual([]);
  });

  it("is never started because a file of the project names it", async () => {
    writeFileSync(
      join(folder, ".mcp.json"),
      JSON.stringify({ mcpServers: { evil: { command: "touch", args: ["pwned"] } } }),
    );
    writeFileSync(join(folder, "w.yaml"), agent("tools: [Read]"));
    const { plan } = await check({ file: "w.yaml", cwd: folder });
    expect(JSON.stringify(plan)).not.toMatch(/evil|mcp\.json/);
  });

  it("whose command is a command line is refused", async () => {
    expect(await problems(`mcp: { it: { command: "node server.js --fast" } }\n${agent("mcp: [it]")}`)).toEqual([
      expect.stringMatching(
        /^error FLOW2004 w\.yaml:1:23 .*write `command: node` and `args: \["server\.js", "--fast"\]`/,
      ),
    ]);
  });

  it.each([
    ["npx", ["-y", "docs-server"], true],
    ["npx", ["docs-server@latest"], true],
    ["npx", ["--package", "@a/b@1.2.3", "b"], false],
    ["npx", ["@a/b@1.2.3-beta.1"], false],
    ["uvx", ["mcp-server-git==2026.1.2"], false],
    ["uvx", ["--from", "mcp-server-git", "x"], true],
    ["npx", ["./server.js"], false],
    ["node", ["server.js"], false],
  ])("fetched by a runner without a whole version is warned of: %s %j %s", async (command, args, isWarned) => {
    const found = await problems(`mcp: { it: ${JSON.stringify({ command, args })} }\n${agent("mcp: [it]")}`);
    expect(found.map((line) => line.slice(0, 16))).toEqual(isWarned ? ["warning FLOW8009"] : []);
  });

  it.each([
    ["a__b: { command: x }", "FLOW3001"],
    ["it: { command: x, url: 'http://x' }", "FLOW2009"],
    ["it: {}", "FLOW2009"],
    ["it: { command: x, timeout: soon }", "FLOW2004"],
    ["it: { command: '${{ inputs.x }}' }", "FLOW5004"],
    ["it: { command: x, args: ['${{ steps.a.outputs.x }}'] }", "FLOW5003"],
    ["it: { command: x, env: { A: '${{ secrets.NOPE }}' } }", "FLOW8005"],
  ])("cannot be `%s`", async (server, code) => {
    expect((await problems(`mcp: { ${server} }\nsteps: { a: { run: 'true' } }\n`)).join("\n")).toContain(
      `error ${code} w.yaml:1:`,
    );
  });
});

describe("the project's file", () => {
  it.each<[unknown, string]>([
    [{ command: "x", url: "http://x" }, "FLOW2009 .mcp.json:5:11 the server `it`: it is either a `command` or a `url`"],
    [{ args: [] }, "FLOW2003 .mcp.json:3:9 the server `it`: it needs a `command` or a `url`"],
    [{ command: "x", args: "a" }, "FLOW2001 .mcp.json:5:12 the server `it`: `args` must be a list of texts"],
    [{ command: "x", env: { A: [] } }, "FLOW2001 .mcp.json:6:10 the server `it`: `env.A` must be text"],
    [{ url: "http://x", type: "websocket" }, "FLOW2004 .mcp.json:5:12 the server `it`: `type` must be"],
    [
      { url: "http://x", type: "stdio" },
      "FLOW2009 .mcp.json:5:12 the server `it`: `type: stdio` does not go with `url`",
    ],
    [{ command: "x", disabled: true }, "FLOW2009 .mcp.json:5:16 the server `it`: it is disabled"],
    ["x", "FLOW2001 .mcp.json:3:9 the server `it` must be a map"],
  ])("is refused where a named server is %j", async (server, problem) => {
    const found = await problems(agent("mcp: [it]"), { it: server });
    expect(found).toEqual([expect.stringContaining(problem)]);
    expect(await problems(agent("mcp: [other]"), { it: server, other: { command: "x" } })).toEqual([]);
  });

  it("is refused when it is no JSON, and only by who needs it", async () => {
    expect((await problems(agent("mcp: [it]"), '{"mcpServers": ')).join()).toContain("error FLOW1006 .mcp.json:1:");
    expect(await problems(agent("tools: [Read]"), '{"mcpServers": ')).toEqual([]);
  });
});
