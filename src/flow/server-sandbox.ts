import type { ServerSpec } from "../mcp/index.ts";
import type { Tool } from "../model/ports.ts";
import { err, ok, type Result } from "../model/result.ts";
import { noBubblewrap, type Sandboxes, type SandboxWish } from "./sandboxes.ts";

export interface Surroundings {
  readonly wish: SandboxWish;
  readonly workspace: string;
  /** The one that a worktree was made from. */
  readonly around?: string;
  readonly sandboxes: Sandboxes;
  /** What flow was started with. */
  readonly env: { readonly [name: string]: string | undefined };
}

/** The server as it is started: in the workspace's sandbox, if it is to have one. The error is one that is not there. */
export function insideSandbox(spec: ServerSpec, surroundings: Surroundings): Result<ServerSpec, string> {
  const { address } = spec;
  const { wish, workspace, around, sandboxes } = surroundings;
  if (address.kind !== "stdio" || wish === "off") return ok(spec);
  if (sandboxes.servers(workspace, around) === undefined)
    return wish === "auto" ? ok(spec) : err(`it is to have a sandbox, and ${noBubblewrap}`);
  const env = { ...address.env, ...cacheVariables(address.env, surroundings) };
  return ok({ ...spec, address: { ...address, env, sandbox: workspace } });
}

/** Those that nobody gave this server on purpose. */
function cacheVariables(
  given: Readonly<Record<string, string>>,
  { sandboxes, env }: Surroundings,
): Readonly<Record<string, string>> {
  const names = Object.entries(sandboxes.cache.env);
  return Object.fromEntries(names.filter(([name]) => !Object.hasOwn(given, name) || given[name] === env[name]));
}

/** What to know when a server fails in a sandbox; nothing about one that has none, or that no sandbox kept from starting. */
export function sandboxHint({ address }: ServerSpec, why: string, { cache }: Sandboxes): string | undefined {
  if (address.kind !== "stdio" || address.sandbox === undefined || why.includes(" could not start: ")) return undefined;
  return (
    `in the sandbox only the workspace and ${cache.folder} can be written, and \`~/.ssh\`, \`~/.docker\` and their like, ` +
    "`/tmp` and `/run` are not those outside; `sandbox: off` in its definition starts it without one"
  );
}

/** A person is told when a tool fails as if it could not write; the model has what the tool says. */
export function watchedTool(tool: Tool, tell: () => void): Tool {
  return {
    ...tool,
    run: async (args, call) => {
      const answer = await tool.run(args, call);
      if (!answer.ok && /EROFS|read-only file ?system/i.test(answer.error)) tell();
      return answer;
    },
  };
}
