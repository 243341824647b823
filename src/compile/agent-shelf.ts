import { existsSync } from "node:fs";
import { dirname, resolve, sep } from "node:path";
import type { Span } from "../model/diagnostic.ts";
import { entry, type MapNode, type ScalarNode, type SourceDocument } from "../source/document.ts";
import { parseFrontMatter } from "../source/front-matter.ts";
import { parseSource } from "../source/parse.ts";
import { readSource } from "../source/read.ts";
import {
  agentFiles,
  agentPlaces,
  builtInAgents,
  builtInPath,
  declaredAs,
  declaredByUser,
  foreignAgentPlaces,
  isFileName,
  userAgentPlaces,
} from "./agent-files.ts";
import { type ConfigAgentsOptions, type ConfigPlaces, createConfigAgents } from "./config-agents.ts";
import { type Dialect, dialectOf, foreignStem, type Translated } from "./dialects/index.ts";
import { opencodeConfigs, userConfigs } from "./opencode-config.ts";
import { asMap, asText, itemsOf, wordsOf } from "./read/nodes.ts";
import type { Word } from "./word.ts";

/** One agent file with the agents it names itself. */
export interface AgentFile {
  /** Its path from the workspace; `built-in/NAME` of one that comes with flow. */
  readonly key: string;
  /** The file's name without its ending: the agent's name if it gives none. */
  readonly stem: string;
  /** Of a file that was written for another program. */
  readonly dialect?: Dialect;
  readonly document: SourceDocument;
  /** Of a Markdown file: the text below the front matter. */
  readonly body?: ScalarNode & { readonly value: string };
  /** Of another program's file: what it comes to here; undefined when that is nothing, which has been reported. */
  readonly foreign?: Translated | undefined;
  readonly named: NamedAgents;
}

/** The agents that a definition names as those it may spawn or lead, by the names it has for them. */
export interface NamedAgents {
  readonly files: ReadonlyMap<string, AgentFile>;
  /** Names whose file was found and could not be read; that has been reported. */
  readonly refused: ReadonlySet<string>;
}

export interface AgentShelf {
  /** The same of the project alone: neither flow's own nor the user's. */
  own(folder: string, name: string, at: Span): Promise<AgentFile | "refused" | undefined>;
  /** The agent that a file in `folder` calls `name`; undefined where there is none. */
  find(folder: string, name: string, at: Span): Promise<AgentFile | "refused" | undefined>;
  /** What a definition in a workflow of `folder` names, but for the agents that the workflow defines itself. */
  namedIn(definition: MapNode, folder: string, inline: ReadonlySet<string>): Promise<NamedAgents>;
}

export interface AgentShelfOptions extends ConfigAgentsOptions {
  readonly workspace: string;
  /** The folder of the agents that come with flow. */
  readonly builtIns: string;
  /** The user's home folder. */
  readonly home: string | undefined;
}

/** Opens agent files, each once, and with each those it names. */
export function createAgentShelf(options: AgentShelfOptions): AgentShelf {
  const { workspace, builtIns, home, problems, shown } = options;
  const findInConfigs = createConfigAgents(options);
  const opened = new Map<string, AgentFile | "refused">();

  /** Other programs go by the name inside, and only then by the file's. */
  const own: AgentShelf["own"] = async (folder, name, at) =>
    (await firstOf(agentPlaces(folder, workspace, name), name, at)) ??
    (await openDeclared(declaredAs(name, folder, workspace), name, at)) ??
    (await firstOf(foreignAgentPlaces(folder, workspace, name), name, at));
  return {
    find,
    own,
    namedIn: (definition, folder, inline) => namedBy(definition, { folder, near: undefined, inline }),
  };

  async function find(folder: string, name: string, at: Span): Promise<AgentFile | "refused" | undefined> {
    const written = name.includes("/") || isFileName(name) ? [[resolve(folder, name)]] : [];
    const found = await firstOf(written, name, at);
    if (found !== undefined || isFileName(name)) return found;
    return (
      (await own(folder, name, at)) ??
      (await inConfig({ paths: opencodeConfigs(folder, workspace), within: workspace }, name, at)) ??
      (await openIf(builtInPath(builtIns, name), at)) ??
      (await firstOf(userAgentPlaces(home, name), name, at)) ??
      (await openDeclared(declaredByUser(name, home), name, at)) ??
      (await inConfig({ paths: userConfigs(home) }, name, at))
    );
  }

  function isBuiltIn(path: string): boolean {
    return path.startsWith(builtIns + sep);
  }

  /** Where flow is installed is nobody's business, and another place on every machine. */
  function shownAs(path: string): string {
    return isBuiltIn(path) ? builtInKey(path) : shown(path);
  }

  async function openIf(path: string | undefined, at: Span): Promise<AgentFile | "refused" | undefined> {
    const bytes = path === undefined ? undefined : await readSource(path);
    return path !== undefined && bytes?.ok === true ? open(path, bytes.value, at) : undefined;
  }

  async function openDeclared(
    paths: readonly string[],
    name: string,
    at: Span,
  ): Promise<AgentFile | "refused" | undefined> {
    const [first, second] = paths;
    if (first !== undefined && second !== undefined)
      problems.report("FLOW6004", at, `two files call themselves \`${name}\`: ${shown(first)} and ${shown(second)}`, {
        severity: "warning",
        suggestion: "the first one is used; give the other one another `name`",
      });
    return openIf(first, at);
  }

  async function inConfig(places: ConfigPlaces, name: string, at: Span): Promise<AgentFile | "refused" | undefined> {
    const found = await findInConfigs(places, name, at);
    if (found === undefined || found === "refused") return found;
    const { path, ...read } = found;
    return opened.get(read.key) ?? withNamed(read, path);
  }

  async function firstOf(
    places: readonly (readonly string[])[],
    name: string,
    at: Span,
  ): Promise<AgentFile | "refused" | undefined> {
    for (const paths of places) {
      const [first, second] = await readable(paths);
      if (first === undefined) {
        // Nobody reads a pipe, a folder or a closed file; to say that there is no such agent would be no help.
        const odd = paths.find((path) => existsSync(path));
        if (odd === undefined) continue;
        const read = await readSource(odd);
        if (!read.ok) problems.report(read.error.code, at, `${shown(odd)} cannot be read: ${read.error.message}`);
        return "refused";
      }
      if (second)
        problems.report(
          "FLOW6004",
          at,
          `two files define \`${name}\`: ${shown(first.path)} and ${shown(second.path)}`,
          {
            suggestion: "keep one of them",
          },
        );
      return open(first.path, first.bytes, at);
    }
    return undefined;
  }

  async function open(path: string, bytes: Uint8Array, at: Span): Promise<AgentFile | "refused"> {
    const key = isBuiltIn(path) ? builtInKey(path) : options.keyOf(path);
    const known = opened.get(key);
    if (known !== undefined) return known;
    options.keep({ key, shown: shownAs(path), bytes, at });
    const read = await readFile(key, path, bytes);
    if (read !== undefined) return withNamed(read, path);
    opened.set(key, "refused");
    return "refused";
  }

  async function withNamed(read: Omit<AgentFile, "named">, path: string): Promise<AgentFile> {
    const named = { files: new Map<string, AgentFile>(), refused: new Set<string>() };
    const file: AgentFile = { ...read, named };
    // Before those it names: they may name it.
    opened.set(read.key, file);
    const node = asMap(read.foreign?.node ?? read.document.root);
    const near = dirname(path);
    const others = node && (await namedBy(node, { folder: homeOf(near), near, inline: new Set() }));
    for (const [name, other] of others?.files ?? []) named.files.set(name, other);
    for (const name of others?.refused ?? []) named.refused.add(name);
    return file;
  }

  async function readFile(key: string, path: string, bytes: Uint8Array): Promise<Omit<AgentFile, "named"> | undefined> {
    const slashed = path.split(sep).join("/");
    const dialect = dialectOf(slashed);
    const stem = dialect ? foreignStem(slashed) : (slashed.split("/").at(-1) ?? "").replace(/\.(yaml|yml|md)$/, "");
    if (!path.endsWith(".md")) {
      const document = parseSource(bytes, shownAs(path));
      if (document.ok) return { key, stem, document: document.value };
      problems.add(document.error);
      return undefined;
    }
    const parsed = parseFrontMatter(bytes, shownAs(path));
    if (!parsed.ok) {
      problems.add(parsed.error);
      return undefined;
    }
    problems.add(parsed.value.warnings);
    const body = asText(parsed.value.body);
    const { document } = parsed.value;
    const foreign = dialect && { dialect, foreign: await options.translate({ key, document, dialect }) };
    return { key, stem, document, ...(body && { body }), ...foreign };
  }

  async function namedBy(definition: MapNode, place: NamingPlace): Promise<NamedAgents> {
    const files = new Map<string, AgentFile>();
    const refused = new Set<string>();
    const look = async (name: string, at: Span): Promise<void> => {
      if (files.has(name) || refused.has(name) || place.inline.has(name)) return;
      const beside = place.near === undefined ? undefined : await firstOf(besides(place.near, name), name, at);
      const found = beside ?? (await find(place.folder, name, at));
      if (found === "refused") refused.add(name);
      else if (found) files.set(name, found);
    };
    for (const { text: name, at } of agentsNamed(definition)) {
      if (name !== everyone) await look(name, at);
      else for (const near of namesNearby(place.folder)) await look(near, at);
    }
    return { files, refused };
  }

  function namesNearby(folder: string): readonly string[] {
    return [...new Set([...agentFiles(folder, workspace).map(({ name }) => name), ...builtInAgents(builtIns)])];
  }
}

interface NamingPlace {
  /** The folder that has, or could have, an `agents` folder. */
  readonly folder: string;
  /** The folder of the file that names: what lies beside it comes first. */
  readonly near: string | undefined;
  readonly inline: ReadonlySet<string>;
}

/** In `subagents`: whoever can be found. */
export const everyone = "*";

/** The names in an agent's `subagents` and among the members of its team. */
function agentsNamed(definition: MapNode): readonly Word[] {
  return [...wordsOf(entry(definition, "subagents")?.value), ...teamMembers(definition)];
}

function teamMembers(owner: MapNode): readonly Word[] {
  const team = asMap(entry(owner, "team")?.value);
  return itemsOf(team && entry(team, "members")?.value).flatMap((item) => {
    const map = asMap(item);
    return wordsOf(map ? entry(map, "agent")?.value : item);
  });
}

/** The folder whose `agents`, or another program's folder of them, a file lies in. */
function homeOf(folder: string): string {
  const slashed = folder.split(sep).join("/");
  return (
    /^(.+?)\/(?:agents|\.claude\/agents|\.opencode\/agents?|\.gemini\/agents)(?:\/.*)?$/.exec(slashed)?.[1] ?? folder
  );
}

function besides(folder: string, name: string): string[][] {
  return [[".yaml", ".yml", ".md"].map((ending) => resolve(folder, isFileName(name) ? name : name + ending))];
}

function builtInKey(path: string): string {
  return `built-in/${(path.split(sep).at(-1) ?? "").replace(/\.md$/, "")}`;
}

async function readable(paths: readonly string[]): Promise<{ path: string; bytes: Uint8Array }[]> {
  const found: { path: string; bytes: Uint8Array }[] = [];
  for (const path of new Set(paths)) {
    const bytes = await readSource(path);
    if (bytes.ok) found.push({ path, bytes: bytes.value });
  }
  return found;
}
