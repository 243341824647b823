import type { MapEntry, MapNode } from "../../source/document.ts";
import { asText, numberOf } from "../read/nodes.ts";
import { type Draft, ignore, nodeOf, put, took } from "./draft.ts";
import { putModel } from "./model.ts";
import { putServers } from "./servers.ts";
import { isEverything, offered, putTools, toolWords } from "./tools.ts";

/** An agent of Gemini CLI: `.gemini/agents/*.md`. */
export async function readGemini(draft: Draft, root: MapNode): Promise<void> {
  for (const theirs of root.entries) {
    const { key, value } = theirs;
    if (value.kind === "scalar" && value.value === null) ignore(draft, theirs, "it has no value");
    else if (["name", "description", "temperature"].includes(key)) put(draft, theirs, key);
    else if (key === "model") await putModel(draft, theirs);
    else if (!readField(draft, theirs)) ignore(draft, theirs, "flow knows no such field of Gemini CLI");
  }
}

/** False for a key nobody knows. */
function readField(draft: Draft, theirs: MapEntry): boolean {
  switch (theirs.key) {
    case "kind":
      readKind(draft, theirs);
      return true;
    case "tools":
      readTools(draft, theirs);
      return true;
    case "max_turns":
      draft.limits.push({ ...theirs, key: "turns" });
      took(draft, theirs, "limits.turns");
      return true;
    case "timeout_mins":
      readTime(draft, theirs);
      return true;
    case "mcpServers":
    case "mcp_servers":
      putServers(draft, theirs);
      return true;
    case "display_name":
      ignore(draft, theirs, "an agent is shown by its name");
      return true;
    default:
      return false;
  }
}

function readKind(draft: Draft, theirs: MapEntry): void {
  const kind = asText(theirs.value)?.value;
  if (kind === "local") return took(draft, theirs, "kind", "every agent runs here");
  const suggestion = "call the other machine from a `run` step, or through an MCP server";
  draft.report("FLOW6004", theirs.value.at, "an agent that runs on another machine cannot be run here", { suggestion });
  return undefined;
}

/** `mcp_server_*` is every tool of one server; `mcp_*`, of any. */
function readTools(draft: Draft, theirs: MapEntry): void {
  const words = toolWords(draft.document, theirs.value).map((word) => ({ ...word, name: serverName(word.name) }));
  if (words.length === 0) return ignore(draft, theirs, "it names no tool, so the agent has all of them");
  if (words.some(isEverything)) return took(draft, theirs, "tools", "all of them");
  const found = offered(draft, words);
  putTools(draft, theirs, found);
  const left = words.length - found.length;
  return took(draft, theirs, "tools", left === 0 ? undefined : `${left} of ${words.length} left out`);
}

function serverName(name: string): string {
  const [, server, tool] = /^mcp_(?!_)([A-Za-z0-9-]+)_(.+)$/.exec(name) ?? [];
  return server === undefined ? name : `mcp__${server}__${tool}`;
}

function readTime(draft: Draft, theirs: MapEntry): void {
  const minutes = numberOf(theirs.value);
  const isTime = minutes !== undefined && minutes > 0 && minutes < 30_000;
  if (!isTime) return ignore(draft, theirs, "it is no number of minutes");
  draft.limits.push({ ...theirs, key: "duration", value: nodeOf(`${Math.ceil(minutes * 60)}s`, theirs.value.at) });
  return took(draft, theirs, "limits.duration");
}
