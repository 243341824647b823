import type { Json } from "../model/json.ts";
import type { Block } from "./notation.ts";

export const profiles = ["read", "edit", "full"] as const;
export type Profile = (typeof profiles)[number];

/** What holds in a run where nothing is written: reading the workspace. Tools of the workflow itself are the author's words. */
export function defaultRules(ownTools: readonly string[]): Block {
  const own = Object.fromEntries(ownTools.map((name): [string, Json] => [name, "allow"]));
  return {
    layer: "default",
    permissions: {
      "*": "ask",
      Read: { "./": "allow" },
      TodoWrite: "allow",
      Skill: "allow",
      Task: "allow",
      Memory: "allow",
      ...own,
    },
  };
}

/** `read` asks nobody: what is not reading is denied. */
export function profileRules(profile: Profile): Block {
  return { layer: "profile", permissions: permissionsOf[profile] };
}

const permissionsOf: { readonly [profile in Profile]: Json } = {
  read: {
    "modify-files": "deny",
    "execute-commands": "deny",
    network: "deny",
    "mcp__*": "deny",
    Memory: { write: "deny", delete: "deny" },
  },
  edit: { Edit: { "./": "allow" } },
  full: { "*": "allow" },
};
