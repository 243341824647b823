import { spawnSync } from "node:child_process";
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { sandboxLaunch } from "../../src/process/sandbox.ts";
import { command, Place, project } from "./flow.ts";

const canary = "CANARY-sandbox-cli-9d31";
const node = process.execPath;
const path = process.env["PATH"] ?? "";
const packaged = (name: string): string =>
  join(project, `node_modules/@modelcontextprotocol/server-${name}/dist/index.js`);
const hasSandbox =
  sandboxLaunch({ path, workspace: project, home: "/", network: false, isSecret: () => false }) !== undefined;
if (!hasSandbox) console.log("skipped: this machine has no bubblewrap that works");

let place: Place;
/** A folder beside the workspace, with a home in it; not in `/tmp`, which is another one in the sandbox. */
let beside: string;
beforeEach(() => {
  place = new Place();
  beside = realpathSync(mkdtempSync(join(existsSync("/var/tmp") ? "/var/tmp" : tmpdir(), "flow-beside-")));
  for (const folder of ["home/.ssh", "data"]) mkdirSync(join(beside, folder), { recursive: true });
  writeFileSync(join(beside, "home/.ssh/id_rsa"), canary);
});
afterEach(() => {
  place.remove();
  rmSync(beside, { recursive: true, force: true });
});

const run = (...args: readonly string[]): ReturnType<Place["flow"]> =>
  place.flow(["run", "w.yaml", ...args], { env: { HOME: join(beside, "home") } });

const server = (definition: object): string => `mcp: { it: ${JSON.stringify(definition)} }\n`;

/** Steps that each call one tool of the server `it`, and what the calls gave. */
function stepsThat(calls: readonly (readonly [string, object])[]): string {
  const steps = calls.map(
    ([tool, args], index) =>
      `  s${index}: { tool: mcp__it__${tool}, with: ${JSON.stringify(args)}, continue-on-error: true }\n`,
  );
  const outputs = calls.map((_, index) => {
    const {
      0: text,
      1: content,
      2: message,
    } = ["outputs.text", "outputs.content", "error.message"].map((part) => `steps.s${index}.${part}`);
    return `  s${index}: "\${{ default(${text}, default(${content}, ${message})) }}"\n`;
  });
  return `steps:\n${steps.join("")}outputs:\n${outputs.join("")}`;
}

const warnings = (): string[] => place.events().flatMap((event) => (event.type === "mcp.warning" ? [event.note] : []));

describe.skipIf(!hasSandbox)("an MCP server", () => {
  it("works on the workspace, and reaches neither credentials, git's configuration nor what lies beside", async () => {
    place.write(".env", canary);
    place.git("init", "-q", ".");
    const files = { command: node, args: [packaged("filesystem"), place.folder, beside] };
    const calls = [
      ["write_file", { path: join(place.folder, "a.txt"), content: "a" }],
      ["write_file", { path: join(place.folder, ".git/config"), content: "[core] fsmonitor = evil" }],
      ["write_file", { path: join(place.folder, ".git/commondir"), content: "../evil" }],
      ["write_file", { path: join(place.folder, ".git/hooks/pre-commit"), content: "evil" }],
      ["write_file", { path: join(beside, "data/x"), content: "x" }],
      ["write_file", { path: join(place.folder, ".flow/x"), content: "x" }],
      ["read_text_file", { path: join(place.folder, ".env") }],
      ["read_text_file", { path: join(beside, "home/.ssh/id_rsa") }],
    ] as const;
    place.write("w.yaml", server(files) + stepsThat(calls));
    const { stdout } = await run("--json");
    const { outputs } = JSON.parse(stdout) as { readonly outputs: Readonly<Record<string, string>> };
    expect(outputs["s0"]).toMatch(/Successfully wrote/);
    for (const refused of Object.keys(outputs).slice(1))
      expect([refused, outputs[refused]]).toEqual([refused, expect.stringMatching(/EROFS|EACCES|ENOENT|EXDEV|denied/)]);
    expect(place.read("a.txt")).toBe("a");
    expect(place.read(".git/config")).not.toContain("evil");
    expect(existsSync(join(place.folder, ".git/commondir"))).toBe(false);
    expect(readdirSync(join(beside, "data"))).toEqual([]);
    expect(place.log()).not.toContain(canary);
    expect(warnings().filter((note) => note.includes("`sandbox: off`"))).toHaveLength(1);
  });

  it("keeps its data in the workspace, and elsewhere once its definition says so", async () => {
    const call = ["create_entities", { entities: [{ name: "n", entityType: "t", observations: ["o"] }] }] as const;
    const memory = (file: string, more: object): string =>
      server({ command: node, args: [packaged("memory")], env: { MEMORY_FILE_PATH: file }, ...more }) +
      stepsThat([call])
        .replace(", continue-on-error: true", "")
        .replace(/outputs:[^]*/, "");
    const [inside, outside] = [join(place.folder, "memory.jsonl"), join(beside, "data/memory.jsonl")];
    place.write("w.yaml", memory(inside, {}));
    expect(await run()).toMatchObject({ code: 0 });
    expect(place.read("memory.jsonl")).toContain('"name":"n"');
    place.write("w.yaml", memory(outside, {}));
    const refused = await run();
    expect([refused.code, existsSync(outside)]).toEqual([1, false]);
    expect(refused.stderr).toMatch(/EROFS|ENOENT/);
    place.write("w.yaml", memory(outside, { sandbox: "off" }));
    expect(await run()).toMatchObject({ code: 0 });
    expect(existsSync(outside)).toBe(true);
  });

  it("starts by a runner of packages, which gets a cache of its own", async () => {
    place.write("node_modules/.bin/mine", `#!/bin/sh\nexec ${node} ${packaged("everything")}\n`);
    spawnSync("chmod", ["+x", join(place.folder, "node_modules/.bin/mine")]);
    place.write(
      "w.yaml",
      server({ command: "npx", args: ["--no-install", "mine"] }) + stepsThat([["get-sum", { a: 2, b: 3 }]]),
    );
    expect(await run()).toMatchObject({ code: 0, stdout: "s0: The sum of 2 and 3 is 5.\n" });
    expect(readdirSync(join(beside, "home/.cache/flow/mcp"))).toContain("npm");
    expect(existsSync(join(beside, "home/.npm"))).toBe(false);
  });

  it("that does not start says what the sandbox changes, and starts without one where its agent has none", async () => {
    const script = `require("fs").appendFileSync(${JSON.stringify(join(beside, "data/lock"))}, "x"); import(${JSON.stringify(packaged("everything"))})`;
    const definition = { command: node, args: ["-e", script] };
    place.write("replies.yaml", "agents: { a: [{ text: done }] }\n");
    const agent = (more: string): void =>
      place.write(
        "w.yaml",
        `model: scripted/replies.yaml\n${server(definition)}steps: { a: { agent: { name: a, prompt: hi, mcp: [it]${more} } } }\n`,
      );
    agent("");
    const { code, stderr } = await run();
    expect(code).toBe(3);
    expect(stderr).toContain("cannot be used in the sandbox (`sandbox: off` leaves it out): it ended");
    expect((await place.flow(["mcp", "list", "w.yaml"])).stdout).toMatch(
      /EROFS.*only the workspace and .*\.cache\/flow\/mcp can be written/s,
    );
    agent(", sandbox: off");
    expect(await run()).toMatchObject({ code: 0 });
    expect(existsSync(join(beside, "data/lock"))).toBe(true);
  });

  it("reaches the network, and is not started at all where a sandbox is wanted and there is none", async () => {
    const listening = createServer((socket) => socket.end("hello"));
    await new Promise<void>((resolve) => listening.listen(0, "127.0.0.1", resolve));
    const address = listening.address();
    const port = typeof address === "object" ? (address?.port ?? 0) : 0;
    const script = `require("net").connect(${port}, "127.0.0.1").on("data", () => import(${JSON.stringify(packaged("everything"))}))`;
    place.write("w.yaml", server({ command: node, args: ["-e", script] }) + stepsThat([["get-sum", { a: 2, b: 3 }]]));
    expect(await run()).toMatchObject({ code: 0, stdout: "s0: The sum of 2 and 3 is 5.\n" });
    listening.close();
    const wanting = server({ command: node, args: [packaged("everything")], sandbox: "on" });
    place.write("w.yaml", `${wanting}steps: { a: { tool: mcp__it__get-sum, with: { a: 2, b: 3 } } }\n`);
    mkdirSync(join(place.folder, "empty"));
    const env = { PATH: join(place.folder, "empty"), HOME: join(beside, "home") };
    const { code, stderr } = await place.flow(["run", "w.yaml"], { env });
    expect([code, stderr]).toEqual([
      3,
      expect.stringMatching(/it is to have a sandbox, and this machine has no bubblewrap/),
    ]);
  });

  it("is in it too where `.mcp.json` defines it and a command asks it", async () => {
    const definition = { command: node, args: [packaged("filesystem"), place.folder, beside] };
    const call = (name: string): Promise<{ readonly code: number | null }> =>
      place.flow(["mcp", "call", name, "write_file", "-a", `path=${join(beside, "data", name)}`, "-a", "content=x"], {
        env: { HOME: join(beside, "home") },
      });
    place.write(
      ".mcp.json",
      JSON.stringify({ mcpServers: { held: definition, free: { ...definition, sandbox: "off" } } }),
    );
    expect([(await call("held")).code, (await call("free")).code]).toEqual([1, 0]);
    expect(readdirSync(join(beside, "data"))).toEqual(["free"]);
    place.write(".mcp.json", JSON.stringify({ mcpServers: { held: { ...definition, sandbox: "of" } } }));
    const { code, stderr } = await place.flow(["mcp", "list"]);
    expect([code, stderr]).toEqual([2, expect.stringContaining("`sandbox` must be")]);
  });
});

/** Nobody's id, and no entry in any list of users. */
const plain = 43_210;
const asPlain = ["--reuid", `${plain}`, "--regid", `${plain}`, "--clear-groups", "--"];
const canBePlain =
  process.getuid?.() === 0 && spawnSync("setpriv", [...asPlain, node, command, "--version"]).status === 0;
if (!canBePlain) console.log("skipped: only root can be a plain user as well (setpriv), and this is not root");

describe.skipIf(!hasSandbox || !canBePlain)("for a plain user", () => {
  function flowAsPlain(...args: readonly string[]): { readonly status: number | null; readonly stdout: string } {
    spawnSync("chown", ["-R", `${plain}:${plain}`, place.folder, beside]);
    const env = { PATH: path, HOME: join(beside, "home") };
    return spawnSync("setpriv", [...asPlain, node, command, ...args], { cwd: place.folder, env, encoding: "utf8" });
  }

  it.each([
    ["reading credentials", "cat $E $K/*; cat /proc/*/environ"],
    ["uncovering them", "umount $E $K; unshare -rm sh -c 'umount $E; umount $K; cat $E $K/*'"],
    ["another view of them", "unshare -rm sh -c 'mkdir v; mount --bind . v; cat v/$E; mount --rbind . v; cat v/$E'"],
    ["writing outside", `echo ${canary} > BESIDE/data/x; ln -s BESIDE/data d; echo ${canary} > d/y; cp $E BESIDE/data`],
    [
      "making the system writable",
      "unshare -rm sh -c 'mount -o remount,rw /; mount -o remount,bind,rw /; touch BESIDE/data/x'",
    ],
    ["planting a hook", "mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit; git config core.fsmonitor evil"],
    ["gaining rights", "id -u; sudo -n id; su -c id"],
    ["leaving a process", "(setsid nohup sleep 4243 &)"],
  ])("the sandbox holds against %s", (_what, script) => {
    place.write(".env", canary);
    place.git("init", "-q", ".");
    // The rules would not let the names through.
    const names = "export E=$(printf .%s env) K=$HOME/$(printf .%s ssh)";
    const call = { name: "Bash", args: { command: `${names}; ${script.replaceAll("BESIDE", beside)}; echo over` } };
    place.write("replies.yaml", `agents: { a: [{ calls: [${JSON.stringify(call)}] }, { text: done }] }\n`);
    place.write(
      "w.yaml",
      "model: scripted/replies.yaml\nsteps: { a: { agent: { name: a, prompt: hi, sandbox: on } } }\n",
    );
    const { status } = flowAsPlain("run", "w.yaml", "--profile", "full");
    expect(status).toBe(0);
    expect(place.events().flatMap((event) => (event.type === "agent.started" ? [event.sandbox] : []))).toEqual(["on"]);
    const [said] = place.events().flatMap((event) => (event.type === "tool.finished" ? [event.text] : []));
    expect(said).toContain("over");
    expect(said).not.toContain(canary);
    expect(readdirSync(join(beside, "data"))).toEqual([]);
    expect(place.read(".git/config")).not.toContain("evil");
    expect(existsSync(join(place.folder, ".git/hooks/pre-commit"))).toBe(false);
    expect(spawnSync("pgrep", ["-u", `${plain}`, "sleep"], { encoding: "utf8" }).stdout).toBe("");
  });

  it("servers work as they do for root", () => {
    const files = { command: node, args: [packaged("filesystem"), place.folder, beside] };
    const calls = [
      ["write_file", { path: join(place.folder, "a.txt"), content: "a" }],
      ["write_file", { path: join(beside, "data/x"), content: "x" }],
    ] as const;
    chownSync(place.folder, plain, plain);
    place.write("w.yaml", server(files) + stepsThat(calls));
    expect(flowAsPlain("run", "w.yaml").stdout).toMatch(/^s0: Successfully wrote.*\ns1: .*(EROFS|ENOENT)/);
    expect(place.read("a.txt")).toBe("a");
  });
});
