import { existsSync } from "node:fs";
import { join } from "node:path";
import { projectServersFile } from "../compile/project-servers.ts";
import type { Diagnostic, SourceTexts } from "../model/diagnostic.ts";
import { builtInCatalog } from "../providers/catalog.ts";
import type { Endpoint } from "../providers/endpoints.ts";
import { gitCommit } from "../runlog/commit.ts";
import { workspaceOf } from "../runlog/runs.ts";
import { programPath } from "../tools/ripgrep.ts";
import { type Config, emptyConfig, readConfig } from "./config.ts";
import { managedFiles, managedOf } from "./managed.ts";
import { createSandboxes } from "./sandboxes.ts";
import { version } from "./version.ts";

/** What flow finds where it stands. No value of a key is in it. */
export interface Health {
  readonly flow: string;
  readonly node: { readonly version: string; readonly ok: boolean };
  readonly workspace: string;
  /** The commit, or null outside a repository or before its first commit. */
  readonly git: { readonly commit: string | null };
  readonly config: {
    readonly files: readonly string[];
    readonly problems: readonly Diagnostic[];
  };
  /** The files that restrict what runs may do here. */
  readonly managed: readonly string[];
  /** Whether agents' commands can be put into a sandbox. */
  readonly sandbox: boolean;
  /** Whether `Grep` and `Glob` have their program. */
  readonly search: boolean;
  readonly providers: readonly ProviderHealth[];
  /** The MCP servers that every workflow knows, each of which was started. */
  readonly servers: readonly ServerHealth[];
}

export interface ServerHealth {
  readonly name: string;
  readonly tools: number;
  /** Why it cannot be used. */
  readonly problem?: string;
}

export interface ProviderHealth {
  readonly name: string;
  readonly baseUrl: string;
  /** The variable its key comes from; absent when it needs none. */
  readonly key?: string;
  readonly keyIs: "set" | "missing" | "not needed";
  /** From the configuration, or changed there. */
  readonly configured: boolean;
  /**
   * `yes`: something answered there; `no`: nothing did, and `problem` says why; `not asked`: it could not be used
   * anyway, or nobody uses it.
   */
  readonly reachable: "yes" | "no" | "not asked";
  readonly problem?: string;
}

export interface DoctorOptions {
  readonly cwd: string;
  readonly env: { readonly [name: string]: string | undefined };
  /** Milliseconds a server has to answer. */
  readonly patience?: number;
}

const leastNode = [22, 18] as const;
const defaultPatience = 3_000;

/** Looks at everything a run needs of its surroundings. Sends no key, and asks only servers that could be used. */
export async function examine({ cwd, env, patience = defaultPatience }: DoctorOptions): Promise<Health & Texts> {
  const workspace = workspaceOf(cwd);
  const place = { cwd, workspace, env };
  const read = await readConfig(place);
  const config: Config = read.ok ? read.value : emptyConfig;
  const managed = await managedOf(place);
  const problems = [read, managed].flatMap((it) => (it.ok ? [] : [it.error]));
  return {
    flow: version,
    node: { version: process.versions.node, ok: isNewEnough(process.versions.node) },
    workspace,
    git: { commit: gitCommit(workspace) },
    config: { files: config.files, problems: problems.flatMap(({ diagnostics }) => diagnostics) },
    sources: new Map(problems.flatMap(({ sources }) => [...sources])),
    managed: managedFiles(place).map(({ shown }) => shown),
    sandbox: createSandboxes({ env }).commands(workspace, false) !== undefined,
    search: (await programPath()) !== undefined,
    providers: await Promise.all(
      Object.entries(config.catalog.providers).map(([name, endpoint]) =>
        providerHealth({ name, endpoint, env, patience }),
      ),
    ),
    servers:
      read.ok && (config.servers.size > 0 || existsSync(join(workspace, projectServersFile)))
        ? await serverHealth(cwd, env)
        : [],
  };
}

/** Of configuration files, for their diagnostics. */
interface Texts {
  readonly sources: SourceTexts;
}

async function serverHealth(cwd: string, env: DoctorOptions["env"]): Promise<ServerHealth[]> {
  const { listServers } = await import("./mcp.ts");
  const found = await listServers({ cwd, env, signal: new AbortController().signal });
  if (!found.ok) {
    const problem = "message" in found.error ? found.error.message : (found.error.diagnostics[0]?.message ?? "");
    return [{ name: projectServersFile, tools: 0, problem }];
  }
  return found.value.map(({ name, tools, problem, pin }) => {
    const why = problem ?? (typeof pin === "object" ? `it is not as it was pinned: ${pin.changed}` : undefined);
    return { name, tools: tools.length, ...(why !== undefined && { problem: why }) };
  });
}

function isNewEnough(node: string): boolean {
  const [major = 0, minor = 0] = node.split(".").map(Number);
  return major > leastNode[0] || (major === leastNode[0] && minor >= leastNode[1]);
}

interface Question {
  readonly name: string;
  readonly endpoint: Endpoint;
  readonly env: DoctorOptions["env"];
  readonly patience: number;
}

async function providerHealth({ name, endpoint, env, patience }: Question): Promise<ProviderHealth> {
  const { baseUrl, key, keyOptional = false } = endpoint;
  const isSet = key !== undefined && (Object.hasOwn(env, key) ? (env[key] ?? "").trim() : "") !== "";
  const keyIs = isSet ? "set" : key === undefined || keyOptional ? "not needed" : "missing";
  const configured = endpoint !== builtInCatalog.providers[name];
  const about = { name, baseUrl, ...(key !== undefined && { key }), keyIs, configured } as const;
  // A server on this machine that nobody configured is most likely not there, and nobody misses it.
  if (keyIs === "missing" || (keyIs === "not needed" && !configured)) return { ...about, reachable: "not asked" };
  const problem = await problemOf(baseUrl, patience);
  return problem === undefined ? { ...about, reachable: "yes" } : { ...about, reachable: "no", problem };
}

/** Any answer will do, whatever its status: only whether somebody is there is asked, without a key. */
async function problemOf(baseUrl: string, patience: number): Promise<string | undefined> {
  try {
    const response = await fetch(baseUrl, {
      method: "HEAD",
      redirect: "manual",
      signal: AbortSignal.timeout(patience),
    });
    await response.body?.cancel();
    return undefined;
  } catch (error) {
    if (error instanceof Error && error.name === "TimeoutError") return `no answer within ${patience / 1000} s`;
    const cause: unknown = error instanceof Error ? (error.cause ?? error) : error;
    const code: unknown = cause instanceof Error ? Reflect.get(cause, "code") : undefined;
    return typeof code === "string" ? code : String(cause instanceof Error ? cause.message : cause);
  }
}
