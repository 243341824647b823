import type { Tool } from "../model/ports.ts";
import { err } from "../model/result.ts";
import type { Connection } from "./connect.ts";
import { nameTools } from "./names.ts";

/** A server's tools as an agent or a step calls them, and what a person should know of their names. */
export function toolsOf(
  server: string,
  connection: Connection,
): { readonly tools: readonly Tool[]; readonly notes: readonly string[] } {
  const { names, notes } = nameTools(
    server,
    connection.tools.map(({ name }) => name),
  );
  const seen = new Set<string>();
  const tools = connection.tools.flatMap((tool): Tool[] => {
    const name = names.get(tool.name);
    if (name === undefined || seen.has(tool.name)) return [];
    seen.add(tool.name);
    const { description, parameters, readOnly } = tool;
    const run: Tool["run"] = async (args, { signal }) => {
      const answer = await connection.call(tool, args, signal);
      return answer.ok ? answer : err(answer.error.message);
    };
    return [{ name, description, parameters, readOnly, run }];
  });
  return { tools, notes };
}

/** Whether a list of tools names this one: itself, its server, or all of its server's. */
export function isNamed(tool: string, server: string, list: readonly string[]): boolean {
  return list.some((name) => name === tool || name === `mcp__${server}` || name === `mcp__${server}__*`);
}
