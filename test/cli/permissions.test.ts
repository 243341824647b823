import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { LogLine } from "../../src/model/event.ts";
import { Place } from "./flow.ts";

let place: Place;
beforeEach(() => {
  place = new Place({ "README.md": "hello\n" });
});
afterEach(() => place.remove());

/** A workflow whose one agent makes these calls, each a YAML flow map, and then answers. */
function agentThat(calls: readonly string[], keys = "", top = ""): void {
  place.write(
    "a.yaml",
    `name: a\nmodel: scripted/r.yaml\n${top}\nsteps:\n  a:\n    agent: { name: x, instructions: You., tools: [Read, Write, Edit, Bash, Glob, WebFetch, TodoWrite] ${keys} }\n    prompt: go\n`,
  );
  place.write(
    "r.yaml",
    `agents:\n  x:\n    - calls:\n${calls.map((call) => `        - ${call}\n`).join("")}    - text: done\n`,
  );
}

function eventsOf<T extends LogLine["type"]>(type: T): Extract<LogLine, { type: T }>[] {
  return place.events().filter((event): event is Extract<LogLine, { type: T }> => event.type === type);
}

const bash = (command: string): string => `{ name: Bash, args: ${JSON.stringify({ command })} }`;
const write = (path: string): string => `{ name: Write, args: { file_path: ${path}, content: "x\\n" } }`;

describe("a call that needs approval, with nobody to ask", () => {
  it("is denied at once, and the run ends with 6 and the rule to add", async () => {
    agentThat([bash("git push"), write("out.txt"), "{ name: Read, args: { file_path: README.md } }"]);
    const { code, stderr } = await place.flow(["run", "a.yaml"]);
    expect(code).toBe(6);
    expect(stderr).toContain("--allow 'Bash(git push)' --allow 'Write(./out.txt)'");
    expect(stderr).toContain('permissions: { allow: ["Bash(git push)", "Write(./out.txt)"] }');
    const judged = eventsOf("permission.judged").map(({ name, decision, rule, layer }) => [
      name,
      decision,
      rule,
      layer,
    ]);
    expect(judged).toEqual([
      ["Bash", "ask", "*", "default"],
      ["Write", "ask", "*", "default"],
      ["Read", "allow", "Read(./)", "default"],
    ]);
    expect(eventsOf("tool.started").map(({ name }) => name)).toEqual(["Read"]);
    expect(eventsOf("agent.finished")[0]?.outcome).toBe("denied");
    const times = place.events().map(({ time }) => Date.parse(time));
    const [asked] = eventsOf("permission.judged");
    const before = times[(asked?.seq ?? 2) - 2] ?? 0;
    expect(Date.parse(asked?.time ?? "") - before).toBeLessThan(1_000);
  });

  it("goes ahead with that rule, from the command line or the file", async () => {
    agentThat([bash("echo $((1+1)) > made.txt"), write("out.txt")]);
    expect((await place.flow(["run", "a.yaml", "--allow", "Bash(echo *)", "--allow", "Write(*.txt)"])).code).toBe(0);
    expect([place.read("made.txt"), place.read("out.txt")]).toEqual(["2\n", "x\n"]);
    agentThat([write("made2.txt")], "", "permissions: { allow: [Write(made2.txt)] }");
    expect((await place.flow(["run", "a.yaml"])).code).toBe(0);
    agentThat([write("new.txt")], ", permissions: { Write: { new.txt: allow } }");
    expect((await place.flow(["run", "a.yaml"])).code).toBe(0);
  });

  it("is what a profile says", async () => {
    agentThat([write("p.txt")]);
    expect((await place.flow(["run", "a.yaml", "--profile", "edit"])).code).toBe(0);
    expect((await place.flow(["run", "a.yaml", "--profile", "read"])).code).toBe(0);
    expect(eventsOf("agent.started")[0]?.tools).toEqual(["Glob", "Read", "TodoWrite"]);
    expect((await place.flow(["run", "a.yaml", "--profile", "all"])).code).toBe(2);
    expect((await place.flow(["run", "a.yaml", "--allow", "Bash(x"])).stderr).toContain("is not a rule");
  });

  it("may be asked for even where it is allowed: `approval`", async () => {
    const rules = "permissions: { Bash: allow, TodoWrite: allow }";
    agentThat([bash("echo a"), "{ name: Glob, args: { pattern: '*' } }"], ", approval: sensitive", rules);
    expect((await place.flow(["run", "a.yaml"])).code).toBe(6);
    expect(eventsOf("permission.judged").map(({ decision }) => decision)).toEqual(["ask", "allow"]);
    expect((await place.flow(["run", "a.yaml", "--allow", "Bash(echo a)"])).code).toBe(0);
  });

  it.each([
    [", approval: sensitive", "permissions: { Write: allow }", "or write `approval: never`"],
    ["", "permissions: { ask: [Write] }", "or change `Write` (a.yaml:3)"],
  ])("gives advice that works, where a rule in the file would not: %s", async (keys, top, advice) => {
    agentThat([write("o.txt")], keys, top);
    const { code, stderr } = await place.flow(["run", "a.yaml"]);
    expect([code, stderr]).toEqual([6, expect.stringContaining(`run with --allow 'Write(./o.txt)', ${advice}`)]);
    expect(stderr).not.toContain("permissions: { allow");
    expect((await place.flow(["run", "a.yaml", "--allow", "Write(./o.txt)"])).code).toBe(0);
  });
});

describe("a written denial", () => {
  it("is a result the model can read, and the agent may still be done", async () => {
    agentThat([bash("rm -rf x"), bash("git log")], "", 'permissions: { Bash: { "*": deny, "echo *": allow } }');
    const { code } = await place.flow(["run", "a.yaml"]);
    expect(code).toBe(0);
    const [first] = eventsOf("tool.finished");
    expect(first).toMatchObject({
      status: "error",
      text: expect.stringContaining("denied by the rule `Bash(*)` (workflow, a.yaml:3)"),
    });
  });

  it("of all calls hides the tool", async () => {
    agentThat([bash("ls")], "", "permissions: { deny: [Bash, WebFetch] }");
    await place.flow(["run", "a.yaml", "--profile", "full"]);
    expect(eventsOf("agent.started")[0]?.tools).toEqual(["Edit", "Glob", "Read", "TodoWrite", "Write"]);
    expect(eventsOf("tool.finished")[0]?.text).toContain("`Bash` is denied by the rule `Bash` (workflow, a.yaml");
    await place.flow(["run", "a.yaml", "--profile", "read"]);
    expect(eventsOf("tool.finished")[0]?.text).toContain("`Bash` is denied by the rule `Bash` (workflow, a.yaml");
    agentThat([bash("ls")], "", "");
    await place.flow(["run", "a.yaml", "--profile", "read"]);
    expect(eventsOf("tool.finished")[0]?.text).toMatch(/`Bash` is denied by the rule `\S+` \(profile\)/);
    expect(eventsOf("tool.started")).toEqual([]);
  });

  it("of a managed file holds for agents and for the author's own steps", async () => {
    place.write("managed.yaml", "permissions: { deny: ['Bash(curl *)'] }\n");
    const env = { FLOW_MANAGED: join(place.folder, "managed.yaml") };
    agentThat([bash("curl https://example.com")], "", "permissions: { Bash: allow }");
    await place.flow(["run", "a.yaml"], { env });
    expect(eventsOf("permission.judged")[0]).toMatchObject({ decision: "deny", layer: "managed" });
    place.write("b.yaml", "name: b\nsteps: { a: { run: 'echo a && curl --version' } }\n");
    expect((await place.flow(["run", "b.yaml"], { env })).code).toBe(6);
    place.write("c.yaml", "name: c\nsteps: { a: { run: 'for i in 1; do echo $i; done' } }\n");
    expect((await place.flow(["run", "c.yaml"], { env })).code).toBe(0);
    place.write("managed.yaml", "permission: {}\n");
    expect((await place.flow(["run", "c.yaml"], { env })).code).toBe(3);
  });
});

describe("the tools of a run", () => {
  it("work together: read, edit, a plan, a name another program uses", async () => {
    const calls = [
      "{ name: read_file, args: { absolute_path: README.md } }",
      "{ name: edit, args: { filePath: README.md, oldString: hello, newString: bye } }",
      "{ name: write, args: { path: README.md, content: again } }",
      "{ name: TodoWrite, args: { todos: [{ content: a, status: completed }] } }",
    ];
    agentThat(calls);
    expect((await place.flow(["run", "a.yaml", "--profile", "edit"])).code).toBe(0);
    expect(eventsOf("tool.finished").map(({ name, status }) => [name, status])).toEqual([
      ["Read", "completed"],
      ["Edit", "completed"],
      ["Write", "completed"],
      ["TodoWrite", "completed"],
    ]);
    expect(place.read("README.md")).toBe("again");
  });

  it("are a workflow's own too, for agents and steps", async () => {
    place.write(
      "a.yaml",
      `name: a
model: scripted/r.yaml
tools:
  shout:
    description: Shouts.
    parameters: { type: object, required: [text], properties: { text: { type: string } } }
    run: [sh, -c, 'printf %s "$1" | tr a-z A-Z', sh, "\${{ inputs.text }}"]
steps:
  a: { agent: { name: x, instructions: You., tools: [shout] }, prompt: go }
  b: { tool: shout, with: { text: "$(rm x)" } }
  c: { tool: Write, with: { file_path: c.txt, content: "\${{ steps.b.outputs.text }}" } }
  d: { tool: Edit, with: { file_path: c.txt, old_string: RM, new_string: rm }, needs: [c] }
`,
    );
    place.write("r.yaml", "agents: { x: [{ calls: [{ name: shout, args: { text: hi } }] }, { text: done }] }\n");
    const { code, stderr } = await place.flow(["run", "a.yaml"]);
    expect([code, stderr.includes("error")]).toEqual([0, false]);
    expect(eventsOf("tool.finished")[0]?.text).toBe("HI");
    expect(place.read("c.txt")).toBe("$(rm X)");
  });

  it("reach no address of this machine's networks", async () => {
    const urls = [
      "http://127.0.0.1:8080/",
      "http://localhost:8080/",
      "http://[::1]/",
      "http://169.254.169.254/latest",
      "http://2130706433/",
      "file:///etc/passwd",
    ];
    agentThat(urls.map((url) => `{ name: WebFetch, args: { url: "${url}" } }`));
    await place.flow(["run", "a.yaml", "--profile", "full"]);
    for (const { text } of eventsOf("tool.finished"))
      expect(text).toMatch(/not on the public network|neither http nor https|no URL/);
  });
});

describe("a sandbox", () => {
  it("that is asked for is real, or the run refuses", async () => {
    agentThat([bash("ls")], ", sandbox: on", "permissions: { Bash: allow }");
    mkdirSync(join(place.folder, "empty"));
    const { code, stderr } = await place.flow(["run", "a.yaml"], { env: { PATH: join(place.folder, "empty") } });
    expect(code).toBe(3);
    expect(stderr).toContain("bubblewrap");
    expect(place.runs()).toEqual([]);
  });
});

describe("what rules have decided", () => {
  it("is counted once for a call, however deep the agent is that makes it", async () => {
    place.write(
      "deep.yaml",
      `model: scripted/deep-replies.yaml
permissions: { "Bash": { "echo *": allow } }
agents:
  low: { instructions: L., tools: [Bash] }
  middle: { instructions: M., tools: [Bash], subagents: [low] }
steps: { a: { agent: { name: top, instructions: T., prompt: hi, tools: [Bash], subagents: [middle], limits: { depth: 2 } } } }
`,
    );
    const task = (agent: string): string =>
      `{ name: Task, args: { description: d, prompt: p, subagent_type: ${agent} } }`;
    place.write(
      "deep-replies.yaml",
      `agents:
  top: [{ calls: [${task("middle")}] }, { text: ok }]
  middle: [{ calls: [${task("low")}] }, { text: ok }]
  low: [{ calls: [${bash("echo a")}, ${bash("echo b")}] }, { text: ok }]
`,
    );
    expect((await place.flow(["run", "deep.yaml"])).code).toBe(0);
    const [counted] = eventsOf("permissions.counted");
    expect(counted?.rules.map(({ rule, hits }) => [rule, hits])).toEqual([["Bash(echo *)", 2]]);
  });
});

describe("the advice after a no", () => {
  it("names no rule where none would help", async () => {
    agentThat([bash("rm x")], "", "permissions: { allow: [Bash], deny: ['Bash(rm *)'] }");
    const { stderr } = await place.flow(["run", "a.yaml"]);
    expect(stderr).toContain("denied by Bash(rm *)");
    expect(stderr).not.toContain("allow with");
    const { code, stdout } = await place.flow(["permit", "a.yaml", "Bash(rm x)", "--allow", "Bash(rm x)"]);
    expect([code, stdout]).toEqual([6, expect.not.stringContaining("to allow it")]);
  });

  it("sends to a terminal where a hook wants a person asked", async () => {
    const says = JSON.stringify({ hookSpecificOutput: { permissionDecision: "ask" } });
    agentThat([bash("echo x")], "", "permissions: { allow: [Bash] }");
    place.write(
      "flow.config.yaml",
      `hooks: { PreToolUse: [{ hooks: [{ type: command, command: ${JSON.stringify(`echo '${says}'`)} }] }] }\n`,
    );
    const { code, stderr } = await place.flow(["run", "a.yaml"]);
    expect([code, stderr]).toEqual([6, expect.stringContaining("a hook wants a person asked")]);
    expect(stderr).not.toContain("--allow");
  });
});

describe("flow permit", () => {
  it("says verdict, rule, layer and line, and runs nothing", async () => {
    agentThat([], "", 'permissions:\n  Bash:\n    "*": deny\n    "git *": allow\n');
    const allowed = await place.flow(["permit", "a.yaml", "Bash(git push)"]);
    expect([allowed.code, allowed.stdout]).toEqual([0, "allow a (x): Bash(git *) [workflow a.yaml:6]\n"]);
    const denied = await place.flow(["permit", "a.yaml", "Bash(git log | xargs rm)", "--json"]);
    expect(denied.code).toBe(6);
    expect(JSON.parse(denied.stdout)).toEqual([
      {
        step: "a",
        agent: "x",
        decision: "deny",
        rule: { text: "Bash(*)", layer: "workflow", file: "a.yaml", line: 5 },
        toAllow: ["Bash(xargs rm)"],
      },
    ]);
    expect((await place.flow(["permit", "a.yaml", "git push"])).code).toBe(2);
    for (const [call, near] of [
      ["Bsh(ls)", "; did you mean `Bash`?"],
      ["TeamCreate(x)", "judged\n"],
    ])
      expect(await place.flow(["permit", "a.yaml", call ?? ""])).toMatchObject({
        code: 2,
        stderr: expect.stringContaining(near ?? "") as string,
      });
    expect(place.runs()).toEqual([]);
  });

  it.each([
    ["Write(.git/hooks/pre-commit)", 6, '".git/hooks/pre-commit" belongs to git, which tools cannot write'],
    ["Edit(.flow/notes)", 6, "belongs to flow's own state"],
    ["Read(.flow/notes)", 6, "belongs to flow's own state"],
    ["Read(.git/HEAD)", 0, "allow"],
    ["Write(docs/a.md)", 0, "allow"],
    ["Write", 0, "allow"],
  ])("knows what the tool does for nobody: %s", async (call, code, said) => {
    agentThat([], "", 'permissions: { "*": allow }\n');
    const permitted = await place.flow(["permit", "a.yaml", call]);
    expect([permitted.code, permitted.stdout]).toEqual([code, expect.stringContaining(said)]);
  });

  it("judges whoever may work below as well, within those above, and ends by what the step's agent may", async () => {
    place.write(
      "tree.yaml",
      `model: scripted/replies.yaml
permissions: { Write: allow, Task: { "*": allow, barred: deny } }
agents:
  lead: { instructions: L., tools: [Write], subagents: [middle, explore, barred], limits: { depth: 2 } }
  middle: { instructions: M., tools: [Write], subagents: [bottom, lead], permissions: { Write: { "*": deny, "src/**": allow } } }
  bottom: { instructions: B., tools: [Write], subagents: [far], permissions: { Write: allow } }
  far: { instructions: F., tools: [Write] }
  barred: { instructions: B., tools: [Write] }
  worker: { instructions: W., tools: [Write] }
steps:
  a: { agent: lead, prompt: hi }
  b: { agent: lead, prompt: hi, limits: { depth: 0 } }
  c: { agent: { instructions: C., tools: [Write], team: { members: [worker] } }, prompt: hi }
`,
    );
    const { code, stdout } = await place.flow(["permit", "tree.yaml", "Write(docs/a.md)"]);
    const lines = stdout.split("\n").filter((line) => !line.startsWith(" "));
    expect(lines.map((line) => line.slice(0, line.indexOf(": ")))).toEqual([
      "allow a (lead)",
      "deny  a>middle",
      "deny  a>explore",
      "deny  a>middle>bottom",
      "allow b (lead)",
      "allow c (c)",
      "allow c>worker",
      "",
    ]);
    expect(code).toBe(0);
    const inside = await place.flow(["permit", "tree.yaml", "Write(src/a.ts)", "--json"]);
    const [, middle, , bottom] = JSON.parse(inside.stdout);
    expect(middle).toMatchObject({ step: "a", agent: "middle", below: ["lead"], decision: "allow" });
    expect(bottom).toMatchObject({ step: "a", agent: "bottom", below: ["lead", "middle"], decision: "allow" });
  });

  it("takes an agent by its name", async () => {
    place.write("agents/rev.yaml", "name: rev\ninstructions: You.\npermissions: { allow: ['Bash(npm test)'] }\n");
    expect((await place.flow(["permit", "rev", "Bash(npm test)"])).stdout).toContain("[agent agents/rev.yaml:3]");
    const { code, stderr } = await place.flow(["permit", "nobody", "Bash(npm test)"]);
    expect([code, stderr]).toEqual([2, expect.stringContaining("flow permit WORKFLOW.yaml 'Bash(npm test)'")]);
    expect(stderr).not.toContain("prompt:");
  });
});
