import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { Place, project } from "./flow.ts";

const nasty = join(project, "test/mcp/nasty-server.mjs");
const packaged = (name: string): string =>
  join(project, `node_modules/@modelcontextprotocol/server-${name}/dist/index.js`);
const node = process.execPath;

let place: Place;
beforeEach(() => {
  place = new Place();
});
afterEach(() => place.remove());

/** A server in the workflow's `mcp`, as YAML. */
const server = (script: string, ...args: readonly string[]): string =>
  JSON.stringify({ command: node, args: [script, ...args] });

/** A workflow with one agent that makes these calls and says what the last one gave. */
function agentThat(calls: readonly object[], more: string, settings: string): void {
  const turns = calls.map((call) => `    - calls: [${JSON.stringify(call)}]\n`).join("");
  place.write("replies.yaml", `agents:\n  a:\n${turns}    - text: "\${{ results[0].text }}"\n`);
  const step = `steps: { a: { agent: { name: a, prompt: hi, ${settings} }, ${more === "" ? "" : `${more}, `}needs: [] } }`;
  place.write(
    "agent.yaml",
    `model: scripted/replies.yaml\nMCP\n${step.replace(", needs: []", "")}\noutputs: { said: "\${{ steps.a.outputs.text }}" }\n`,
  );
}

function withServers(servers: string): void {
  place.write("agent.yaml", place.read("agent.yaml").replace("MCP", servers));
}

describe("the tools of MCP servers", () => {
  it("are called by steps, their arguments checked, their structured content as outputs", async () => {
    place.write(
      "w.yaml",
      `mcp:
  all: ${server(packaged("everything"))}
steps:
  sum: { tool: mcp__all__get-sum, with: { a: 2, b: 3 } }
  weather: { tool: mcp__all__get-structured-content, with: { location: Chicago } }
  bad: { tool: mcp__all__get-sum, with: { a: two }, continue-on-error: true }
  slip: { tool: mcp__all__echo, with: { mesage: hi }, continue-on-error: true }
  none: { tool: mcp__all__get-some, continue-on-error: true }
outputs:
  sum: \${{ steps.sum.outputs.text }}
  weather: \${{ steps.weather.outputs.conditions }}
  bad: \${{ steps.bad.error.message }}
  slip: \${{ steps.slip.error.message }}
  none: \${{ steps.none.error.message }}
`,
    );
    const { code, stdout } = await place.flow(["run", "w.yaml", "--json"]);
    const { outputs } = JSON.parse(stdout) as { outputs: Record<string, string> };
    expect(outputs).toMatchObject({ sum: "The sum of 2 and 3 is 5.", weather: expect.stringMatching(/\w/) });
    expect(outputs["bad"]).toBe(
      "`with` does not fit `mcp__all__get-sum`: `b` is missing; `a` must be a number, not `two`",
    );
    expect(outputs["slip"]).toBe(
      "`with` does not fit `mcp__all__echo`: `message` is missing; is `mesage` meant for it?",
    );
    expect(outputs["none"]).toMatch(/the MCP server `all` has no tool `mcp__all__get-some`; it has `mcp__all__echo`/);
    expect(code).toBe(0);
    expect(place.events().filter(({ type }) => type === "mcp.started")).toHaveLength(1);
  });

  it("are called by agents as far as the rules let them, and images are shown to the model", async () => {
    const calls = [
      { name: "mcp__all__get-tiny-image", args: {} },
      { name: "mcp__all__echo", args: { message: "hi" } },
    ];
    agentThat(calls, "", "mcp: [all], permissions: { mcp__all: allow, mcp__all__get-sum: deny }");
    withServers(`mcp: { all: ${server(packaged("everything"))} }`);
    const { code, stdout } = await place.flow(["run", "agent.yaml"]);
    expect([code, stdout]).toEqual([0, "said: Echo: hi\n"]);
    const events = place.events();
    const [started] = events.flatMap((event) => (event.type === "agent.started" ? [event] : []));
    expect(started?.tools).toContain("mcp__all__echo");
    expect(started?.tools).not.toContain("mcp__all__get-sum");
    const images = events.filter(
      (event) => event.type === "message" && JSON.stringify(event.message).includes('"image/png"'),
    );
    expect(images).toHaveLength(1);
  });

  it("need a rule, which is named when nobody can be asked", async () => {
    agentThat([{ name: "mcp__it__echo", args: {} }], "", "mcp: [it]");
    withServers(`mcp: { it: ${server(nasty, "")} }`);
    const { code, stderr } = await place.flow(["run", "agent.yaml"]);
    expect(code).toBe(6);
    expect(stderr).toContain("--allow 'mcp__it__echo'");
    expect(await place.flow(["run", "agent.yaml", "--allow", "mcp__it__echo"])).toMatchObject({ code: 0 });
  });

  it("are told apart by their servers, and those that a list names are the only ones", async () => {
    agentThat(
      [{ name: "mcp__two__echo", args: { say: "2" } }],
      "",
      "tools: [mcp__one__fail, 'mcp__two__*'], permissions: { 'mcp__*': allow }",
    );
    withServers(`mcp: { one: ${server(nasty, "")}, two: ${server(nasty, "")} }`);
    expect(await place.flow(["run", "agent.yaml"])).toMatchObject({ code: 0, stdout: "said: echo: 2\n" });
    const [started] = place.events().flatMap((event) => (event.type === "agent.started" ? [event] : []));
    expect(started?.tools.filter((name) => name.startsWith("mcp__one"))).toEqual(["mcp__one__fail"]);
    expect(started?.tools).not.toContain("Read");
  });

  it("that fail or crash are an error the model can read", async () => {
    const calls = [
      { name: "mcp__it__fail", args: {} },
      { name: "mcp__it__echo", args: {} },
      { name: "mcp__it__crash", args: {} },
    ];
    agentThat(calls, "", "mcp: [it], permissions: { mcp__it: allow }");
    withServers(`mcp: { it: ${server(nasty, "")} }`);
    const { code, stdout } = await place.flow(["run", "agent.yaml"]);
    expect(code).toBe(0);
    expect(stdout).toContain("the MCP server `it` is gone: it ended (exit code 9)");
    const texts = place
      .events()
      .flatMap((event) => (event.type === "tool.finished" ? [`${event.status} ${event.text}`] : []));
    expect(texts).toEqual(["error the disk is on fire", "completed echo: ", expect.stringMatching(/^error .*is gone/)]);
    expect(place.events().filter(({ type }) => type === "mcp.warning")).toHaveLength(1);
  });
});

describe("a server that is not there", () => {
  it("fails the step before a token is spent, with what to do", async () => {
    agentThat([], "", "mcp: [it]");
    withServers(`mcp: { it: ${server(nasty, "exit-at-once")} }`);
    const { code, stderr } = await place.flow(["run", "agent.yaml"]);
    expect(code).toBe(3);
    expect(stderr).toMatch(/the MCP server `it` .*it ended \(exit code 3\).*no licence found/s);
    expect(stderr).toContain("required: false");
    expect(place.events().map(({ type }) => type)).not.toContain("turn.started");
  });

  it("is a warning where it is not required", async () => {
    agentThat([], "", "mcp: [it, gone]");
    place.write("replies.yaml", "agents: { a: [{ text: without }] }\n");
    withServers(`mcp: { it: ${server(nasty, "")}, gone: { command: no-such-server, required: false } }`);
    expect(await place.flow(["run", "agent.yaml"])).toMatchObject({
      code: 0,
      stdout: "said: without\n",
      stderr: expect.stringContaining("warning mcp gone: it is not there, and not required"),
    });
  });

  it("is told by the variable that the project's file reads", async () => {
    place.write(".mcp.json", JSON.stringify({ mcpServers: { it: { command: node, args: [nasty, "${WAY}"] } } }));
    place.write(
      "w.yaml",
      "steps: { a: { tool: mcp__it__echo, with: { say: '${WAY}' } } }\noutputs: { said: '${{ steps.a.outputs.text }}' }\n",
    );
    expect(await place.flow(["run", "w.yaml"])).toMatchObject({
      code: 3,
      stderr: expect.stringContaining("reads WAY, and no such environment variable is set"),
    });
    expect(await place.flow(["run", "w.yaml"], { env: { WAY: "prints" } })).toMatchObject({
      code: 0,
      stdout: "said: echo: ${WAY}\n",
    });
  });
});

describe("what a server is given", () => {
  const canary = "canary-5f1c9e77";

  it("are the secrets of `mcp` and `env`, which no shell of the agent and no log sees", async () => {
    const calls = [
      { name: "mcp__it__env", args: {} },
      { name: "Bash", args: { command: "env" } },
    ];
    agentThat(
      calls,
      'env: { FROM_STEP: "${{ secrets.TOKEN }}" }',
      "mcp: [it], permissions: { mcp__it: allow, Bash: allow }",
    );
    withServers(
      `secrets: [TOKEN]\nmcp: { it: { command: ${node}, args: [${nasty}], env: { FROM_MCP: "\${{ secrets.TOKEN }}" } } }`,
    );
    const { code, stdout } = await place.flow(["run", "agent.yaml"], {
      env: { TOKEN: canary, OPENAI_API_KEY: "sk-other-canary" },
    });
    expect(code).toBe(0);
    const results = place.events().flatMap((event) => (event.type === "tool.finished" ? [event.text] : []));
    expect(JSON.parse(results[0] ?? "")).toMatchObject({ FROM_STEP: "***", FROM_MCP: "***" });
    expect(results[0]).not.toContain("OPENAI_API_KEY");
    expect(results[1]).not.toMatch(/FROM_STEP|FROM_MCP|TOKEN=/);
    expect(place.log() + stdout).not.toContain(canary);
  });

  it("are variables of the project's file, masked where they are credentials", async () => {
    place.write(
      ".mcp.json",
      JSON.stringify({ mcpServers: { it: { command: node, args: [nasty], env: { KEY: "${MY_API_KEY}" } } } }),
    );
    place.write("w.yaml", "steps: { a: { tool: mcp__it__env } }\n");
    expect(await place.flow(["run", "w.yaml"], { env: { MY_API_KEY: canary } })).toMatchObject({ code: 0 });
    expect(place.log()).toContain('\\"KEY\\":\\"***\\"');
    expect(place.log()).not.toContain(canary);
  });
});

describe("a server with keys of the other kind", () => {
  it.each([
    ['{ url: "http://127.0.0.1:1/mcp", args: [a] }', "`args` means nothing beside `url`"],
    ['{ url: "http://127.0.0.1:1/mcp", env: { A: b } }', "`env` means nothing beside `url`"],
    ['{ url: "http://127.0.0.1:1/mcp", type: stdio }', "`type: stdio` does not go with `url`"],
    ["{ command: node, headers: { A: b } }", "`headers` means nothing beside `command`"],
    ["{ command: node, type: http }", "`type: http` does not go with `command`"],
  ])("is refused where it is: %s", async (definition, message) => {
    place.write("w.yaml", `mcp: { it: ${definition} }\nsteps: { a: { tool: mcp__it__echo } }\n`);
    const { code, stdout } = await place.flow(["validate", "w.yaml"]);
    expect([code, stdout]).toEqual([2, expect.stringContaining(`error FLOW2009: ${message}`) as string]);
  });

  it("is told of in `.mcp.json`, which other programs use too", async () => {
    place.write(".mcp.json", JSON.stringify({ mcpServers: { it: { command: node, args: [nasty], headers: {} } } }));
    place.write("w.yaml", "steps: { a: { tool: mcp__it__env } }\n");
    const { code, stderr } = await place.flow(["run", "w.yaml"]);
    expect([code, stderr]).toEqual([0, expect.stringContaining("`headers` means nothing beside `command`") as string]);
  });
});

describe("a `.mcp.json` without servers", () => {
  it.each(["[]", "{}", '{ "mcpservers": {} }', '{ "mcpServers": [] }'])(
    "that holds %s is told where it is",
    async (text) => {
      place.write(".mcp.json", text);
      place.write("w.yaml", "steps: { a: { tool: mcp__it__echo } }\n");
      const { code, stdout } = await place.flow(["validate", "w.yaml"]);
      expect([code, stdout]).toEqual([2, expect.stringContaining(".mcp.json:1:1 warning FLOW2003") as string]);
    },
  );
});

describe("the servers of a run", () => {
  it("are started once, but those with an environment of their step's own once for each", async () => {
    place.write(
      "w.yaml",
      `mcp: { it: ${server(nasty, "", join(place.folder, "started"))}, lazy: ${server(nasty, "", "never")} }
steps:
  many: { tool: mcp__it__echo, foreach: [a, b, c], with: { say: "\${{ item }}" } }
  own: { tool: mcp__it__echo, env: { A: b }, needs: many }
  lazy: { tool: mcp__lazy__echo, needs: own, if: "steps.own.outputs.text == 'never'" }
`,
    );
    expect(await place.flow(["run", "w.yaml"])).toMatchObject({ code: 0 });
    expect(place.read("started").trim().split("\n")).toHaveLength(2);
    expect(existsSync(join(place.folder, "never"))).toBe(false);
    expect(alive(join(place.folder, "started"))).toBe(0);
  });

  it.each([
    ["cancelled", "SIGINT", 130],
    ["killed", "SIGKILL", null],
  ] as const)("leave no process when it is %s, however stubborn", { timeout: 40_000 }, async (_, signal, code) => {
    place.write(
      "w.yaml",
      `mcp: { it: ${server(nasty, "stubborn", join(place.folder, "started"))} }\nsteps: { a: { tool: mcp__it__hang } }\n`,
    );
    const running = place.start(["run", "w.yaml"]);
    await running.said("mcp it started");
    const isAlive = (): boolean => alive(join(place.folder, "started")) > 0;
    expect(isAlive()).toBe(true);
    running.kill(signal);
    expect((await running.ended).code).toBe(code);
    for (let tries = 0; isAlive() && tries < 50; tries++) await delay(100);
    expect(isAlive()).toBe(false);
  });

  it("time out when they hang, as the step says", async () => {
    place.write(
      "w.yaml",
      `mcp: { it: { command: ${node}, args: [${nasty}], timeout: 300ms } }\nsteps: { a: { tool: mcp__it__hang } }\n`,
    );
    expect(await place.flow(["run", "w.yaml"])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("it gave no answer within 0.3 s"),
    });
  });
});

describe("flow.lock", () => {
  const lockable = (): void =>
    place.write(
      "w.yaml",
      `mcp: { it: ${server(nasty, "", "state")} }\nsteps: { a: { tool: mcp__it__echo, with: { say: x } } }\n`,
    );

  it("is written by `flow mcp lock`, and what it holds is what a server may offer", async () => {
    lockable();
    expect(await place.flow(["run", "w.yaml"])).toMatchObject({
      code: 0,
      stderr: expect.stringContaining("its tools are not pinned (`flow mcp lock`)"),
    });
    expect(await place.flow(["mcp", "lock", "w.yaml"])).toMatchObject({
      code: 0,
      stdout: "w.yaml#it: pinned 11 tools\n",
    });
    const text = place.read("flow.lock");
    expect(await place.flow(["run", "w.yaml"])).toMatchObject({
      code: 0,
      stderr: expect.not.stringContaining("not pinned"),
    });
    expect(await place.flow(["mcp", "lock", "w.yaml"])).toMatchObject({ code: 0, stdout: "w.yaml#it: as it was\n" });
    expect(place.read("flow.lock")).toBe(text);
  });

  it("refuses a server: it is refused when its tools are not those that were pinned", async () => {
    lockable();
    await place.flow(["mcp", "lock", "w.yaml"]);
    place.write("state.poisoned", "");
    const { code, stderr } = await place.flow(["run", "w.yaml"]);
    expect(code).toBe(3);
    expect(stderr).toContain("does not offer what flow.lock says: added `exfiltrate`; removed `env`; changed `echo`");
    expect(stderr).toContain("flow mcp lock w.yaml");
    expect(await place.flow(["mcp", "list", "w.yaml"])).toMatchObject({
      code: 3,
      stdout: expect.stringContaining("CHANGED since it was pinned: added `exfiltrate`"),
    });
    expect(await place.flow(["mcp", "lock", "w.yaml"])).toMatchObject({
      code: 0,
      stdout: "w.yaml#it: added `exfiltrate`; removed `env`; changed `echo`\n",
    });
    expect(await place.flow(["run", "w.yaml"])).toMatchObject({ code: 0 });
  });

  it("aside, a server gains nothing by what its descriptions say", async () => {
    agentThat([{ name: "mcp__it__exfiltrate", args: {} }], "", "mcp: [it], permissions: { mcp__it__echo: allow }");
    withServers(`mcp: { it: ${server(nasty, "", "state")} }`);
    place.write("state.poisoned", "");
    expect(await place.flow(["run", "agent.yaml"])).toMatchObject({ code: 6 });
  });

  it("that cannot be read stops whatever needs a server", async () => {
    lockable();
    place.write("flow.lock", "<<<<<<< HEAD\n");
    expect(await place.flow(["run", "w.yaml"])).toMatchObject({
      code: 3,
      stderr: expect.stringContaining("flow.lock cannot be used: it is not JSON"),
    });
  });
});

describe("flow mcp", () => {
  const projects = (): void =>
    place.write(
      ".mcp.json",
      JSON.stringify({
        mcpServers: {
          files: { command: node, args: [packaged("filesystem"), "${ROOT:-.}"] },
          memory: { command: node, args: [packaged("memory")] },
        },
      }),
    );

  it("lists what the servers of a project offer", async () => {
    projects();
    const { code, stdout } = await place.flow(["mcp", "list", "--json"]);
    const { servers } = JSON.parse(stdout) as { servers: { name: string; tools: { called: string }[] }[] };
    expect([code, servers.map(({ name }) => name)]).toEqual([0, ["files", "memory"]]);
    expect(servers[1]?.tools.map(({ called }) => called)).toContain("mcp__memory__create_entities");
    expect(await place.flow(["mcp", "list"])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^files \(\.mcp\.json\): \d+ tools, not pinned\n {2}mcp__files__/),
    });
  });

  it("calls one tool, with arguments of the types its schema wants", async () => {
    projects();
    place.write("notes.txt", "one\ntwo\nthree\n");
    expect(
      await place.flow(["mcp", "call", "files", "read_text_file", "-a", "path=notes.txt", "-a", "head=1"]),
    ).toMatchObject({ code: 0, stdout: "one\n" });
    expect(
      await place.flow(["mcp", "call", "files", "mcp__files__read_text_file", "--args", '{"path":"/etc/passwd"}']),
    ).toMatchObject({ code: 1, stderr: expect.stringContaining("Access denied") });
    expect(await place.flow(["mcp", "call", "files", "nope"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("has no tool `nope`; it has `read_file`"),
    });
    expect(await place.flow(["mcp", "call", "nope", "x"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(
        "there is no server `nope` in a configuration or in .mcp.json; there are `files`, `memory`",
      ),
    });
  });

  it("probes any program, and says what failed", async () => {
    const { code, stdout } = await place.flow(["mcp", "probe", "--json", node, packaged("memory")]);
    expect([code, JSON.parse(stdout)]).toEqual([
      0,
      expect.objectContaining({
        ok: true,
        tools: expect.arrayContaining([expect.objectContaining({ tool: "read_graph", outcome: "answered" })]),
      }),
    ]);
    expect(await place.flow(["mcp", "probe", node, nasty, "exit-at-once"])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("it ended (exit code 3)"),
    });
    expect(await place.flow(["mcp", "probe", `http://127.0.0.1:${await freePort()}/mcp`])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("ECONNREFUSED"),
    });
  });
});

describe("a server over HTTP", () => {
  let running: ChildProcess | undefined;
  afterAll(() => running?.kill());

  it("is connected, called and left like one over stdin", async () => {
    const port = await freePort();
    running = spawn(node, [packaged("everything"), "streamableHttp"], {
      env: { ...process.env, PORT: String(port) },
      stdio: "ignore",
    });
    const url = `http://127.0.0.1:${port}/mcp`;
    for (
      let tries = 0;
      tries < 100 &&
      !(await fetch(url).then(
        () => true,
        () => false,
      ));
      tries++
    )
      await delay(100);
    agentThat(
      [{ name: "mcp__web__echo", args: { message: "over HTTP" } }],
      "",
      `mcp: { web: { url: "${url}", headers: { X-Who: me } } }, permissions: { mcp__web: allow }`,
    );
    withServers("");
    expect(await place.flow(["run", "agent.yaml"])).toMatchObject({ code: 0, stdout: "said: Echo: over HTTP\n" });
    expect(await place.flow(["mcp", "call", url, "get-sum", "-a", "a=1", "-a", "b=2"])).toMatchObject({
      code: 0,
      stdout: "The sum of 1 and 2 is 3.\n",
    });
  });
});

/** Processes whose arguments hold this; in a sandbox they do not know their own ids. */
function alive(argument: string): number {
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name) && argumentsOf(name).includes(argument)).length;
}

function argumentsOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === "object" ? (address?.port ?? 0) : 0));
    });
  });
}

describe("flow doctor", () => {
  it("says which servers of the project start", async () => {
    place.write(
      ".mcp.json",
      JSON.stringify({ mcpServers: { it: { command: node, args: [nasty] }, gone: { command: "no-such-server" } } }),
    );
    const { code, stdout } = await place.flow(["doctor"]);
    expect(code).toBe(3);
    expect(stdout).toMatch(/^mcp it +11 tools$/m);
    expect(stdout).toMatch(/^mcp gone +cannot be used: .*no such program/m);
  });
});
