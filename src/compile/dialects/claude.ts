import type { MapEntry, MapNode, SourceNode } from "../../source/document.ts";
import { asText, booleanOf, numberOf } from "../read/nodes.ts";
import { type Draft, ignore, leaveOut, nodeOf, put, putAs, took } from "./draft.ts";
import { putHooks } from "./hooks.ts";
import { putModel } from "./model.ts";
import { putServers } from "./servers.ts";
import { isEverything, offered, putTools, type ToolWord, toolNamed, toolWords } from "./tools.ts";

/** Fields that mean something only where a person watches a session. */
const sessions: { readonly [key: string]: string } = {
  color: "it is shown in a session of Claude Code",
  background: "a step decides what runs beside it",
  isolation: "a step isolates, with its own `isolation`",
  autoCompactWindow: "flow knows the window of a model",
  observer: "nothing observes an agent here but the log",
  observerMessage: "nothing observes an agent here but the log",
};

/** An agent of Claude Code: `.claude/agents/*.md`. */
export async function readClaude(draft: Draft, root: MapNode): Promise<void> {
  draft.narrows = true;
  for (const theirs of root.entries) {
    const { key, value } = theirs;
    if (value.kind === "scalar" && value.value === null) ignore(draft, theirs, "it has no value");
    else if (key === "name" || key === "description" || key === "hidden") put(draft, theirs, key);
    else if (key === "model") await putModel(draft, theirs, "anthropic");
    else if (Object.hasOwn(sessions, key)) ignore(draft, theirs, sessions[key] ?? "");
    else if (!readField(draft, theirs)) ignore(draft, theirs, "flow knows no such field of Claude Code");
  }
}

/** False for a key nobody knows. */
function readField(draft: Draft, theirs: MapEntry): boolean {
  switch (theirs.key) {
    case "tools":
      readTools(draft, theirs);
      return true;
    case "disallowedTools":
      readDenied(draft, theirs);
      return true;
    case "permissionMode":
      readMode(draft, theirs);
      return true;
    case "maxTurns":
      draft.limits.push({ ...theirs, key: "turns" });
      took(draft, theirs, "limits.turns");
      return true;
    case "effort":
      if (numberOf(theirs.value) === undefined) put(draft, theirs, "effort");
      else ignore(draft, theirs, "here it is one of the words none, minimal, low, medium, high, xhigh and max");
      return true;
    case "skills":
      put(draft, theirs, "skills", namesOf(draft, theirs.value));
      return true;
    case "mcpServers":
      putServers(draft, theirs);
      return true;
    case "hooks":
      putHooks(draft, theirs);
      return true;
    case "memory":
      readMemory(draft, theirs);
      return true;
    case "initialPrompt":
      putAs(draft, theirs, { key: "prompt", value: theirs.value, note: "a step's `prompt` replaces it" });
      return true;
    case "omitClaudeMd":
      if (booleanOf(theirs.value) === true)
        putAs(draft, theirs, { key: "instructions-files", value: nodeOf("none", theirs.value.at), note: "none" });
      else took(draft, theirs, "instructions-files", "auto");
      return true;
    default:
      return false;
  }
}

function namesOf(draft: Draft, node: SourceNode): SourceNode {
  const words = toolWords(draft.document, node);
  const unique = words.filter((word, index) => words.findIndex(({ name }) => name === word.name) === index);
  return { kind: "list", items: unique.map(({ name, at }) => nodeOf(name, at)), at: node.at };
}

/** What stands in parentheses takes away the rest: other commands, other agents, other skills. */
function readTools(draft: Draft, theirs: MapEntry): void {
  const words = toolWords(draft.document, theirs.value);
  if (words.length === 0) return ignore(draft, theirs, "it names no tool, so the agent has all of them");
  if (words.some(isEverything)) return took(draft, theirs, "tools", "all of them");
  const found = offered(draft, words);
  putTools(draft, theirs, found);
  for (const [name, group] of Map.groupBy(found, (word) => word.name)) {
    if (name === "Task") putSubagents(draft, theirs, group);
    else if (group.every(({ pattern }) => pattern !== undefined)) narrow(draft, name, group);
  }
  const left = words.length - found.length;
  return took(draft, theirs, "tools", left === 0 ? undefined : `${left} of ${words.length} left out`);
}

function putSubagents(draft: Draft, { keyAt }: MapEntry, group: readonly ToolWord[]): void {
  const names = group.flatMap(({ pattern, at }) =>
    (pattern ?? "").split(",").flatMap((name) => (name.trim() === "" ? [] : [nodeOf(name.trim(), at)])),
  );
  const [first] = group;
  if (!first) return;
  const items = names.length > 0 ? names : [nodeOf("*", first.at)];
  draft.entries.push({ key: "subagents", keyAt, value: { kind: "list", items, at: first.at } });
}

function narrow(draft: Draft, tool: string, group: readonly ToolWord[]): void {
  const [first] = group;
  if (!first) return;
  const every: MapEntry = { key: "*", keyAt: first.at, value: nodeOf("deny", first.at) };
  const these = group.flatMap(({ pattern = "", at }) =>
    (tool === "Bash" ? pattern.split(/,(?=\s*[\w./-]+(?::\*|\s|$))/) : [pattern]).map((text): MapEntry => {
      return { key: text.trim(), keyAt: at, value: nodeOf("allow", at) };
    }),
  );
  draft.rules.push({ key: tool, keyAt: first.at, value: { kind: "map", entries: [every, ...these], at: first.at } });
}

function readDenied(draft: Draft, theirs: MapEntry): void {
  const words = toolWords(draft.document, theirs.value);
  const items = words.flatMap(({ name, pattern, at }) => {
    const known = name.startsWith("mcp__") || isEverything({ name, at }) ? name : toolNamed(name, draft.vocabulary);
    if (known === undefined) {
      leaveOut(draft, at, `\`${name}\` is denied to this ${draft.program} agent, and there is no such tool here`);
      return [];
    }
    return [nodeOf(pattern === undefined ? known : `${known}(${pattern})`, at)];
  });
  if (items.length > 0)
    draft.rules.push({ key: "deny", keyAt: theirs.keyAt, value: { kind: "list", items, at: theirs.value.at } });
  took(draft, theirs, "permissions.deny");
}

/** A mode of a session may take away here, and gives nothing: what an agent may do is for those who run it to say. */
function readMode(draft: Draft, theirs: MapEntry): void {
  const mode = asText(theirs.value)?.value ?? "";
  if (mode === "default" || mode === "manual") return took(draft, theirs, "permissions", "the rules of the run");
  if (mode !== "plan") {
    const widens = mode === "acceptEdits" || mode === "bypassPermissions" || mode === "auto";
    const why = widens
      ? `\`${mode}\` gives rights, and a file of another program only takes them; write \`permissions\` in the workflow or run with --profile`
      : mode === "dontAsk"
        ? "without a terminal nobody is asked; with one, whoever is there is"
        : `flow knows no mode \`${mode}\``;
    return ignore(draft, theirs, why);
  }
  for (const tools of ["modify-files", "execute-commands"])
    draft.rules.push({ key: tools, keyAt: theirs.keyAt, value: nodeOf("deny", theirs.value.at) });
  return took(draft, theirs, "permissions", "writing and commands are denied");
}

function readMemory(draft: Draft, theirs: MapEntry): void {
  const scope = asText(theirs.value);
  if (scope?.value === "local")
    putAs(draft, theirs, { key: "memory", value: nodeOf("project", scope.at), note: "project" });
  else put(draft, theirs, "memory");
}
