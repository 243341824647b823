import { closeSync, readSync } from "node:fs";
import { join } from "node:path";
import { entry, type SourceDocument, type SourceNode } from "../source/document.ts";
import { openRegular } from "../source/open.ts";
import { parseSource } from "../source/parse.ts";
import { asMap, entriesOf } from "./read/nodes.ts";

/** OpenCode's own configuration, in which agents may be defined as well. */
const fileNames: readonly string[] = ["opencode.json", "opencode.jsonc"];

/** Where a project has one, nearest first. */
export function opencodeConfigs(folder: string, workspace: string): string[] {
  const folders = [...new Set([folder, workspace])].flatMap((place) => [place, join(place, ".opencode")]);
  return folders.flatMap((place) => fileNames.map((name) => join(place, name)));
}

/** Where a user has one for all projects. */
export function userConfigs(home: string | undefined): string[] {
  return home === undefined ? [] : fileNames.map((name) => join(home, ".config", "opencode", name));
}

export function parseConfig(bytes: Uint8Array, shown: string): ReturnType<typeof parseSource> {
  return parseSource(withoutComments(bytes), shown);
}

/** The agents a configuration defines, by their names. */
export function agentsInConfig({ root }: SourceDocument): ReadonlyMap<string, SourceNode> {
  const map = asMap(root);
  return new Map(entriesOf(map && entry(map, "agent")?.value).map(({ key, value }) => [key, value]));
}

/** Bytes of a configuration that is looked at only to list what is in it. */
const most = 1024 * 1024;

/** Names of the agents in a file; none where it is not there, or cannot be read. */
export function agentNamesIn(path: string): string[] {
  const opened = openRegular(path);
  if (!opened.ok) return [];
  const { descriptor, size } = opened.value;
  try {
    if (size > most) return [];
    const bytes = new Uint8Array(size);
    const length = readSync(descriptor, bytes, 0, size, 0);
    const document = parseConfig(bytes.subarray(0, length), path);
    return document.ok ? [...agentsInConfig(document.value).keys()] : [];
  } catch {
    return [];
  } finally {
    closeSync(descriptor);
  }
}

/** A text, a comment or a tab; each ends somewhere, so that every byte is looked at once. */
const tokens = /"(?:[^"\\]|\\[^]?)*(?:"|$)|\/\/[^\n]*|\/\*[^]*?(?:\*\/|$)|\t/g;

/** JSON is YAML but for tabs and comments: blanks take their place, so that everything stays where it is. */
function withoutComments(bytes: Uint8Array): Uint8Array {
  const plain = Buffer.from(bytes)
    .toString("latin1")
    .replace(tokens, (token) => (token.startsWith('"') ? token : token.replaceAll(/[^\n]/g, " ")));
  return Buffer.from(plain, "latin1");
}
