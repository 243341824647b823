import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import type { Json } from "../../src/model/json.ts";
import type { Verdict } from "../../src/model/ports.ts";
import {
  type AgentRights,
  type Block,
  createPermissions,
  type PermissionOptions,
} from "../../src/permissions/index.ts";
import { canonicalToolName, toolNames } from "../../src/tools/names.ts";
import { isSecretFile } from "../../src/tools/secret-files.ts";

export const vocabulary: PermissionOptions["vocabulary"] = {
  tools: toolNames,
  canonical: canonicalToolName,
  isSecret: isSecretFile,
};

/** A workspace with a folder `src`, and a home beside it. */
export const folder: string = realpathSync(mkdtempSync(join(tmpdir(), "flow-permissions-")));
export const workspace: string = join(folder, "workspace");
export const home: string = join(folder, "home");
mkdirSync(join(workspace, "src"), { recursive: true });
mkdirSync(home);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

export function permissionsOf(more: Partial<PermissionOptions> = {}): ReturnType<typeof createPermissions> {
  return createPermissions({ vocabulary, ownTools: [], workspace, home, allowed: [], ...more });
}

/** The rights under a block of the workflow's. */
export function rightsUnder(permissions: Json, more: Partial<PermissionOptions> = {}): AgentRights {
  return rightsOf([{ layer: "workflow", permissions }], more);
}

export function rightsOf(blocks: readonly Block[], more: Partial<PermissionOptions> = {}): AgentRights {
  const made = permissionsOf(more);
  if (!made.ok) throw new Error(made.error);
  return made.value.forAgent(blocks);
}

export function bash(rights: AgentRights, command: string): Promise<Verdict> {
  return rights.judge({ tool: "Bash", args: { command } });
}

export async function decisionOf(permissions: Json, tool: string, subject: string): Promise<string> {
  const key =
    tool === "Bash" ? "command" : tool === "WebFetch" ? "url" : tool === "Task" ? "subagent_type" : "file_path";
  return (await rightsUnder(permissions).judge({ tool, args: { [key]: subject } })).decision;
}
