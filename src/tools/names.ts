/** Every tool name of ours, with the names OpenCode, pi and Gemini files use for the same tool. */
const aliases: { readonly [canonical: string]: readonly string[] } = {
  Read: ["read", "read_file"],
  Write: ["write", "write_file"],
  Edit: ["edit", "replace"],
  Glob: ["glob", "find"],
  Grep: ["grep", "grep_search", "search_file_content"],
  LS: ["ls", "list", "list_directory"],
  Bash: ["bash", "run_shell_command"],
  WebFetch: ["webfetch", "web_fetch"],
  TodoWrite: ["todowrite", "write_todos"],
  Task: ["task", "Agent"],
  Skill: ["skill", "activate_skill"],
};

const canonical: ReadonlyMap<string, string> = new Map(
  Object.entries(aliases).flatMap(([name, others]) => [name, ...others].map((alias) => [alias, name] as const)),
);

/** Canonical names, as agent files of Claude Code spell them; not all of them have to be on offer in a run. */
export const toolNames: readonly string[] = Object.keys(aliases);

/** The canonical name for any spelling we know (`read_file` is `Read`); undefined for a tool that does not exist here. */
export function canonicalToolName(name: string): string | undefined {
  return canonical.get(name);
}

const teamTools = [
  "TeamCreate",
  "TeamDelete",
  "TeamStatus",
  "TaskCreate",
  "TaskUpdate",
  "TaskList",
  "TaskGet",
  "SendMessage",
];

/** Every tool the language knows, and whether it comes by its name; those of teams come with `team` alone. */
export const languageTools: ReadonlyMap<string, boolean> = new Map([
  ...toolNames.map((name) => [name, true] as const),
  ...teamTools.map((name) => [name, false] as const),
]);

/** Those that rules can speak of: with them the memory, which comes with `memory:` and not by its name. */
export const judgedTools: readonly string[] = [...toolNames, "Memory"];
