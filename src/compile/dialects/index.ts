import type { Span } from "../../model/diagnostic.ts";
import { isReservedName, namePattern } from "../../model/ids.ts";
import { entry, type MapEntry, type MapNode, type SourceDocument } from "../../source/document.ts";
import { asMap, asText } from "../read/nodes.ts";
import type { Report } from "../report.ts";
import { readClaude } from "./claude.ts";
import { type Draft, type Field, finished, leaveOut, nodeOf, type Vocabulary } from "./draft.ts";
import { readGemini } from "./gemini.ts";
import { opencodeName, readOpencode } from "./opencode.ts";

export type { Field, Vocabulary } from "./draft.ts";

export type Dialect = "claude" | "opencode" | "gemini";

/** Where other programs keep their agents; the folder decides how a file is read. */
export const foreignFolders: readonly string[] = [
  ".claude/agents",
  ".opencode/agent",
  ".opencode/agents",
  ".gemini/agents",
];

/** The same in a user's home folder. */
export const userFolders: readonly string[] = [
  ".claude/agents",
  ".config/opencode/agent",
  ".config/opencode/agents",
  ".gemini/agents",
];

/**
 * The dialect of a file by the folder it lies in, at any depth, or of an agent in OpenCode's configuration
 * (`opencode.json#name`); undefined for one of ours. `/` separates.
 */
export function dialectOf(path: string): Dialect | undefined {
  if (/(?:^|\/)opencode\.jsonc?#/.test(path)) return "opencode";
  const folder = /(?:^|\/)\.(claude\/agents|(?:config\/)?opencode\/agents?|gemini\/agents)\/(?:.*\/)?[^/]+\.md$/;
  const found = folder.exec(path)?.[1];
  if (found === undefined) return undefined;
  if (found.startsWith("claude")) return "claude";
  return found.startsWith("gemini") ? "gemini" : "opencode";
}

/** The programs, as a person names them. */
export const programs: { readonly [dialect in Dialect]: string } = {
  claude: "Claude Code",
  opencode: "OpenCode",
  gemini: "Gemini CLI",
};

/** The name an agent has where its file says none: of OpenCode the path below the folder, of others the file's name. */
export function foreignStem(path: string): string {
  return dialectOf(path) === "opencode" ? opencodeName(path) : (path.split("/").at(-1) ?? path).replace(/\.md$/, "");
}

export interface ForeignFile {
  /** `/` separates. */
  readonly key: string;
  readonly dialect: Dialect;
  readonly document: SourceDocument;
}

/** An agent of another program in the keys of ours, each at the place of theirs. */
export interface Translated {
  readonly dialect: Dialect;
  readonly node: MapNode;
  readonly fields: readonly Field[];
  /** Its rules may take away and never give. */
  readonly narrows: boolean;
}

/** Reads another program's agent file. Undefined when it is not a mapping at all; that has been reported. */
export async function translate(
  { key, dialect, document }: ForeignFile,
  vocabulary: Vocabulary,
  report: Report,
): Promise<Translated | undefined> {
  const root = asMap(document.root);
  if (!root) {
    report(
      "FLOW2005",
      document.root.at,
      `an agent of ${programs[dialect]} begins with keys such as \`name\` and \`description\``,
    );
    return undefined;
  }
  const draft: Draft = {
    document,
    report,
    vocabulary,
    program: programs[dialect],
    entries: [],
    fields: [],
    rules: [],
    limits: [],
    narrows: false,
  };
  await readers[dialect](draft, root);
  nameIt(draft, foreignStem(key), root);
  return { dialect, node: finished(draft), fields: draft.fields, narrows: draft.narrows };
}

const readers: { readonly [dialect in Dialect]: (draft: Draft, root: MapNode) => Promise<void> } = {
  claude: readClaude,
  opencode: readOpencode,
  gemini: readGemini,
};

/** Other programs let an agent be called anything; a name that is none here is spelled so that it is one. */
function nameIt(draft: Draft, stem: string, root: MapNode): void {
  const index = draft.entries.findIndex(({ key }) => key === "name");
  const written = draft.entries[index];
  const text = written && asText(written.value);
  if (written && !text) {
    leaveOut(draft, written.value.at, "the name of this agent is no text: its file's name is used");
    draft.entries.splice(index, 1);
  }
  const at: Span = text?.at ?? entry(root, "description")?.keyAt ?? root.at;
  const name = spelled(text?.value ?? stem);
  if (name === text?.value) return;
  if (text) leaveOut(draft, at, `the agent is called \`${name}\` here: a name has letters, digits, \`_\` and \`-\``);
  const entryOfName: MapEntry = { key: "name", keyAt: at, value: nodeOf(name, at) };
  if (text) draft.entries[index] = entryOfName;
  else draft.entries.unshift(entryOfName);
}

function spelled(name: string): string {
  const trimmed = name.trim();
  if (namePattern.test(trimmed) && !isReservedName(trimmed) && trimmed.length <= 100) return trimmed;
  const plain = trimmed
    .replaceAll(/[^A-Za-z0-9_-]+/g, "-")
    .replaceAll(/^-+|-+$/g, "")
    .slice(0, 99);
  return /^[A-Za-z_]/.test(plain) && !isReservedName(plain) ? plain : `_${plain}`;
}
