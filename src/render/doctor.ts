import { visible } from "./display.ts";

/** What is shown of a run's surroundings. */
export interface ShownHealth {
  readonly flow: string;
  readonly node: { readonly version: string; readonly ok: boolean };
  readonly workspace: string;
  readonly git: { readonly commit: string | null };
  readonly config: { readonly files: readonly string[] };
  readonly managed: readonly string[];
  readonly sandbox: boolean;
  readonly search: boolean;
  readonly providers: readonly {
    readonly name: string;
    readonly baseUrl: string;
    readonly key?: string;
    readonly keyIs: "set" | "missing" | "not needed";
    readonly configured: boolean;
    readonly reachable: "yes" | "no" | "not asked";
    readonly problem?: string;
  }[];
  readonly servers: readonly { readonly name: string; readonly tools: number; readonly problem?: string }[];
}

/** One line for each thing that was looked at; nobody needs those providers that are neither configured nor have a key. */
export function renderDoctor(health: ShownHealth): string {
  const { flow, node, workspace, git, config, managed, sandbox, search, providers, servers } = health;
  const used = providers.filter(({ keyIs, configured }) => keyIs === "set" || configured);
  const unused = providers
    .filter((provider) => !used.includes(provider))
    .map(({ name, key }) => (key === undefined ? name : `${name} (${key})`));
  const lines = [
    ["flow", flow],
    ["node", `${node.version}${node.ok ? "" : ", too old: 22.18 is needed"}`],
    ["workspace", workspace],
    ["git", git.commit === null ? "no commit" : git.commit.slice(0, 12)],
    ["config", config.files.length === 0 ? "none (flow.config.yaml, FLOW_CONFIG)" : config.files.join(", ")],
    ...(managed.length > 0 ? [["managed", managed.join(", ")]] : []),
    ["sandbox", sandbox ? "works" : "none: no bubblewrap (bwrap) that works; `sandbox: auto` runs commands without"],
    ["search", search ? "works" : "none: ripgrep has no binary for this platform, so `Grep` and `Glob` fail"],
    ...used.map(({ name, baseUrl, key, keyIs, reachable, problem }) => [
      name,
      `${baseUrl}, ${keyText(key, keyIs)}${reachText(reachable, problem)}`,
    ]),
    ...servers.map(({ name, tools, problem }) => [
      `mcp ${name}`,
      problem === undefined ? `${tools} tools` : `cannot be used: ${problem}`,
    ]),
    ...(unused.length > 0 ? [["not set up", unused.join(", ")]] : []),
  ];
  return lines.map(([name = "", text = ""]) => `${name.padEnd(12)} ${visible(text)}\n`).join("");
}

function keyText(key: string | undefined, is: ShownHealth["providers"][number]["keyIs"]): string {
  if (key === undefined) return "no key needed";
  return is === "set" ? `${key} is set` : is === "missing" ? `${key} is not set` : `${key} is not set, not needed`;
}

function reachText(reachable: ShownHealth["providers"][number]["reachable"], problem: string | undefined): string {
  if (reachable === "not asked") return "";
  return reachable === "yes" ? ", reachable" : `, not reachable: ${problem ?? ""}`;
}
