import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { LogLine } from "../../src/model/event.ts";
import { findBubblewrap } from "../../src/process/namespace.ts";
import { Repository, untouched } from "./repository.ts";

const hasSandbox = findBubblewrap(process.env["PATH"] ?? "") !== undefined;

function agentIn(turns: string, more = "", around = ""): Readonly<Record<string, string>> {
  return {
    "src/a.txt": "one\n",
    "secret/x.txt": "hidden\n",
    "w.yaml": `
model: scripted/replies.yaml
permissions: { Write: { "src/**": allow }, Edit: { "src/**": allow }, Read: { "secret/**": deny }, Bash: allow, Task: allow }
${around}
steps:
  work:
    agent: worker
    isolation: worktree
    ${more}
`,
    "agents/worker.yaml": "instructions: You.\nprompt: hi\ntools: [Read, Write, Edit, Bash]\n",
    "replies.yaml": `agents:\n  worker:\n${turns}`,
  };
}

async function ran(
  files: Readonly<Record<string, string>>,
  see: (place: Repository, events: readonly LogLine[], code: number | null) => void | Promise<void>,
): Promise<void> {
  const place = new Repository(files);
  try {
    const { code, stderr } = await place.flow(["run", "w.yaml"]);
    if (place.runs().length === 0) throw new Error(stderr);
    await see(place, place.events(), code);
  } finally {
    place.remove();
  }
}

function results(events: readonly LogLine[]): readonly string[] {
  return events.flatMap((it) => (it.type === "tool.finished" ? [`${it.name} ${it.status}: ${it.text}`] : []));
}

describe("an agent with isolation: worktree", () => {
  test("has its tools, its rules and its commands in the worktree, and nothing of it outside", () =>
    ran(
      agentIn(`
    - { calls: [{ name: Write, args: { file_path: src/new.txt, content: "x\\n" } }, { name: Read, args: { file_path: src/a.txt } }] }
    - { calls: [{ name: Edit, args: { file_path: src/a.txt, old_string: one, new_string: two } }, { name: Bash, args: { command: "pwd; git status --short" } }] }
    - { calls: [{ name: Write, args: { file_path: other.txt, content: "x" } }, { name: Read, args: { file_path: secret/x.txt } }, { name: Read, args: { file_path: ../../../../../src/a.txt } }] }
    - { text: done }
`),
      (place, events, code) => {
        expect(code).toBe(6);
        const [write, read, edit, bash, refused, denied, outside] = results(events);
        expect([write, read, edit].map((text) => text?.split(":")[0])).toEqual([
          "Write completed",
          "Read completed",
          "Edit completed",
        ]);
        expect(bash).toMatch(/worktrees\/work-1\n M src\/a\.txt\n\?\? src\/new\.txt$/);
        expect([refused, denied, outside]).toEqual([
          expect.stringContaining("Write error"),
          expect.stringContaining("Read error"),
          expect.stringContaining("Read error"),
        ]);
        // What it did not get leaves its changes where they are kept.
        expect([place.status, place.traces]).toEqual([[], untouched]);
      },
    ));

  test("brings in what it has done once its check is content, which runs there too", () =>
    ran(
      agentIn(
        `
    - { calls: [{ name: Write, args: { file_path: src/new.txt, content: "x\\n" } }] }
    - { text: not yet }
    - { calls: [{ name: Write, args: { file_path: src/ok.txt, content: "x\\n" } }] }
    - { text: done }
`,
        'check: { run: "test -e src/ok.txt && pwd", max: 2 }\n    outputs: { text: "${{ result.text }}", files: "${{ result.files }}", patch: "${{ result.patch }}" }',
      ),
      (place, events, code) => {
        expect([code, place.status]).toEqual([0, ["?? src/new.txt", "?? src/ok.txt"]]);
        const checks = events.flatMap((it) => (it.type === "check.finished" ? [it.text] : []));
        expect(checks.at(-1)).toContain("/worktrees/work-1");
        const end = events.find((it) => it.type === "step.finished");
        expect(end).toMatchObject({
          outputs: {
            text: "done",
            files: ["src/new.txt", "src/ok.txt"],
            patch: expect.stringMatching(/files\/work-1\.patch$/),
          },
        });
      },
    ));

  test.runIf(hasSandbox)("can write nowhere else from its sandbox, see no secret there, and commit", () =>
    ran(
      {
        ...agentIn(`
    - { calls: [{ name: Bash, args: { command: bash probe.sh } }] }
    - { text: done }
`),
        "probe.sh": `
top=$(cd ../../../../.. && pwd)
echo x > src/in.txt; echo x > "$top/out.txt"; cat "$top/.env" "$top/src/a.txt"
git add -A; git -c user.name=a -c user.email=a@b commit -qm mine; git log --format=%s -n 1
`,
        ".gitignore": ".env\n",
        ".env": "KEY=never\n",
      },
      (place, events, code) => {
        const [said = ""] = results(events);
        expect([code, said]).toEqual([0, expect.stringContaining("Read-only file system")]);
        expect(said).not.toContain("never");
        expect(said).toMatch(/one\nmine$/);
        expect([place.status, existsSync(join(place.folder, "out.txt")), place.traces]).toEqual([
          ["?? src/in.txt"],
          false,
          untouched,
        ]);
      },
    ),
  );

  test("is watched by hooks that run in its worktree", () =>
    ran(
      {
        ...agentIn(`
    - { calls: [{ name: Write, args: { file_path: src/new.txt, content: "x\\n" } }] }
    - { text: done }
`),
        "flow.config.yaml": `hooks:
  StepStart: [{ hooks: [{ type: command, command: "pwd > started.txt" }] }]
  PostToolUse: [{ matcher: Write, hooks: [{ type: command, command: "echo formatted >> src/new.txt; cat > told.json" }] }]
  StepEnd: [{ hooks: [{ type: command, command: "pwd > ended.txt" }] }]
`,
      },
      (place, _, code) => {
        expect([code, place.read("src/new.txt")]).toEqual([0, "x\nformatted\n"]);
        const folder = join(place.folder, ".flow/runs", place.runs()[0] ?? "", "worktrees/work-1");
        expect([place.read("started.txt"), place.read("ended.txt")]).toEqual([`${folder}\n`, `${folder}\n`]);
        expect(JSON.parse(place.read("told.json"))).toMatchObject({ cwd: folder });
      },
    ));

  test("has its MCP servers there, and shares none", () =>
    ran(
      {
        ...agentIn(
          `
    - { calls: [{ name: mcp__places__where, args: {} }] }
    - { text: done }
`,
          "",
          `mcp: { places: { command: node, args: [server.mjs] } }`,
        ),
        "agents/worker.yaml":
          "instructions: You.\nprompt: hi\ntools: [mcp__places]\npermissions: { mcp__places: allow }\n",
        "server.mjs": `
import { createInterface } from "node:readline";
const answers = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "places", version: "1" } }),
  "tools/list": () => ({ tools: [{ name: "where", description: "x", inputSchema: { type: "object" } }] }),
  "tools/call": () => ({ content: [{ type: "text", text: process.cwd() }] }),
};
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: "2.0", id, result: answers[method]?.(params) ?? {} }));
});
`,
      },
      (_, events, code) => {
        expect([code, results(events)]).toEqual([
          expect.anything(),
          [expect.stringMatching(/completed: .*worktrees\/work-1$/)],
        ]);
      },
    ));
});
