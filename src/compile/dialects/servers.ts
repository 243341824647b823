import type { MapEntry, MapNode } from "../../source/document.ts";
import { asMap, asText, itemsOf } from "../read/nodes.ts";
import { type Draft, leaveOut, put } from "./draft.ts";

const serverKeys: ReadonlySet<string> = new Set([
  "type",
  "command",
  "args",
  "env",
  "cwd",
  "url",
  "headers",
  "required",
]);

/** MCP servers: names of servers of the project, definitions, or both in one list. Ours is one or the other. */
export function putServers(draft: Draft, theirs: MapEntry): void {
  const { value } = theirs;
  const defined = value.kind === "map" ? value.entries : itemsOf(value).flatMap((item) => asMap(item)?.entries ?? []);
  const names = value.kind === "map" ? [] : itemsOf(value).flatMap((item) => asText(item) ?? []);
  if (defined.length === 0) {
    put(draft, theirs, "mcp", { kind: "list", items: names, at: value.at });
    return;
  }
  for (const { at, value: name } of names)
    leaveOut(
      draft,
      at,
      `the server \`${name}\` is left out: beside definitions, names have no place; write them in the step's workflow`,
    );
  const entries = defined.flatMap((server) => readServer(draft, server));
  put(draft, theirs, "mcp", { kind: "map", entries, at: value.at });
}

function readServer(draft: Draft, server: MapEntry): MapEntry[] {
  const map = asMap(server.value);
  if (!map) return [server];
  const type = asText(map.entries.find(({ key }) => key === "type")?.value);
  if (type?.value === "sse") {
    leaveOut(
      draft,
      type.at,
      `the server \`${server.key}\` is left out: flow speaks stdio and streamable HTTP, not SSE`,
    );
    return [];
  }
  const entries = map.entries.flatMap((entry) => readSetting(draft, entry));
  return [{ ...server, value: { ...plainMap(map), entries } }];
}

/** Without the index, which holds the entries as they were. */
function plainMap({ at, entries }: MapNode): MapNode {
  return { kind: "map", at, entries };
}

function readSetting(draft: Draft, entry: MapEntry): MapEntry[] {
  if (entry.key === "httpUrl") return [{ ...entry, key: "url" }];
  if (entry.key === "type" && !["stdio", "http"].includes(asText(entry.value)?.value ?? "")) return [];
  if (serverKeys.has(entry.key)) return [entry];
  leaveOut(draft, entry.keyAt, `\`${entry.key}\` of a server has no effect here`);
  return [];
}
