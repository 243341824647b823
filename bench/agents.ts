/**
 * What a turn of an agent costs beside a bare loop over the `openai` SDK and beside agent frameworks: each agent makes five
 * tool calls, one a turn, and ends with a text, all streamed from a small server in a process of its own. Every client is
 * a process of its own too, which loads everything with one agent first; the sides take turns. Frameworks are installed
 * into a temporary folder; one that cannot be is left out, and so are all of them with `RIVALS=0`. Build first:
 * `npm run build`. `node bench/agents.ts [ROUNDS]`
 */
import { type ChildProcess, execFile, execFileSync, fork } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const rounds = Number(process.argv[2] ?? 5);
const clients = join(import.meta.dirname, "agents");
/** Model calls of one agent. */
const turns = 6;
/** Milliseconds a client may take, and bytes it may print. */
const bounds = { timeout: 300_000, maxBuffer: 1 << 24 };

interface Client {
  readonly name: string;
  readonly script: string;
  /** What has to be installed for it. */
  readonly packages?: readonly string[];
}

const all: readonly Client[] = [
  { name: "bare openai SDK", script: "bare.mjs" },
  { name: "flow", script: "flow.mjs" },
  { name: "ai", script: "ai.mjs", packages: ["ai", "@ai-sdk/openai-compatible", "zod"] },
  { name: "@openai/agents", script: "openai-agents.mjs", packages: ["@openai/agents", "openai", "zod"] },
  {
    name: "LangGraph",
    script: "langgraph.mjs",
    packages: ["@langchain/langgraph", "@langchain/openai", "@langchain/core", "zod"],
  },
  { name: "Mastra", script: "mastra.mjs", packages: ["@mastra/core", "@ai-sdk/openai-compatible", "zod"] },
];

/** Agents at once, and milliseconds the server waits before it answers. */
const cases: readonly { readonly agents: number; readonly latency: number; readonly rounds: number }[] = [
  { agents: 1, latency: 0, rounds },
  { agents: 100, latency: 0, rounds },
  { agents: 1000, latency: 0, rounds: Math.ceil(rounds / 4) },
  { agents: 100, latency: 50, rounds: Math.ceil(rounds / 2) },
];

interface Measured {
  /** Milliseconds. */
  readonly wall: number;
  /** Milliseconds of the processor, user and system, of the client's process. */
  readonly cpu: number;
  /** MiB, at the largest. */
  readonly memory: number;
}

await measureAll();

async function measureAll(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "flow-agents-"));
  const server = fork(join(clients, "server.mjs"));
  try {
    const port = await portOf(server);
    const workspace = join(folder, "workspace");
    mkdirSync(join(workspace, ".git"), { recursive: true });
    const present = all.flatMap((client) => prepared(client, folder) ?? []);
    console.log(`Node ${process.version}: ms of the processor a turn, ms of wall time a turn, and MiB; medians`);
    for (const one of cases) await compare(one, present, { port, workspace });
  } finally {
    server.kill();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function portOf(server: ChildProcess): Promise<number> {
  const [port] = (await once(server, "message")) as [number];
  return port;
}

type Prepared = Client & { readonly path: string };

/** The client with its packages beside it, so that an import finds them; undefined when they cannot be had. */
function prepared(client: Client, folder: string): Prepared | undefined {
  const { name, script, packages = [] } = client;
  if (packages.length === 0) return { ...client, path: join(clients, script) };
  if (process.env["RIVALS"] === "0") return undefined;
  const own = join(folder, script);
  mkdirSync(own);
  cpSync(clients, own, { recursive: true });
  const quiet = ["--no-audit", "--no-fund", "--loglevel=error", "--ignore-scripts"];
  try {
    execFileSync("npm", ["install", "--prefix", own, ...quiet, ...packages], { stdio: "pipe", timeout: 240_000 });
    return { ...client, path: join(own, script) };
  } catch (error) {
    console.log(`${name} is left out: ${firstLine(error)}`);
    return undefined;
  }
}

interface Place {
  readonly port: number;
  readonly workspace: string;
}

async function compare(one: (typeof cases)[number], present: readonly Prepared[], place: Place): Promise<void> {
  const took = new Map(present.map((client): [Prepared, Measured[]] => [client, []]));
  for (let round = 0; round < one.rounds; round++) {
    for (const [client, measured] of took) {
      try {
        measured.push(await run(client, one, place));
      } catch (error) {
        console.log(`${client.name}, ${one.agents} agents: ${firstLine(error)}`);
        took.delete(client);
      }
    }
  }
  console.log(`\n${one.agents} agents, ${one.latency} ms, ${one.rounds} rounds`);
  const bare = [...took.values()][0] ?? [];
  const base = median(bare.map(({ cpu }) => cpu));
  for (const [{ name }, measured] of took) {
    const [cpu, wall, memory] = (["cpu", "wall", "memory"] as const).map((key) =>
      median(measured.map((it) => it[key])),
    );
    const perTurn = (ms = Number.NaN): string => (ms / turns / one.agents).toFixed(2).padStart(7);
    console.log(
      `${name.padEnd(16)} cpu ${perTurn(cpu)} x${((cpu ?? 0) / base).toFixed(2)}  wall ${perTurn(wall)}, in all ${((wall ?? 0) / 1000).toFixed(2)} s  ${(memory ?? 0).toFixed(0)} MiB`,
    );
  }
}

async function run(client: Prepared, { agents, latency }: (typeof cases)[number], place: Place): Promise<Measured> {
  const { port, workspace } = place;
  const argv = [client.path, `http://127.0.0.1:${port}/${latency}/v1`, String(agents), workspace];
  const env = { ...process.env, MASTRA_TELEMETRY_DISABLED: "1" };
  const { stdout } = await promisify(execFile)(process.execPath, argv, { ...bounds, env });
  const line = /^measured (.*)$/m.exec(stdout)?.[1];
  if (line === undefined) throw new Error("it measured nothing");
  return JSON.parse(line) as Measured;
}

function firstLine(error: unknown): string {
  const text =
    error instanceof Error && "stderr" in error ? `${error.message}\n${String(error.stderr)}` : String(error);
  return text.split("\n").find((line) => line.includes("rror")) ?? text.slice(0, 200);
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
