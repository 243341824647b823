import type {
  CallToolResult,
  Client,
  JsonSchemaValidator,
  jsonSchemaValidator,
  RequestOptions,
  Tool as WireTool,
  Transport,
} from "@modelcontextprotocol/client";
import { hash } from "node:crypto";
import type * as VendorModule from "@modelcontextprotocol/client";
import { compileSchema } from "../jsonschema/compile.ts";
import { fromForeignSchema } from "../jsonschema/foreign-schema.ts";
import { canonicalJson, isJsonObject, type Json, type JsonObject } from "../model/json.ts";
import type { ToolOutput } from "../model/ports.ts";
import { err, ok, type Result } from "../model/result.ts";
import type { Marks } from "../process/marks.ts";
import type { Launch } from "../process/namespace.ts";
import { outputOf } from "./content.ts";
import { boundedFetch } from "./http.ts";
import { type ServerSpec, type ServerTool, startTime as defaultStartTime } from "./server.ts";
import { StdioTransport } from "./stdio.ts";

export interface ConnectOptions {
  /** Of flow: told to the server. */
  readonly version: string;
  readonly marks: Marks;
  /** What starts a server in the sandbox of a workspace. */
  readonly sandbox?: (workspace: string) => Launch | undefined;
  /** Something a person should know that ends nothing. */
  readonly note: (message: string) => void;
  readonly signal?: AbortSignal;
  /** Milliseconds until its tools have to be known; ten seconds when absent. */
  readonly startTime?: number;
}

/** A server that has answered, with the tools it offered then. What it offers later does not count. */
export interface Connection {
  readonly tools: readonly ServerTool[];
  /** Calls a tool by the server's own name. Whatever goes wrong is a text a model can read. Never throws. */
  call(tool: ServerTool, args: JsonObject, signal: AbortSignal): Promise<Result<ToolOutput, CallFailure>>;
  /** Whether it is gone, for whatever reason. */
  readonly isOver: boolean;
  /** Ends it; its process with everything it started. Never throws. */
  close(): Promise<void>;
}

export interface CallFailure {
  readonly message: string;
  /** The tool itself says that it failed; otherwise there was no answer that could be used. */
  readonly said: boolean;
}

/** Connects to a server and asks for its tools. The error says why that failed. Never throws. */
export async function connect(spec: ServerSpec, options: ConnectOptions): Promise<Result<Connection, string>> {
  const { startTime = defaultStartTime } = options;
  const late = AbortSignal.timeout(startTime);
  const signal = options.signal ? AbortSignal.any([options.signal, late]) : late;
  const vendor = await import("@modelcontextprotocol/client");
  // Servers that know nothing but the newest revision of the protocol are asked in its own words, second.
  for (const mode of ["legacy", "auto"] as const) {
    const wire = wireOf(spec, options, vendor);
    const client = new vendor.Client(
      { name: "flow", version: options.version },
      { capabilities: {}, versionNegotiation: { mode }, jsonSchemaValidator: noCheck, listMaxPages: 64 },
    );
    try {
      const tools = await orAborted(begin(client, wire.transport, { signal, timeout: startTime }), signal);
      return ok(new Live({ spec, client, wire, tools, note: options.note }));
    } catch (error) {
      const why = late.aborted ? `it did not answer within ${startTime / 1000} s` : wordsOf(error, wire.end());
      await quietly(wire.transport.close());
      const isRefusal =
        error instanceof vendor.ProtocolError || (error instanceof vendor.SdkHttpError && error.status === 400);
      if (mode === "auto" || !isRefusal || signal.aborted) return err(why);
    }
  }
  throw new Error("both ways to connect were tried");
}

type Vendor = typeof VendorModule;

/** One end of a connection: the transport, and how it ended if it did. */
interface Wire {
  readonly transport: Transport;
  readonly end: () => string | undefined;
}

function wireOf({ address }: ServerSpec, options: ConnectOptions, vendor: Vendor): Wire {
  if (address.kind === "stdio") {
    const { marks, note } = options;
    const launch = address.sandbox === undefined ? undefined : options.sandbox?.(address.sandbox);
    const transport = new StdioTransport({ marks, note, address, ...(launch && { launch }) });
    return { transport, end: () => transport.end };
  }
  const url = new URL(address.url);
  const how = { requestInit: { headers: address.headers }, fetch: boundedFetch };
  const transport =
    address.kind === "sse"
      ? new vendor.SSEClientTransport(url, how)
      : new vendor.StreamableHTTPClientTransport(url, how);
  return { transport, end: () => undefined };
}

/** Patterns of a stranger's schema are run by our own validator, which bounds them. */
const noCheck: jsonSchemaValidator = {
  getValidator<T>(): JsonSchemaValidator<T> {
    return (input) => ({ valid: true, data: input as T, errorMessage: undefined });
  },
};

const mostTools = 1_000;

async function begin(client: Client, transport: Transport, limits: RequestOptions): Promise<ServerTool[]> {
  await client.connect(transport, limits);
  if (client.getServerCapabilities()?.tools === undefined) return [];
  const { tools } = await client.listTools(undefined, limits);
  if (tools.length > mostTools)
    throw new Error(`it offers ${tools.length} tools; more than ${mostTools} are of no use to anybody`);
  return tools.map(toolOf);
}

function toolOf({ name, description, title, inputSchema, outputSchema, annotations }: WireTool): ServerTool {
  const [input, output] = [plain(inputSchema), outputSchema === undefined ? null : plain(outputSchema)];
  const said = description ?? title ?? name;
  const parameters = fromForeignSchema(input) ?? {};
  const usable = fromForeignSchema(output);
  return {
    name,
    description: said,
    parameters: { ...parameters, type: "object" },
    ...(usable && { output: usable }),
    digest: hash("sha256", canonicalJson([name, said, input, output])).slice(0, 32),
    readOnly: annotations?.readOnlyHint === true,
  };
}

function plain(value: object): Json {
  return JSON.parse(JSON.stringify(value)) as Json;
}

/** Rejects as soon as the signal is aborted, whatever the work makes of it. */
function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const over = Promise.withResolvers<never>();
  const abort = (): void => over.reject(new Error("cancelled"));
  signal.addEventListener("abort", abort, { once: true });
  if (signal.aborted) abort();
  return Promise.race([work, over.promise]).finally(() => signal.removeEventListener("abort", abort));
}

/** How the end of a transport came about says more than that it is closed. */
function wordsOf(error: unknown, end: string | undefined): string {
  if (end !== undefined) return end;
  if (!(error instanceof Error)) return String(error);
  const { status } = error as Error & { readonly status?: unknown };
  if (status === 401 || status === 403)
    return `it answered ${status}: it wants to know who asks; give it what it needs in \`headers\`, \`Authorization: Bearer …\` for example`;
  const { cause } = error;
  const code: unknown = cause instanceof Error ? Reflect.get(cause, "code") : undefined;
  const more = cause instanceof Error ? `: ${typeof code === "string" ? code : cause.message}` : "";
  return `${error.message}${more}`.slice(0, 2000);
}

async function quietly(work: Promise<void>): Promise<void> {
  // It is on its way out, and what it has to say about that changes nothing.
  await work.catch(() => undefined);
}

interface LiveSource {
  readonly spec: ServerSpec;
  readonly client: Client;
  readonly wire: Wire;
  readonly tools: readonly ServerTool[];
  readonly note: (message: string) => void;
}

class Live implements Connection {
  readonly tools: readonly ServerTool[];
  readonly #source: LiveSource;
  #isOver = false;

  constructor(source: LiveSource) {
    const { client, note, spec, wire } = source;
    this.#source = source;
    this.tools = source.tools;
    let notes = 0;
    const noteSome = (message: string): void => {
      if (++notes <= 5) note(message);
    };
    client.setNotificationHandler("notifications/tools/list_changed", () =>
      noteSome("it says that its list of tools has changed; the tools of this run stay those it began with"),
    );
    client.onerror = (error) => {
      if (!this.#isOver) noteSome(error.message.slice(0, 500));
    };
    client.onclose = () => {
      if (this.#isOver) return;
      this.#isOver = true;
      note(`\`${spec.name}\` is gone: ${wire.end() ?? "the connection was closed"}`);
    };
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  async call(tool: ServerTool, args: JsonObject, signal: AbortSignal): Promise<Result<ToolOutput, CallFailure>> {
    const { spec, client, wire } = this.#source;
    const gone = (): string => `the MCP server \`${spec.name}\` is gone: ${wire.end() ?? "the connection was closed"}`;
    if (this.#isOver) return unanswered(gone());
    const timeout = { timeout: spec.callTime, resetTimeoutOnProgress: true, maxTotalTimeout: spec.callTime * 10 };
    const onprogress = (): void => undefined;
    try {
      const params = { name: tool.name, arguments: args };
      const result = await orAborted(client.callTool(params, { signal, onprogress, ...timeout }), signal);
      return await outputFitting(result, tool);
    } catch (error) {
      if (signal.aborted) return unanswered("cancelled");
      if (this.#isOver) return unanswered(gone());
      const isLate = error instanceof Error && Reflect.get(error, "code") === "REQUEST_TIMEOUT";
      return unanswered(isLate ? `it gave no answer within ${spec.callTime / 1000} s` : wordsOf(error, wire.end()));
    }
  }

  async close(): Promise<void> {
    this.#isOver = true;
    const { client, wire } = this.#source;
    const { transport } = wire;
    if ("terminateSession" in transport)
      await quietly(within(2000, (transport.terminateSession as () => Promise<void>).call(transport)));
    await quietly(client.close());
  }
}

/** A server that does not keep to its own schema is not believed. */
async function outputFitting(result: CallToolResult, { output }: ServerTool): Promise<Result<ToolOutput, CallFailure>> {
  const answer = outputOf(result);
  if (!answer.ok) return err({ message: answer.error, said: true });
  if (output === undefined || !isJsonObject(answer.value.structured)) return answer;
  const check = await compileSchema(output);
  const issues = check.ok ? check.value(answer.value.structured) : [];
  if (issues.length === 0) return answer;
  const list = issues.slice(0, 5).map(({ path, message }) => `/${path.join("/")} ${message}`);
  return unanswered(`what it gave does not fit the schema it gave for it: ${list.join("; ")}`);
}

function unanswered(message: string): { readonly ok: false; readonly error: CallFailure } {
  return err({ message, said: false });
}

function within(ms: number, work: Promise<void>): Promise<void> {
  return orAborted(work, AbortSignal.timeout(ms));
}
