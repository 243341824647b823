import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { AgentRights } from "../../src/permissions/index.ts";
import { permissionsOf, rightsOf, workspace } from "./rights.ts";

const worktree = join(workspace, ".flow/runs/20261121-215546-4qk3f/worktrees/a-1");
mkdirSync(join(worktree, "src"), { recursive: true });

async function decide(rights: AgentRights, tool: string, path: string): Promise<string> {
  return (await rights.judge({ tool, args: { file_path: path } })).decision;
}

describe("rights in a worktree", () => {
  const permissions = { Write: { "*": "deny", "src/**": "allow" }, Read: { [`${workspace}/src/secret.ts`]: "deny" } };
  const made = permissionsOf();
  if (!made.ok) throw new Error(made.error);
  const rights = made.value.forAgent([{ layer: "workflow", permissions }], undefined, worktree);

  it("are those of the workspace, for the files of the worktree", async () => {
    expect(await decide(rights, "Write", "src/a.ts")).toBe("allow");
    expect(await decide(rights, "Write", join(worktree, "src/a.ts"))).toBe("allow");
    expect(await decide(rights, "Write", "a.ts")).toBe("deny");
  });

  it("reach no file of the workspace itself", async () => {
    expect(await decide(rights, "Read", join(workspace, "src/a.ts"))).toBe("deny");
    expect(await decide(rights, "Read", "../../../../../src/a.ts")).toBe("deny");
  });

  it("keep what a rule says of a file of the workspace by its whole path", async () => {
    expect(await decide(rights, "Read", "src/open.ts")).toBe("allow");
    expect(await decide(rights, "Read", "src/secret.ts")).toBe("deny");
    expect([rights.mayRead("src/open.ts"), rights.mayRead("src/secret.ts")]).toEqual([true, false]);
  });

  it("of a child in a worktree stay within those of a parent in the workspace, with what it was granted since", async () => {
    const parent = rightsOf([{ layer: "workflow", permissions: { Write: { "src/**": "allow" } } }]);
    const child = made.value.forAgent([{ layer: "step", permissions: { Write: "allow" } }], parent, worktree);
    expect([await decide(child, "Write", "src/a.ts"), await decide(child, "Write", "b.ts")]).toEqual(["allow", "ask"]);
    child.approve(["Write(b.ts)"]);
    expect(await decide(child, "Write", "b.ts")).toBe("allow");
    parent.narrow(["Read"]);
    expect(await decide(child, "Write", "src/a.ts")).toBe("deny");
  });

  it("count for the same rule in the workspace and in a worktree", async () => {
    const before = made.value.hits();
    await decide(rights, "Write", "a.ts");
    await decide(rights.in(undefined), "Write", "a.ts");
    const more = made.value.hits().map(({ hits }, index) => hits - (before[index]?.hits ?? 0));
    expect(more.filter((count) => count > 0)).toEqual([2]);
  });
});
