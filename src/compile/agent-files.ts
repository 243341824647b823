import { closeSync, readdirSync, readSync, realpathSync } from "node:fs";
import { isAbsolute, join, relative, resolve, sep } from "node:path";
import { openRegular } from "../source/open.ts";
import { dialectOf, foreignFolders, foreignStem, userFolders } from "./dialects/index.ts";
import { agentNamesIn, opencodeConfigs, userConfigs } from "./opencode-config.ts";

export const agentEndings: readonly string[] = [".yaml", ".yml", ".md"];

/** Where an agent's file may lie, nearest first; within one place the endings compete. */
export function agentPlaces(folder: string, workspace: string, name: string): string[][] {
  return ownFolders(folder, workspace).map((place) => agentEndings.map((ending) => resolve(place, name + ending)));
}

/** Where a file of that name may lie among those of other programs. */
export function foreignAgentPlaces(folder: string, workspace: string, name: string): string[][] {
  return foreignPlaces(folder, workspace).map((place) => [resolve(place, `${name}.md`)]);
}

/** Whether a text names a file and not an agent: but for the ending it may be both, as OpenCode's `team/reviewer`. */
export function isFileName(name: string): boolean {
  return agentEndings.some((ending) => name.endsWith(ending));
}

/**
 * The files of Claude Code or Gemini agents that call themselves so: these programs go by the name inside, whatever the
 * file is called. Those of the nearest place that has any; of several, the programs take one.
 */
export function declaredAs(name: string, folder: string, workspace: string): readonly string[] {
  return declaredIn(foreignPlaces(folder, workspace), name);
}

function declaredIn(places: readonly string[], name: string): readonly string[] {
  for (const place of places) {
    if (place.includes(`opencode${sep}`)) continue;
    const found = markdownIn(place).filter((path) => declaredName(path) === name);
    if (found.length > 0) return once(found);
  }
  return [];
}

/** Links to a file are that file. */
function once(paths: readonly string[]): readonly string[] {
  const real = (path: string): string => {
    try {
      return realpathSync(path);
    } catch {
      return path;
    }
  };
  return [...new Map(paths.toReversed().map((path) => [real(path), path])).values()].toReversed();
}

/** An agent's file, and the name it goes by as long as nobody has read it. */
export interface FoundAgent {
  readonly name: string;
  readonly path: string;
}

/** Every agent file that a workflow in `folder` can name, the one that wins first. */
export function agentFiles(folder: string, workspace: string): FoundAgent[] {
  const own = ownFolders(folder, workspace).flatMap((place) =>
    entriesOf(place)
      .filter(({ name }) => agentEndings.some((ending) => name.endsWith(ending)))
      .map(({ name }) => ({ name: name.replace(/\.(?:yaml|yml|md)$/, ""), path: join(place, name) })),
  );
  const foreign = foundIn(foreignPlaces(folder, workspace));
  return [...own.sort(byName), ...foreign, ...inConfigs(opencodeConfigs(folder, workspace))];
}

function foundIn(places: readonly string[]): FoundAgent[] {
  const found = places.flatMap(markdownIn).map((path) => {
    const slashed = path.split(sep).join("/");
    const declared = dialectOf(slashed) === "opencode" ? undefined : declaredName(path);
    return { name: declared ?? foreignStem(slashed), path };
  });
  return found.sort(byName);
}

function inConfigs(paths: readonly string[]): FoundAgent[] {
  return paths.flatMap((path) => agentNamesIn(path).map((name) => ({ name, path: `${path}#${name}` })));
}

/** Where a user's own agents may lie, for all projects; they are looked for behind everything else. */
export function userAgentPlaces(home: string | undefined, name: string): string[][] {
  // A name that leaves the folder would make any note of theirs an agent of somebody's workflow.
  if (isAbsolute(name) || name.split("/").includes("..")) return [];
  return userPlaces(home).map((place) => [resolve(place, `${name}.md`)]);
}

/** As {@link declaredAs}, among a user's own. */
export function declaredByUser(name: string, home: string | undefined): readonly string[] {
  return declaredIn(userPlaces(home), name);
}

/** Every agent that a user has for all projects, the one that wins first. */
export function userAgentFiles(home: string | undefined): FoundAgent[] {
  return [...foundIn(userPlaces(home)), ...inConfigs(userConfigs(home))];
}

/** The names of the agents that come with flow; `folder` is theirs. */
export function builtInAgents(folder: string): string[] {
  return entriesOf(folder)
    .flatMap(({ name }) => (name.endsWith(".md") ? [name.slice(0, -".md".length)] : []))
    .sort();
}

/** Undefined where flow has no agent of that name. */
export function builtInPath(folder: string, name: string): string | undefined {
  return builtInAgents(folder).includes(name) ? join(folder, `${name}.md`) : undefined;
}

function byName(a: FoundAgent, b: FoundAgent): number {
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}

function ownFolders(folder: string, workspace: string): string[] {
  return [...new Set([resolve(folder, "agents"), resolve(workspace, "agents")])];
}

function foreignPlaces(folder: string, workspace: string): string[] {
  return [...new Set([folder, workspace].flatMap((place) => foreignFolders.map((name) => resolve(place, name))))];
}

function userPlaces(home: string | undefined): string[] {
  return home === undefined ? [] : userFolders.map((name) => resolve(home, name));
}

const deepest = 4;
const mostFiles = 2_000;

function markdownIn(place: string): string[] {
  const found: string[] = [];
  const visit = (folder: string): void => {
    for (const item of entriesOf(folder)) {
      if (found.length >= mostFiles) return;
      const path = join(folder, item.name);
      if (item.isDirectory()) {
        if (relative(place, path).split(sep).length <= deepest) visit(path);
      } else if (item.name.endsWith(".md")) found.push(path);
    }
  };
  visit(place);
  return found.sort();
}

function entriesOf(folder: string): { readonly name: string; isDirectory(): boolean }[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

/** Enough for any front matter that somebody wrote. */
const head = 16 * 1024;

/** The `name` of a front matter, without reading it as YAML: whoever uses the file does that. */
function declaredName(path: string): string | undefined {
  const buffer = Buffer.alloc(head);
  const opened = openRegular(path);
  if (!opened.ok) return undefined;
  const { descriptor } = opened.value;
  let text: string;
  try {
    text = buffer.toString("utf8", 0, readSync(descriptor, buffer, 0, head, 0));
  } catch {
    return undefined;
  } finally {
    closeSync(descriptor);
  }
  const matter = /^\ufeff?---[ \t]*\r?\n([^]*?)\r?\n---/.exec(text)?.[1];
  const name = matter === undefined ? undefined : /^name:[ \t]*(.*)$/m.exec(matter)?.[1]?.trim();
  return name?.replace(/^(["'])(.*)\1$/, "$2");
}
