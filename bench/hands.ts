/**
 * What an agent's hands cost: verdicts of the rules, a command in the sandbox beside the same without it, Grep and Glob over
 * 20,000 files beside `rg` alone, and a call of an MCP server beside the vendor's own client. The sides take turns; times
 * are medians, and processor time counts this process and all it started (Linux).
 * `node bench/hands.ts [verdicts|asking|sandbox|search|mcp …]`; `asking` needs the built command (`npm run build`).
 */
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { rgPath } from "@vscode/ripgrep";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { connect } from "../src/mcp/connect.ts";
import type { JsonObject } from "../src/model/json.ts";
import { createPermissions } from "../src/permissions/index.ts";
import { Marks } from "../src/process/marks.ts";
import type { Launch } from "../src/process/namespace.ts";
import { runProcess } from "../src/process/run.ts";
import { sandboxLaunch } from "../src/process/sandbox.ts";
import { createTools } from "../src/tools/index.ts";
import { canonicalToolName, toolNames } from "../src/tools/names.ts";
import { isSecretFile } from "../src/tools/secret-files.ts";
import { honest, honestRules } from "../test/permissions/honest.ts";

const parts: { readonly [name: string]: (folder: string) => Promise<void> } = {
  verdicts,
  asking,
  sandbox,
  search,
  mcp,
};
const path = process.env["PATH"] ?? "";
const signal = new AbortController().signal;

const wanted = process.argv.slice(2);
for (const [name, measurePart] of Object.entries(parts)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "flow-bench-")));
  mkdirSync(join(folder, ".git"));
  await measurePart(folder);
  rmSync(folder, { recursive: true });
}

/** Milliseconds of one round. */
interface Took {
  readonly wall: number;
  readonly cpu: number;
}
type Side = readonly [name: string, round: () => Promise<unknown>];

/** Each side in turn. The first round is not counted. Of `calls` calls a round: the figures of one. */
async function inTurn(sides: readonly Side[], { rounds, calls }: { rounds: number; calls: number }): Promise<Took[]> {
  const took = sides.map((): Took[] => []);
  for (let round = 0; round <= rounds; round++) {
    for (const [index, [, work]] of sides.entries()) {
      const [begun, spent] = [performance.now(), processorTime()];
      await work();
      const one = { wall: performance.now() - begun, cpu: processorTime() - spent };
      if (round > 0) took[index]?.push(one);
    }
  }
  return took.map((all) => ({
    wall: median(all.map(({ wall }) => wall)) / calls,
    // What children took is counted in ticks of 10 ms: too coarse for one round.
    cpu: all.reduce((sum, { cpu }) => sum + cpu, 0) / all.length / calls,
  }));
}

async function compare(title: string, sides: readonly Side[], how: { rounds: number; calls: number }): Promise<void> {
  const took = await inTurn(sides, how);
  const [first = { wall: Number.NaN, cpu: Number.NaN }] = took;
  console.log(`${title}, ${how.rounds} rounds of ${how.calls}`);
  for (const [index, { wall, cpu }] of took.entries()) {
    const wallText = `${wall.toFixed(2).padStart(8)} ms x${(wall / first.wall).toFixed(2)}`;
    const cpuText = `${cpu.toFixed(2).padStart(8)} ms x${(cpu / first.cpu).toFixed(2)}`;
    console.log(`  ${(sides[index]?.[0] ?? "").padEnd(42)}${wallText.padEnd(20)} processor ${cpuText}`);
  }
}

async function verdicts(folder: string): Promise<void> {
  const vocabulary = { tools: toolNames, canonical: canonicalToolName, isSecret: isSecretFile };
  const permissions = createPermissions({ vocabulary, ownTools: [], workspace: folder, home: homedir(), allowed: [] });
  if (!permissions.ok) throw new Error(permissions.error);
  const allow = honestRules.allow.map((command) => `Bash(${command} *)`);
  const more = [
    "Read(src/**)",
    "Edit(src/**/*.ts)",
    "mcp__github__get_*",
    "mcp__files__*",
    "WebFetch(domain:example.org)",
  ];
  const rights = permissions.value.forAgent([
    { layer: "workflow", permissions: { allow: [...allow, ...more], deny: ["Bash(rm *)", "Read(src/private/**)"] } },
  ]);
  const files = Array.from({ length: 200 }, (_, at) => `${at % 3 === 0 ? "src" : "src/deep/er"}/file-${at}.ts`);
  mkdirSync(join(folder, "src/deep/er"), { recursive: true });
  for (const file of files) writeFileSync(join(folder, file), "");
  const calls: { readonly [kind: string]: readonly { readonly tool: string; readonly args: JsonObject }[] } = {
    "bash commands, honest": honest.map((command) => ({ tool: "Bash", args: { command } })),
    paths: files.map((file_path, index) => ({ tool: index % 2 === 0 ? "Read" : "Edit", args: { file_path } })),
    "tools of MCP servers": Array.from({ length: 200 }, (_, index) => ({
      tool: `mcp__${index % 2 === 0 ? "github__get_issue" : "files__read"}`,
      args: { number: index },
    })),
  };
  console.log(`verdicts under ${allow.length + more.length + 2} rules, processor time`);
  for (const [kind, some] of Object.entries(calls)) {
    const round = async (): Promise<void> => {
      for (const call of some) await rights.judge(call);
    };
    const [took] = await inTurn([[kind, round]], { rounds: 10, calls: some.length });
    const each = took?.cpu ?? Number.NaN;
    console.log(
      `  ${kind.padEnd(40)} ${(each * 1000).toFixed(0).padStart(8)} µs   ${Math.round(1000 / each)} a second`,
    );
  }
}

/** From a reply of the model to the refusal of a call that nobody is there to allow, by the log of a run. */
async function asking(folder: string): Promise<void> {
  const calls = Array.from({ length: 60 }, (_, index) =>
    index % 2 === 0
      ? { name: "Bash", args: { command: `touch file-${index}` } }
      : { name: "Write", args: { file_path: `file-${index}`, content: "x" } },
  );
  const agent = "{ agent: { name: a, instructions: You., tools: [Bash, Write] }, prompt: go }";
  writeFileSync(join(folder, "w.yaml"), `model: scripted/r.yaml\nsteps:\n  a: ${agent}\n`);
  writeFileSync(join(folder, "r.yaml"), `agents: { a: [${JSON.stringify({ calls })}, { text: done }] }\n`);
  const flow = fileURLToPath(new URL("../dist/flow.cjs", import.meta.url));
  const run = spawn(process.execPath, [flow, "run", "w.yaml", "--json"], {
    cwd: folder,
    stdio: ["ignore", "pipe", "ignore"],
  });
  let printed = "";
  run.stdout.setEncoding("utf8").on("data", (text: string) => (printed += text));
  await once(run, "close");
  const { log } = JSON.parse(printed) as { readonly log: string };
  const lines = readFileSync(log, "utf8").trim().split("\n");
  const events = lines.map((line) => JSON.parse(line) as { readonly type: string; readonly time: string });
  const begun = events.find((event) => event.type === "message" && JSON.stringify(event).includes('"call"'));
  const refused = events.filter(({ type }) => type === "tool.finished").map(({ time }) => Date.parse(time));
  const whole = Math.max(...refused) - Date.parse(begun?.time ?? "");
  console.log(
    `asking where nobody is: ${refused.length} calls of one reply refused within ${whole} ms, target 100 each`,
  );
}

async function sandbox(folder: string): Promise<void> {
  const launch = sandboxLaunch({ path, workspace: folder, home: homedir(), network: false, isSecret: isSecretFile });
  if (launch === undefined) return console.log("sandbox: there is no bubblewrap that works");
  const marks = new Marks("bench");
  const argv = ["bash", "--noprofile", "--norc", "-c", "true"];
  const times = 20;
  const ours = async (how: { readonly launch?: Launch }): Promise<void> => {
    for (let left = times; left > 0; left--)
      await runProcess({ argv, cwd: folder, env: { PATH: path }, marks, ...how });
  };
  const bare = async (prefix: readonly string[]): Promise<void> => {
    for (let left = times; left > 0; left--) {
      const [program = "", ...args] = [...prefix, ...argv];
      const running = spawn(program, args, { cwd: folder, env: { PATH: path }, stdio: ["ignore", "pipe", "pipe"] });
      running.stdout.resume();
      running.stderr.resume();
      await once(running, "close");
    }
  };
  await compare(
    "bash -c true",
    [
      ["a bare spawn", () => bare([])],
      ["a bare spawn of bwrap with our arguments", () => bare(launch.prefix)],
      ["flow, no sandbox", () => ours({})],
      ["flow, sandbox", () => ours({ launch })],
    ],
    { rounds: 7, calls: times },
  );
}

async function search(folder: string): Promise<void> {
  for (let index = 0; index < 20_000; index++) {
    const place = join(folder, `package-${index % 20}`, `part-${index % 200}`);
    if (index < 200) mkdirSync(place, { recursive: true });
    const rare = index % 1000 === 0 ? "const needle = 1;\n" : "";
    writeFileSync(
      join(place, `file-${index}.${index % 10 === 0 ? "md" : "ts"}`),
      `${"export const one = 1;\n".repeat(40)}${rare}`,
    );
  }
  const tools = createTools({ marks: new Marks("bench"), environment: {} });
  const tool = (name: string, args: JsonObject) => async (): Promise<void> => {
    const answer = await tools.find((one) => one.name === name)?.run(args, { workspace: folder, signal });
    if (answer?.ok !== true) throw new Error(`${name}: ${answer?.error}`);
  };
  const rg =
    (...args: readonly string[]) =>
    async (): Promise<void> => {
      const running = spawn(rgPath, [...args, "./"], { cwd: folder, stdio: ["ignore", "pipe", "ignore"] });
      running.stdout.resume();
      await once(running, "close");
    };
  const files = ["--no-config", "--hidden", "--files-with-matches"];
  const glob = ["--no-config", "--hidden", "--no-ignore", "--files"];
  const how = { rounds: 5, calls: 1 };
  await compare(
    "Grep, 20 of 20,000 files",
    [
      ["rg", rg(...files, "needle")],
      ["rg --sort=path", rg("--sort=path", ...files, "needle")],
      ["Grep, files", tool("Grep", { pattern: "needle" })],
      ["Grep, content", tool("Grep", { pattern: "needle", output_mode: "content" })],
    ],
    how,
  );
  await compare(
    "Grep, all of 20,000 files, 250 shown",
    [
      ["rg", rg(...files, "export")],
      ["rg --sort=path", rg("--sort=path", ...files, "export")],
      ["Grep, files", tool("Grep", { pattern: "export" })],
      ["Grep, content", tool("Grep", { pattern: "export", output_mode: "content" })],
    ],
    how,
  );
  await compare(
    "Glob, 20 of 20,000 files",
    [
      ["rg --files", rg(...glob, "--glob=/**/file-*000.md")],
      ["rg --files --sort=path", rg("--sort=path", ...glob, "--glob=/**/file-*000.md")],
      ["Glob", tool("Glob", { pattern: "**/file-*000.md" })],
    ],
    how,
  );
  await compare(
    "Glob, 18,000 of 20,000 files, 1,000 shown",
    [
      ["rg --files", rg(...glob, "--glob=/**/*.ts")],
      ["rg --files --sort=path", rg("--sort=path", ...glob, "--glob=/**/*.ts")],
      ["Glob", tool("Glob", { pattern: "**/*.ts" })],
    ],
    how,
  );
}

async function mcp(folder: string): Promise<void> {
  const server = fileURLToPath(import.meta.resolve("@modelcontextprotocol/server-everything/dist/index.js"));
  const client = new Client({ name: "bench", version: "1" });
  await client.connect(new StdioClientTransport({ command: process.execPath, args: [server], stderr: "ignore" }));
  await client.listTools();
  const address = { kind: "stdio", argv: [process.execPath, server], cwd: folder, env: { PATH: path } } as const;
  const connected = await connect(
    { name: "everything", address, callTime: 60_000 },
    { version: "1", marks: new Marks("bench"), note: () => undefined },
  );
  if (!connected.ok) throw new Error(connected.error);
  const echo = connected.value.tools.find(({ name }) => name === "echo");
  if (echo === undefined) throw new Error("the server has no `echo`");
  const calls = 200;
  const args = { message: "The quick brown fox jumps over the lazy dog." };
  await compare(
    "MCP, `echo` of server-everything over stdio",
    [
      [
        "the vendor's client",
        async () => {
          for (let left = calls; left > 0; left--) await client.callTool({ name: "echo", arguments: args });
        },
      ],
      [
        "flow",
        async () => {
          for (let left = calls; left > 0; left--) await connected.value.call(echo, args, signal);
        },
      ],
    ],
    { rounds: 9, calls },
  );
  await connected.value.close();
  await client.close();
}

/** Milliseconds of the processor, of this process and of the children it has seen end. */
function processorTime(): number {
  const { user, system } = process.cpuUsage();
  const own = (user + system) / 1000;
  if (process.platform !== "linux") return own;
  // After the name, which may hold anything; in ticks of 10 ms.
  const fields = readFileSync("/proc/self/stat", "utf8").split(") ")[1]?.split(" ") ?? [];
  return own + (Number(fields[13]) + Number(fields[14])) * 10;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
