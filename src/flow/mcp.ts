import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { projectServersFile } from "../compile/project-servers.ts";
import {
  type CallFailure,
  changeOf,
  type Connection,
  pinKey,
  pinOf,
  type Pins,
  ServerPool,
  type ServerSpec,
  writePins,
} from "../mcp/index.ts";
import { nameTools } from "../mcp/names.ts";
import { isJsonObject, type Json, type JsonObject } from "../model/json.ts";
import { err, ok, type Result } from "../model/result.ts";
import type { ToolOutput } from "../model/ports.ts";
import { stepEnvironment } from "../process/environment.ts";
import { Marks } from "../process/marks.ts";
import { makeTempFolder } from "../process/temp-folder.ts";
import { startWatchdog } from "../process/watchdog.ts";
import { providerKeyNames } from "../providers/key-names.ts";
import { maskEvent } from "../runlog/mask-event.ts";
import { createMask } from "../runlog/redact.ts";
import { workspaceOf } from "../runlog/runs.ts";
import {
  configuredKeys,
  type Found,
  type McpProblem,
  serversInProject,
  serversInWorkflow,
  type ServersRequest,
} from "./find-servers.ts";
import { managedIn } from "./managed.ts";
import { createSandboxes, type Sandboxes } from "./sandboxes.ts";
import { insideSandbox, sandboxHint } from "./server-sandbox.ts";
import { lockName, projectPins } from "./servers.ts";
import { supervise } from "./supervision.ts";
import { version } from "./version.ts";
import { configIn } from "./wishes.ts";

/** A server as it was found. */
export interface ServerReport {
  readonly name: string;
  readonly file: string;
  readonly required: boolean;
  /** Why it cannot be used. */
  readonly problem?: string;
  readonly tools: readonly { readonly name: string; readonly called: string; readonly description: string }[];
  readonly pin: "same" | "none" | { readonly changed: string };
}

/** Starts every server, and says what each offers. */
export async function listServers(request: ServersRequest): Promise<Result<readonly ServerReport[], McpProblem>> {
  return withFound(request, async (servers, pool, pins) =>
    ok(await Promise.all(servers.map((server) => reportOf(server, { pool, pins, request })))),
  );
}

/** Writes into `flow.lock` what every server offers now. Gives what has changed by it, one sentence each. */
export async function lockServers(request: ServersRequest): Promise<Result<readonly string[], McpProblem>> {
  return withFound(request, async (servers, pool, pins) => {
    const connected = await Promise.all(servers.map((server) => open(server, { pool, request })));
    const said: string[] = [];
    const next = new Map(pins);
    for (const [index, server] of servers.entries()) {
      const connection = connected[index];
      if (connection?.ok !== true) return err(unavailable(server, connection?.error ?? ""));
      const key = pinKey(server);
      const [before, now] = [pins.get(key), pinOf(connection.value.tools)];
      const change = before && changeOf(before, now);
      said.push(`${key}: ${before === undefined ? `pinned ${now.size} tools` : (change ?? "as it was")}`);
      next.set(key, now);
    }
    writeFileSync(join(workspaceOf(request.cwd), lockName), writePins(next));
    return ok(said);
  });
}

export interface CallRequest extends Omit<ServersRequest, "servers"> {
  /** The name of a server, or an address. */
  readonly server: string;
  readonly tool: string;
  readonly args: JsonObject;
  /** `key=value` each; a value is what the tool's schema wants it to be. */
  readonly texts: readonly string[];
}

/** The answer of one call; the error inside is what the tool said. */
export async function callServer(request: CallRequest): Promise<Result<Result<ToolOutput, CallFailure>, McpProblem>> {
  if (/^https?:\/\//.test(request.server)) {
    const spec = await addressed([request.server], request);
    return withPool(request, async (pool) => callOn(await pool.own(spec, quiet(request)), request));
  }
  return withFound({ ...request, servers: [request.server] }, async ([server], pool) =>
    server === undefined
      ? err({ kind: "usage", message: `there is no server \`${request.server}\`` })
      : callOn(await open(server, { pool, request }), request),
  );
}

export function textOf({ blocks }: ToolOutput): string {
  return blocks.map((block) => (block.type === "text" ? block.text : `[${block.type}]`)).join("\n");
}

async function withFound<T>(
  request: ServersRequest,
  work: (servers: readonly Sandboxed[], pool: ServerPool, pins: Pins) => Promise<Result<T, McpProblem>>,
): Promise<Result<T, McpProblem>> {
  const found =
    request.file === undefined ? await serversInProject(request) : await serversInWorkflow(request.file, request);
  if (!found.ok) return found;
  const pins = projectPins(workspaceOf(request.cwd));
  if (!pins.ok) return err({ kind: "usage", message: pins.error });
  const { servers: wanted } = request;
  const missing = wanted?.find((name) => !found.value.some((server) => server.name === name));
  if (missing !== undefined) {
    const where = request.file ?? `a configuration or in ${projectServersFile}`;
    const known = found.value.map(({ name }) => `\`${name}\``).join(", ") || "none";
    return err({ kind: "usage", message: `there is no server \`${missing}\` in ${where}; there are ${known}` });
  }
  const sandboxes = await sandboxesFor(request);
  if (!sandboxes.ok) return err({ kind: "unavailable", message: sandboxes.error });
  const around = { workspace: workspaceOf(request.cwd), env: request.env, sandboxes: sandboxes.value };
  const chosen = found.value
    .filter(({ name }) => wanted?.includes(name) !== false)
    .map((server): Sandboxed => {
      const wish = sandboxes.value.wishOfServer(server.definition, undefined);
      const spec = server.spec.ok ? insideSandbox(server.spec.value, { ...around, wish }) : server.spec;
      const hint = (why: string): string | undefined =>
        spec.ok ? sandboxHint(spec.value, why, sandboxes.value) : undefined;
      return { ...server, spec, hint };
    });
  const result = await withPool({ ...request, sandboxes: sandboxes.value }, (pool) => work(chosen, pool, pins.value));
  const names = [...providerKeyNames, ...chosen.flatMap(({ hidden }) => hidden)];
  const secrets = names.map((name) => ({ name, value: request.env[name] ?? "" }));
  return maskEvent(result, createMask(secrets).mask) as typeof result;
}

interface Sandboxed extends Found {
  /** What to know when it cannot be used. */
  readonly hint: (why: string) => string | undefined;
}

/** As a run would have them. */
async function sandboxesFor({ cwd, env }: ServersRequest): Promise<Result<Sandboxes, string>> {
  const place = { cwd, workspace: workspaceOf(cwd), env };
  const [config, managed] = [await configIn(place), await managedIn(place)];
  if (!config.ok) return config;
  if (!managed.ok) return managed;
  return ok(createSandboxes({ env, config: config.value, managed: managed.value }));
}

/** Servers that are gone when the work is done, whatever comes between. */
export async function withPool<T>(
  { env, sandboxes }: Pick<ServersRequest, "env"> & { readonly sandboxes?: Sandboxes },
  work: (pool: ServerPool) => Promise<Result<T, McpProblem>>,
): Promise<Result<T, McpProblem>> {
  const supervision = supervise(env);
  if (!supervision.ok) return err(supervision.error);
  const folder = makeTempFolder();
  const marks = new Marks("mcp", { ...supervision.value, watch: (mark) => startWatchdog({ mark, folder }) });
  const sandbox = sandboxes && ((workspace: string) => sandboxes.servers(workspace));
  const pool = new ServerPool({ version, marks, ...(sandbox && { sandbox }) });
  try {
    return await work(pool);
  } finally {
    await pool.close();
    await marks.end();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A server that nothing defines: an address, or a program with its arguments. */
export async function addressed(
  target: readonly string[],
  place: Pick<ServersRequest, "env" | "cwd">,
): Promise<ServerSpec> {
  const { env, cwd } = place;
  const [first = ""] = target;
  const callTime = 30_000;
  if (/^https?:\/\//.test(first)) return { name: "it", callTime, address: { kind: "http", url: first, headers: {} } };
  const providerKeys = await configuredKeys(place);
  const inherited = stepEnvironment({ inherited: env, providerKeys, secrets: [], own: {} });
  return { name: "it", callTime, address: { kind: "stdio", argv: target, cwd, env: inherited } };
}

export function quiet({ signal }: Pick<ServersRequest, "signal">): {
  readonly note: () => void;
  readonly signal: AbortSignal;
} {
  return { note: () => undefined, signal };
}

interface Opening {
  readonly pool: ServerPool;
  readonly request: Pick<ServersRequest, "signal">;
}

async function open({ spec, hint }: Sandboxed, { pool, request }: Opening): Promise<Result<Connection, string>> {
  if (!spec.ok) return spec;
  const connected = await pool.own(spec.value, quiet(request));
  if (connected.ok) return connected;
  const more = hint(connected.error);
  return more === undefined ? connected : err(`${connected.error}\n${more}`);
}

async function reportOf(
  server: Sandboxed,
  { pins, ...opening }: Opening & { readonly pins: Pins },
): Promise<ServerReport> {
  const { name, file, required } = server;
  const pin = pins.get(pinKey(server));
  const connected = await open(server, opening);
  if (!connected.ok) return { name, file, required, problem: connected.error, tools: [], pin: pin ? "same" : "none" };
  const { tools } = connected.value;
  const { names } = nameTools(
    name,
    tools.map((tool) => tool.name),
  );
  const change = pin && changeOf(pin, pinOf(tools));
  return {
    name,
    file,
    required,
    tools: tools.map((tool) => ({
      name: tool.name,
      called: names.get(tool.name) ?? tool.name,
      description: tool.description,
    })),
    pin: pin === undefined ? "none" : change === undefined ? "same" : { changed: change },
  };
}

async function callOn(
  connected: Result<Connection, string>,
  request: CallRequest,
): Promise<Result<Result<ToolOutput, CallFailure>, McpProblem>> {
  const { server, tool: name, args, texts, signal } = request;
  if (!connected.ok) return err(unavailable({ name: server }, connected.error));
  const { tools } = connected.value;
  const { names } = nameTools(
    server,
    tools.map((tool) => tool.name),
  );
  const tool = tools.find((it) => it.name === name || names.get(it.name) === name);
  if (tool === undefined) {
    const known = tools.map((it) => `\`${it.name}\``).join(", ") || "none";
    return err({ kind: "usage", message: `the server \`${server}\` has no tool \`${name}\`; it has ${known}` });
  }
  const { properties } = tool.parameters;
  const typed = texts.map((text) => typedArgument(text, isJsonObject(properties) ? properties : {}));
  return ok(await connected.value.call(tool, { ...args, ...Object.fromEntries(typed) }, signal));
}

/** What is not a text by the schema is JSON, if it can be read as JSON. */
function typedArgument(text: string, properties: JsonObject): [string, Json] {
  const at = text.indexOf("=");
  const [key, value] = [text.slice(0, at), text.slice(at + 1)];
  const schema = Object.hasOwn(properties, key) ? properties[key] : undefined;
  if (isJsonObject(schema) && schema["type"] === "string") return [key, value];
  try {
    return [key, JSON.parse(value) as Json];
  } catch {
    return [key, value];
  }
}

function unavailable({ name }: { readonly name: string }, why: string): McpProblem {
  return { kind: "unavailable", message: `the MCP server \`${name}\` cannot be used: ${why}` };
}
