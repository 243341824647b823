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

const [quote, backslash, slash, asterisk, newline, tab, space] = [0x22, 0x5c, 0x2f, 0x2a, 0x0a, 0x09, 0x20];

/** JSON is YAML but for tabs and comments: blanks take their place, so that everything stays where it is. */
function withoutComments(bytes: Uint8Array): Uint8Array {
  const plain = Uint8Array.from(bytes);
  let inside: "text" | "line" | "block" | undefined;
  for (let at = 0; at < plain.length; at++) {
    const [byte, next] = [plain[at], plain[at + 1]];
    if (inside === "text") {
      if (byte === backslash) at++;
      else if (byte === quote) inside = undefined;
    } else if (inside === undefined) {
      if (byte === quote) inside = "text";
      else if (byte === tab) plain[at] = space;
      else if (byte === slash && (next === slash || next === asterisk)) {
        inside = next === slash ? "line" : "block";
        plain.fill(space, at, at + 2);
        at++;
      }
    } else if (byte === newline) {
      if (inside === "line") inside = undefined;
    } else {
      plain[at] = space;
      if (inside !== "block" || byte !== asterisk || next !== slash) continue;
      plain[++at] = space;
      inside = undefined;
    }
  }
  return plain;
}
