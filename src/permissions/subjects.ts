import { resolve } from "node:path";
import { gap, star, type Symbols, symbolsOf, wildcardsOf } from "./pattern.ts";
import { atHome, type Place } from "./place.ts";

/** What the calls of a tool are told apart by. */
export type SubjectKind = "command" | "path" | "url" | "name";

const kinds: { readonly [tool: string]: SubjectKind } = {
  Read: "path",
  Grep: "path",
  Glob: "path",
  LS: "path",
  Write: "path",
  Edit: "path",
  Bash: "command",
  WebFetch: "url",
  Task: "name",
  Skill: "name",
  Memory: "name",
};

/** Undefined for a tool whose calls are not told apart: a pattern for it never holds. */
export function subjectKind(tool: string): SubjectKind | undefined {
  return Object.hasOwn(kinds, tool) ? kinds[tool] : undefined;
}

/** Spellings of `**` that a pattern may have before its meaning is cut to `*`. */
const mostForms = 16;

/**
 * A path pattern as absolute patterns: relative to the workspace; a name without a `/` at any depth; a folder with all
 * that lies below it. `*` stands for any text, `/` included, and `**` + `/` for any folders, also none.
 */
export function pathPatterns(text: string, place: Place): Symbols[] {
  const slashed = text.replaceAll("\\", "/").replace(/^\/\/+/, "/");
  const trimmed = slashed.replace(/(?<=[^/])\/+$/, "");
  const expanded = atHome(trimmed === "" ? "/" : trimmed, place.home);
  const bare = expanded.replace(/^(?:\.\/)+/, "");
  const anyDepth = !expanded.includes("/") && bare !== "." && bare !== "..";
  const forms = withoutFolders(bare).flatMap((form) => {
    const rest = wildcardsOf(form.slice(folderBefore(form).length));
    const absolute = foldersMeant(folderBefore(form), place).map((folder) => {
      const root = symbolsOf(folder);
      return rest.length === 0 ? root : [...withSlash(root), ...rest];
    });
    const deep = [...withSlash(symbolsOf(place.workspace)), star, ...withSlash([]), ...wildcardsOf(form)];
    return anyDepth ? [...absolute, deep] : absolute;
  });
  return forms.flatMap((form) => (form.at(-1) === star ? [form] : [form, [...withSlash(form), star]]));
}

const slash = "/".charCodeAt(0);

function withSlash(symbols: readonly number[]): number[] {
  return symbols.at(-1) === slash ? [...symbols] : [...symbols, slash];
}

/** `a/**` + `/b` is `a/b` as well. */
function withoutFolders(text: string): string[] {
  let forms = [""];
  for (const [index, part] of text.split(/(?:(?<=^|\/)\*\*\/)/).entries()) {
    if (index === 0) forms = [part];
    else
      forms = forms.flatMap((form) =>
        forms.length < mostForms ? [form + part, `${form}*/${part}`] : [`${form}*/${part}`],
      );
  }
  return forms;
}

function foldersMeant(folder: string, { workspace, standsFor }: Place): string[] {
  const meant = resolve(workspace, folder);
  const isThere = standsFor !== undefined && (meant === standsFor || meant.startsWith(`${standsFor}/`));
  return isThere ? [meant, workspace + meant.slice(standsFor.length)] : [meant];
}

/** The folders before the first wildcard, which `.` and `..` may stand in. */
function folderBefore(pattern: string): string {
  const wild = pattern.search(/[*?]/);
  return wild === -1 ? pattern : pattern.slice(0, pattern.lastIndexOf("/", wild) + 1);
}

/** `domain:example.com` holds for the host and what lies below it; everything else for the whole address. */
export function urlPatterns(text: string): Symbols[] {
  const host = /^domain:(.+)$/.exec(text)?.[1]?.toLowerCase();
  if (host === undefined) return [[star, gap, ...wildcardsOf(text)]];
  const bare = wildcardsOf(host.replace(/^\*\./, ""));
  return [
    [...bare, gap, star],
    [star, ".".charCodeAt(0), ...bare, gap, star],
  ];
}

/** The host apart from the address, so that no pattern for the one is met by the other. Undefined for what is no URL. */
export function urlSymbols(text: string): Symbols | undefined {
  if (!URL.canParse(text)) return undefined;
  const { hostname, href } = new URL(text);
  return [...symbolsOf(hostname), gap, ...symbolsOf(href)];
}

export function namePatterns(text: string): Symbols[] {
  return [wildcardsOf(text)];
}

/** A path in the words of a rule: from the workspace where it lies in there. */
export function pathText(absolute: string, { workspace }: Place): string {
  if (absolute === workspace) return ".";
  return absolute.startsWith(`${workspace}/`) ? `./${absolute.slice(workspace.length + 1)}` : absolute;
}

/** Whether a pattern says nothing beyond the name of its tool. */
export function saysNothing(pattern: string): boolean {
  return /^[\s*]*$/.test(pattern) || pattern === "**/*";
}
