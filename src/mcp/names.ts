import { hash } from "node:crypto";

/** The longest name of a tool that every provider takes. */
const longest = 64;

/** `mcp__server__`: how the name of every tool of a server begins. */
export function prefixOf(server: string): string {
  return `mcp__${server}__`;
}

/** What a server's tools are called here, by their own names, and what a person should know of it. */
export interface ToolNames {
  readonly names: ReadonlyMap<string, string>;
  readonly notes: readonly string[];
}

/**
 * `mcp__server__tool`, with `_` for characters that names of tools cannot have. One that is too long, or that another
 * tool of the server has already, ends in a hash of its own name; a second tool of the very same name is left out.
 */
export function nameTools(server: string, tools: readonly string[]): ToolNames {
  const names = new Map<string, string>();
  const taken = new Map<string, string>();
  const notes: string[] = [];
  for (const tool of tools) {
    if (names.has(tool)) {
      notes.push(`it offers two tools called ${JSON.stringify(tool.slice(0, 200))}; the second is left out`);
      continue;
    }
    const plain = prefixOf(server) + tool.replaceAll(/[^A-Za-z0-9_-]/g, "_");
    const other = taken.get(plain);
    const name = plain.length > longest || other !== undefined ? withHash(plain, tool) : plain;
    if (other !== undefined)
      notes.push(`its tools \`${other}\` and \`${tool}\` would have one name; \`${tool}\` is called \`${name}\``);
    names.set(tool, name);
    taken.set(name, tool);
  }
  return { names, notes };
}

function withHash(plain: string, tool: string): string {
  const end = `_${hash("sha256", tool).slice(0, 6)}`;
  return plain.slice(0, longest - end.length) + end;
}
