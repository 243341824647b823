import type { ServerSpec } from "../mcp/index.ts";
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

/** What to know when a server fails in a sandbox; nothing about one that has none. */
export function sandboxHint({ address }: ServerSpec, { cache }: Sandboxes): string | undefined {
  if (address.kind !== "stdio" || address.sandbox === undefined) return undefined;
  return (
    `in the sandbox only the workspace and ${cache.folder} can be written, and \`~/.ssh\`, \`~/.docker\` and their like, ` +
    "`/tmp` and `/run` are not those outside; `sandbox: off` in its definition starts it without one"
  );
}

/** Whether what a tool says sounds as if the sandbox had refused to let it write. */
export function soundsReadOnly(text: string): boolean {
  return /EROFS|read-only file ?system/i.test(text);
}
