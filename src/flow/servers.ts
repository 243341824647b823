import { existsSync, readFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import {
  changeOf,
  type Connection,
  isNamed,
  isRequired,
  pinKey,
  pinOf,
  type Pins,
  prefixOf,
  readPins,
  ServerPool,
  type ServerSpec,
  specOf,
  toolsOf,
} from "../mcp/index.ts";
import { untilAborted } from "../model/abort.ts";
import { isJsonObject, type Json, type JsonObject, own } from "../model/json.ts";
import type { Block } from "../model/message.ts";
import type { Failure } from "../model/outcome.ts";
import type { Server, StepServers } from "../model/plan.ts";
import type { Attempt, Tool, ToolOutput } from "../model/ports.ts";
import { err, ok, type Result } from "../model/result.ts";
import { stepEnvironment } from "../process/environment.ts";
import { maskData } from "../runlog/mask-event.ts";
import { systemClock } from "./clock.ts";
import { forbiddenServer } from "./governed.ts";
import type { StartOptions } from "./run-options.ts";
import type { RunResources } from "./run-resources.ts";
import type { Sandboxes } from "./sandboxes.ts";
import { insideSandbox, sandboxHint, type Surroundings, watchedTool } from "./server-sandbox.ts";
import { version } from "./version.ts";

/** The tools of a step's MCP servers, until it is over. */
export interface Served {
  readonly tools: readonly Tool[];
  close(): Promise<void>;
}

/** The MCP servers of one run. */
export interface Servers {
  /**
   * Starts what a step needs and nothing else has started yet. `names` are the tools the step may have; of a server none
   * of whose tools is among them, it has all. The error is a server that cannot be used, with what to do.
   */
  serve(attempt: Attempt, names: readonly string[] | undefined): Promise<Result<Served, Failure>>;
  close(): Promise<void>;
}

export const lockName = "flow.lock";

/** The pins of a project; none where it has no lock file. The error is a file that cannot be read. */
export function projectPins(workspace: string): Result<Pins, string> {
  const file = join(workspace, lockName);
  if (!existsSync(file)) return ok(new Map());
  const pins = readPins(readFileSync(file, "utf8"));
  return pins.ok ? pins : err(`${lockName} cannot be used: ${pins.error}`);
}

interface Source extends Pick<RunResources, "masking" | "marks" | "emit"> {
  readonly options: StartOptions;
  readonly sandboxes: Sandboxes;
}

export function createServers(source: Source): Servers {
  const { sandboxes } = source;
  const { workspace } = source.options;
  const pool = new ServerPool({
    version,
    marks: source.marks,
    sandbox: (folder) => sandboxes.servers(folder, folder === workspace ? undefined : workspace),
  });
  let pins: Result<Pins, string> | undefined;
  const setting: Setting = {
    ...source,
    pool,
    told: new WeakSet(),
    hinted: new WeakSet(),
    pins: () => (pins ??= projectPins(workspace)),
  };
  return {
    async serve(attempt, names) {
      const given = serversOf(attempt);
      const taken = await Promise.all(given.servers.map((server) => take(server, { attempt, given, names, setting })));
      const connections = taken.flatMap((it) => (it.ok && it.value?.own ? [it.value.connection] : []));
      const close = async (): Promise<void> => void (await Promise.all(connections.map((it) => pool.end(it))));
      const problem = taken.find((it) => !it.ok);
      if (problem?.ok === false) {
        await close();
        return err(problem.error);
      }
      const tools = taken.flatMap((it) => (it.ok && it.value ? it.value.tools : []));
      return ok({ tools: tools.map((tool) => maskedTool(tool, source)), close });
    },
    close: () => pool.close(),
  };
}

interface Setting extends Source {
  readonly pool: ServerPool;
  /** Connections the log knows. */
  readonly told: WeakSet<Connection>;
  /** Those of which a person knows what the sandbox keeps from them. */
  readonly hinted: WeakSet<Connection>;
  readonly pins: () => Result<Pins, string>;
}

interface Taking {
  readonly attempt: Attempt;
  readonly given: StepServers;
  readonly names: readonly string[] | undefined;
  readonly setting: Setting;
}

interface Taken {
  readonly connection: Connection;
  readonly own: boolean;
  readonly tools: readonly Tool[];
}

function serversOf({ step: { body } }: Attempt): StepServers {
  const none = { servers: [], env: [] };
  return body.kind === "agent" || body.kind === "tool" ? (body.mcp ?? none) : none;
}

/** Undefined for a server that is not required and not there. */
async function take(server: Server, taking: Taking): Promise<Result<Taken | undefined, Failure>> {
  const { attempt, names, setting } = taking;
  const { name } = server;
  const note = (text: string): void =>
    setting.emit({ type: "mcp.warning", step: attempt.path, server: name, note: text });
  const forbidden = setting.options.managed && forbiddenServer(name, setting.options.managed);
  if (forbidden !== undefined) return err({ kind: "denied", message: forbidden });
  const definition = definitionOf(server, attempt);
  const wanted = specFor(server, definition, taking);
  const spec = wanted.ok ? insideSandbox(wanted.value, surroundingsOf(definition, taking)) : wanted;
  const begun = systemClock.monotonic();
  const connected = spec.ok ? await connection(server, spec.value, { ...taking, note }) : spec;
  if (!connected.ok) {
    if (attempt.signal.aborted || isRequired(definition))
      return err(unavailable(name, connected.error, { spec, ...setting }));
    note(`it is not there, and not required: ${connected.error}`);
    return ok(undefined);
  }
  const pinned = pinnedAs(server, connected.value, setting);
  if (!pinned.ok) return err({ kind: "unavailable", message: pinned.error });
  const named = toolsOf(name, connected.value);
  if (isNew(connected.value, setting.told)) {
    const duration = Math.round(systemClock.monotonic() - begun);
    const offers = named.tools.length;
    setting.emit({ type: "mcp.started", step: attempt.path, server: name, offers, pinned: pinned.value, duration });
    for (const text of named.notes) note(text);
  }
  const chosen = choose(named.tools, name, names);
  if (!chosen.ok) return chosen;
  const hint = spec.ok ? sandboxHint(spec.value, "", setting.sandboxes) : undefined;
  const tell = (): void => {
    if (hint !== undefined && isNew(connected.value, setting.hinted)) note(hint);
  };
  const tools = chosen.value.map((tool) => watchedTool(tool, tell));
  return ok({ connection: connected.value, own: isOwn(server, taking), tools });
}

/** True once for each. */
function isNew(connection: Connection, known: WeakSet<Connection>): boolean {
  if (known.has(connection)) return false;
  known.add(connection);
  return true;
}

/** The sandbox that its definition wants, or else the agent that needs it. */
function surroundingsOf(definition: Json, { attempt, setting }: Taking): Surroundings {
  const { options } = setting;
  const { body } = attempt.step;
  const agent = body.kind === "agent" ? options.plan.agents[body.agent] : undefined;
  const where = attempt.workspace !== undefined && { workspace: attempt.workspace, around: options.workspace };
  const { sandboxes } = setting;
  return { ...options, ...where, sandboxes, wish: sandboxes.wishOfServer(definition, agent) };
}

function definitionOf({ name }: Server, { inputs }: Attempt): Json {
  const definitions = own(inputs, "mcp");
  return (isJsonObject(definitions) && own(definitions, name)) || {};
}

function specFor(
  { name, expands, base }: Server,
  definition: Json,
  { attempt, given, setting }: Taking,
): Result<ServerSpec, string> {
  const { options, masking } = setting;
  const { env: inherited, secrets } = options;
  const env = own(attempt.inputs, "env");
  const variables = Object.entries(isJsonObject(env) ? env : {});
  const pick = (isOfStep: boolean): JsonObject =>
    Object.fromEntries(variables.filter(([variable]) => given.env.includes(variable) === isOfStep));
  return specOf({
    name,
    definition,
    ...(expands && { variables: inherited }),
    cwd: folderFor(base, attempt, options),
    inherited: stepEnvironment({ inherited, providerKeys: masking.keys, secrets: Object.keys(secrets), own: {} }),
    around: pick(false),
    step: pick(true),
  });
}

/** With an environment or a worktree of the step's own it is nobody else's, as if its agent had defined it. */
function isOwn(server: Server, { given, attempt }: Taking): boolean {
  return server.own || given.env.length > 0 || attempt.workspace !== undefined;
}

/** Where it is started; in the worktree of an execution that has one. */
function folderFor(base: Server["base"], attempt: Attempt, { workspace, cwd }: StartOptions): string {
  const own = attempt.workspace ?? workspace;
  return base === "workspace" ? own : resolve(own, relative(workspace, cwd));
}

async function connection(
  server: Server,
  spec: ServerSpec,
  taking: Taking & { readonly note: (text: string) => void },
): Promise<Result<Connection, string>> {
  const { note, setting, attempt } = taking;
  const { signal } = attempt;
  if (isOwn(server, taking)) return setting.pool.own(spec, { note, signal });
  // Others may be waiting for the same one: this step gives up, and the server stays.
  return (await untilAborted(setting.pool.share(spec, { note }), signal)) ?? err("cancelled");
}

function unavailable(
  name: string,
  why: string,
  { spec, sandboxes }: { readonly spec: Result<ServerSpec, string>; readonly sandboxes: Sandboxes },
): Failure {
  const how = spec.ok ? ("url" in spec.value.address ? spec.value.address.url : spec.value.address.argv.join(" ")) : "";
  const isHeld = spec.ok && sandboxHint(spec.value, why, sandboxes) !== undefined;
  const where = isHeld ? " in the sandbox (`sandbox: off` leaves it out)" : "";
  const hint = "with `required: false` the step goes on without it; see `flow mcp list`";
  const who = `the MCP server \`${name}\`${how === "" ? "" : ` (${how.length > 100 ? `${how.slice(0, 100)}…` : how})`}`;
  const message = `${who} cannot be used${where}: ${why}; ${hint}`;
  return { kind: "unavailable", message };
}

/** Whether its list of tools is pinned. The error says what is not as it was. */
function pinnedAs(server: Server, { tools }: Connection, { pins, options }: Setting): Result<boolean, string> {
  const known = pins();
  if (!known.ok) return known;
  const key = pinKey(server);
  const pin = known.value.get(key);
  const change = pin && changeOf(pin, pinOf(tools));
  if (change === undefined) return ok(pin !== undefined);
  return err(
    `the MCP server \`${server.name}\` does not offer what ${lockName} says: ${change}. Look at it with \`flow mcp list ${options.plan.root}\`, and accept it with \`flow mcp lock ${options.plan.root} --server ${server.name}\``,
  );
}

/** All of a server's tools, unless the list names some of them. */
function choose(
  tools: readonly Tool[],
  server: string,
  names: readonly string[] | undefined,
): Result<readonly Tool[], Failure> {
  const wanted = (names ?? []).filter((name) => name === `mcp__${server}` || name.startsWith(prefixOf(server)));
  if (wanted.length === 0) return ok(tools);
  const missing = wanted.find((name) => !tools.some((tool) => isNamed(tool.name, server, [name])));
  if (missing === undefined) return ok(tools.filter(({ name }) => isNamed(name, server, wanted)));
  const offered = tools.map(({ name }) => `\`${name}\``).join(", ");
  return err({
    kind: "unavailable",
    message: `the MCP server \`${server}\` has no tool \`${missing}\`; it has ${offered || "none"}`,
  });
}

/** What a tool says is masked before anybody sees it, like the output of a command. */
function maskedTool(tool: Tool, { masking }: Source): Tool {
  if (!masking.hasSecrets) return tool;
  const { mask } = masking.mask;
  const maskBlock = (block: Block): Block => (block.type === "text" ? { ...block, text: mask(block.text) } : block);
  const maskOutput = ({ blocks, structured }: ToolOutput): ToolOutput => ({
    blocks: blocks.map(maskBlock),
    ...(structured !== undefined && { structured: maskData(structured, mask) }),
  });
  return {
    ...tool,
    run: async (args, call) => {
      const answer = await tool.run(args, call);
      return answer.ok ? ok(maskOutput(answer.value)) : err(mask(answer.error));
    },
  };
}
