import { mkdirSync, realpathSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import { isJsonObject, type Json, own } from "../model/json.ts";
import type { Agent, Plan } from "../model/plan.ts";
import type { Launch } from "../process/namespace.ts";
import { sandboxLaunch } from "../process/sandbox.ts";
import { type GitHold, holdGit } from "../process/sandbox-git.ts";
import { isSecretFile } from "../tools/secret-files.ts";
import { builtInAgentsFolder } from "./built-in-agents.ts";

/** `auto` is a sandbox where the machine has one. */
export type SandboxWish = "auto" | "on" | "off";

/** What is said of sandboxes around agents and servers. */
export interface SandboxWishes {
  /** A managed file that wants one for everybody. */
  readonly managed?: { readonly sandbox?: { readonly file: string; readonly line: number } | undefined } | undefined;
  readonly config?: { readonly sandbox?: { readonly value: SandboxWish } | undefined } | undefined;
}

export interface SandboxesOptions extends SandboxWishes {
  readonly env: { readonly [name: string]: string | undefined };
}

/** The sandboxes of a run, each made when it is first needed: to know whether one works costs a process. */
export interface Sandboxes {
  /** What is wanted for an agent's commands. */
  wishOf(agent: Agent | undefined): SandboxWish;
  /** What is wanted for an MCP server by its definition, or else for the agent that needs it. */
  wishOfServer(definition: Json, agent: Agent | undefined): SandboxWish;
  /**
   * What starts commands that may write in this folder; undefined where nothing on this machine can. `around` is the
   * workspace that a worktree was made from.
   */
  commands(workspace: string, network: boolean, around?: string): Launch | undefined;
  /** The same for MCP servers: with the network, no right to write to a repository, and a cache of theirs. */
  servers(workspace: string, around?: string): Launch | undefined;
  /** Where servers in a sandbox keep what they fetch, and the variables that tell them. */
  readonly cache: { readonly folder: string; readonly env: Readonly<Record<string, string>> };
}

export function createSandboxes(options: SandboxesOptions): Sandboxes {
  const { env } = options;
  const holds = new Map<string, GitHold>();
  const made = new Map<string, Launch | undefined>();
  const cache = cacheOf(env);
  const shown = ownFolders();
  const launch = (folder: string, kind: "commands" | "online" | "servers", outer?: string): Launch | undefined => {
    const workspace = realpathSync(folder);
    const key = `${kind} ${workspace}`;
    if (made.has(key)) return made.get(key);
    const git = holds.get(workspace) ?? holdGit(workspace);
    holds.set(workspace, git);
    const isServers = kind === "servers";
    const around = outer !== undefined && { around: realpathSync(outer) };
    const place = {
      workspace,
      ...around,
      home: homedir(),
      path: env["PATH"] ?? "",
      isSecret: isSecretFile,
      git,
      shown,
    };
    const writable = isServers ? folderAt(cache.folder) : [];
    const found = sandboxLaunch({ ...place, network: kind !== "commands", closesGit: isServers, writable });
    made.set(key, found);
    return found;
  };
  return {
    wishOf: (agent) => wishOf(agent, options),
    wishOfServer(definition, agent) {
      const written = isJsonObject(definition) ? asWish(own(definition, "sandbox")) : undefined;
      return options.managed?.sandbox ? "on" : (written ?? wishOf(agent, options));
    },
    commands: (workspace, network, around) => launch(workspace, network ? "online" : "commands", around),
    servers: (workspace, around) => launch(workspace, "servers", around),
    cache,
  };
}

function wishOf(agent: Agent | undefined, { managed, config }: SandboxWishes): SandboxWish {
  if (managed?.sandbox) return "on";
  const setting = isJsonObject(agent?.settings.json) ? asWish(own(agent.settings.json, "sandbox")) : undefined;
  return setting ?? config?.sandbox?.value ?? "auto";
}

function asWish(value: Json | undefined): SandboxWish | undefined {
  return value === "auto" || value === "on" || value === "off" ? value : undefined;
}

/** Where flow and its Node lie: wherever somebody has put them, commands and servers can start them. */
function ownFolders(): readonly string[] {
  return [dirname(builtInAgentsFolder()), dirname(dirname(process.execPath))].map((path) => realpathSync(path));
}

/** Not the user's own caches: what a server puts there would be run outside by whoever fetches the same. */
function cacheOf(env: SandboxesOptions["env"]): Sandboxes["cache"] {
  const base = env["XDG_CACHE_HOME"] ?? "";
  const folder = join(isAbsolute(base) ? base : join(homedir(), ".cache"), "flow", "mcp");
  return {
    folder,
    env: {
      XDG_CACHE_HOME: folder,
      npm_config_cache: join(folder, "npm"),
      BUN_INSTALL_CACHE_DIR: join(folder, "bun"),
      DENO_DIR: join(folder, "deno"),
    },
  };
}

/** The folder, once it is there; nothing where it cannot be made: then a server that needs it says so. */
function folderAt(folder: string): string[] {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    return [realpathSync(folder)];
  } catch (error) {
    if (error instanceof Error && "code" in error) return [];
    throw error;
  }
}

/** What to do where a sandbox is wanted and there is none. */
export const noBubblewrap: string =
  "this machine has no bubblewrap (bwrap) that works: install it (apt-get install bubblewrap, dnf install bubblewrap) " +
  "and allow user namespaces (on Ubuntu an AppArmor profile for bwrap)";

/** Why a run cannot start: an agent of it is to have a sandbox, and there is none. */
export function missingSandbox(
  sandboxes: Sandboxes,
  { managed }: SandboxWishes,
  { plan, workspace }: { readonly plan: Plan; readonly workspace: string },
): string | undefined {
  const agent = Object.values(plan.agents).find((it) => sandboxes.wishOf(it) === "on");
  if (agent === undefined || sandboxes.commands(workspace, false) !== undefined) return undefined;
  const forced = managed?.sandbox;
  const who = forced
    ? `${forced.file}:${forced.line} says \`sandbox: on\``
    : `agent \`${agent.name}\` has \`sandbox: on\``;
  return `${who}, and ${noBubblewrap}${forced ? "" : ", or write `sandbox: auto`"}`;
}
