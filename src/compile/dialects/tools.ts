import type { Span } from "../../model/diagnostic.ts";
import { locate, type MapEntry, type SourceDocument, type SourceNode } from "../../source/document.ts";
import { asText, itemsOf } from "../read/nodes.ts";
import { oneOf } from "../report.ts";
import { type Draft, nodeOf, type Vocabulary } from "./draft.ts";

/** One tool of a list, with what stands in parentheses behind it. */
export interface ToolWord {
  readonly name: string;
  readonly pattern?: string;
  readonly at: Span;
}

/** The tools of a list, or of a text with commas; a comma inside parentheses parts nothing. */
export function toolWords(document: SourceDocument, node: SourceNode): ToolWord[] {
  return itemsOf(node).flatMap((item) => {
    const text = asText(item);
    if (!text) return [];
    return parts(text.value).flatMap(({ from, text: part }) => {
      const at = locate(document, text, from, part.length);
      const [, name = part, pattern] = /^([^()]+)\(([^]*)\)$/.exec(part) ?? [];
      return [{ name: name.trim(), ...(pattern !== undefined && { pattern: pattern.trim() }), at }];
    });
  });
}

function parts(text: string): { readonly from: number; readonly text: string }[] {
  const found: { from: number; text: string }[] = [];
  let depth = 0;
  let from = 0;
  for (let at = 0; at <= text.length; at++) {
    const char = text[at];
    if (char === "(") depth++;
    else if (char === ")") depth = Math.max(0, depth - 1);
    if (char !== undefined && (char !== "," || depth > 0)) continue;
    const piece = text.slice(from, at);
    const start = from + piece.length - piece.trimStart().length;
    if (piece.trim() !== "") found.push({ from: start, text: piece.trim() });
    from = at + 1;
  }
  return found;
}

/** Names that mean every tool. */
const everything: ReadonlySet<string> = new Set(["*", "all", "all tools"]);

export function isEverything({ name }: ToolWord): boolean {
  return everything.has(name.toLowerCase());
}

/** What older files call a tool that has another name today. */
const former: ReadonlyMap<string, string> = new Map([
  ["multiedit", "Edit"],
  ["patch", "Edit"],
  ["notebookread", "Read"],
  ["read_many_files", "Read"],
]);

/** Our name of a tool of theirs; undefined when there is none. */
export function toolNamed(name: string, { tools, canonical }: Vocabulary): string | undefined {
  if (tools.has(name)) return name;
  const lower = name.toLowerCase();
  return (
    canonical(name) ??
    canonical(lower) ??
    [...tools.keys()].find((tool) => tool.toLowerCase() === lower) ??
    former.get(lower)
  );
}

/** One tool of a server, or with `__*` all of them. */
export const serverTool: RegExp = /^mcp__[\w-]+__(?:[\w-]+|\*)$/;

/** The tools of a foreign list that are here. Those that are not are told, all together. */
export function offered(draft: Draft, words: readonly ToolWord[]): readonly ToolWord[] {
  const found: ToolWord[] = [];
  const unknown: ToolWord[] = [];
  const ofTeams: ToolWord[] = [];
  for (const word of words) {
    const name = word.name.startsWith("mcp__") ? serverName(word.name) : toolNamed(word.name, draft.vocabulary);
    if (name === undefined) unknown.push(word);
    else if (name.startsWith("mcp__") || draft.vocabulary.tools.get(name) === true) found.push({ ...word, name });
    else ofTeams.push(word);
  }
  leaveOutTools(draft, unknown, "there is no such tool here");
  leaveOutTools(draft, ofTeams, "a `team` brings its tools itself");
  const [first] = words;
  if (first && found.length === 0) {
    const known = [...draft.vocabulary.tools].flatMap(([tool, isHere]) => (isHere ? [tool] : []));
    const suggestion = `there are ${oneOf(known, 30)}`;
    draft.report("FLOW6002", first.at, "none of the tools this agent is to have exists here", { suggestion });
  }
  return found;
}

function serverName(name: string): string {
  return serverTool.test(name) ? name : `${name}__*`;
}

export function leaveOutTools({ report, program }: Draft, words: readonly ToolWord[], why: string): void {
  const [first] = words;
  if (!first) return;
  const names = words.map(({ name }) => `\`${name}\``).join(", ");
  const what = words.length === 1 ? `the tool ${names}` : `the tools ${names}`;
  report(
    "FLOW6020",
    first.at,
    `${what} of this ${program} agent ${words.length === 1 ? "is" : "are"} left out: ${why}`,
    {
      severity: "warning",
    },
  );
}

/** The `tools` of ours, each name once, at the place of theirs. */
export function putTools(draft: Draft, theirs: MapEntry, words: readonly ToolWord[]): void {
  const unique = words.filter((word, index) => words.findIndex(({ name }) => name === word.name) === index);
  const items = unique.map(({ name, at }) => nodeOf(name, at));
  draft.entries.push({ key: "tools", keyAt: theirs.keyAt, value: { kind: "list", items, at: theirs.value.at } });
}
