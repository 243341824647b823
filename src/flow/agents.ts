import { join, relative } from "node:path";
import { agentFiles, builtInAgents, userAgentFiles } from "../compile/agent-files.ts";
import { dialectOf } from "../compile/dialects/index.ts";
import { booleanOf } from "../compile/read/nodes.ts";
import { workspaceOf } from "../runlog/runs.ts";
import { entry } from "../source/document.ts";
import { builtInAgentsFolder } from "./built-in-agents.ts";
import { check } from "./check.ts";
import { homeOf } from "./config-files.ts";
import { sourceOf } from "./permit.ts";

export interface AgentsRequest {
  readonly cwd?: string;
  readonly env?: { readonly [name: string]: string | undefined };
}

/** One agent file. */
export interface AgentRow {
  readonly name: string;
  /** Relative to the working directory, or from `~`; `built-in` of one that comes with flow. */
  readonly file: string;
  /** The program it was written for. */
  readonly dialect: "flow" | "claude" | "opencode" | "gemini";
  readonly description: string | null;
  /** Of which step or agent it may be: `primary`, `subagent`, `all`. */
  readonly mode: string | null;
  readonly hidden: boolean;
  readonly disabled: boolean;
  /** Problems of its file that keep it from being used. */
  readonly errors: number;
  readonly warnings: number;
}

export interface AgentList {
  readonly agents: readonly AgentRow[];
}

/** The agents a workflow in `cwd` can name, each under the file that wins. */
export async function listAgents({ cwd = process.cwd(), env = process.env }: AgentsRequest): Promise<AgentList> {
  const rows = new Map<string, AgentRow>();
  const home = homeOf(env);
  const folder = builtInAgentsFolder();
  const builtIn = builtInAgents(folder).map((name) => ({ name, path: join(folder, `${name}.md`) }));
  for (const { name, path } of [...agentFiles(cwd, workspaceOf(cwd)), ...builtIn, ...userAgentFiles(home)]) {
    if (rows.has(name)) continue;
    const { agents, diagnostics } = await check({ ...sourceOf(name), cwd, env });
    const shape = agents?.()[0];
    const written = (key: string): boolean => shape !== undefined && booleanOf(entry(shape.node, key)?.value) === true;
    // That it is disabled is known only where somebody names it.
    const isDisabled = diagnostics.some(({ code, message }) => code === "FLOW6004" && message.includes("disabled"));
    const others = diagnostics.filter(({ code }) => code !== "FLOW6004");
    rows.set(name, {
      name,
      file: path.startsWith(folder) ? "built-in" : shownFile(path, { cwd, home }),
      dialect: dialectOf(path.replaceAll("\\", "/")) ?? "flow",
      description: shape?.agent.description ?? null,
      mode: shape?.agent.mode ?? null,
      hidden: written("hidden"),
      disabled: isDisabled,
      errors: others.filter(({ severity }) => severity === "error").length,
      warnings: others.filter(({ severity }) => severity === "warning").length,
    });
  }
  return { agents: [...rows.values()] };
}

function shownFile(path: string, { cwd, home }: { readonly cwd: string; readonly home: string | undefined }): string {
  const short = relative(cwd, path);
  const fromHome = home === undefined || !short.startsWith("..") ? ".." : relative(home, path);
  return (fromHome.startsWith("..") ? short : join("~", fromHome)).replaceAll("\\", "/");
}
