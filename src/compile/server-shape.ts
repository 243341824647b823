import type { Server, Template } from "../model/plan.ts";

/** The definition of an MCP server. */
export interface ServerShape {
  readonly name: string;
  /** What defines it: a file by its path in the workspace, a configuration, or an agent's key. */
  readonly file: string;
  readonly definition: Template;
  /** `${VAR}` in it stands for a variable of the environment flow runs in. */
  readonly expands: boolean;
  readonly base: Server["base"];
  /** Secrets that its definition reads. */
  readonly secrets: readonly string[];
}
