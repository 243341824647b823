import { realpathSync } from "node:fs";
import { dirname, isAbsolute, relative, resolve } from "node:path";
import type { Span } from "../model/diagnostic.ts";
import { err, ok, type Result } from "../model/result.ts";
import type { MapEntry, SourceDocument, SourceNode } from "../source/document.ts";
import { readSource } from "../source/read.ts";
import { decode } from "../source/text.ts";
import { nodeOf } from "./dialects/draft.ts";
import type { ForeignFile, Translated } from "./dialects/index.ts";
import { agentsInConfig, parseConfig } from "./opencode-config.ts";
import { asMap, asText } from "./read/nodes.ts";
import type { createReport } from "./report.ts";

/** An agent that OpenCode's configuration defines. */
export interface ConfigAgent {
  /** The configuration's path from the workspace, and behind `#` the agent's name. */
  readonly key: string;
  readonly stem: string;
  readonly dialect: "opencode";
  /** Its root is the agent's definition. */
  readonly document: SourceDocument;
  readonly foreign: Translated | undefined;
  /** The configuration. */
  readonly path: string;
}

export interface ConfigAgentsOptions {
  readonly problems: ReturnType<typeof createReport>;
  /** A path as diagnostics show it. */
  readonly shown: (path: string) => string;
  readonly keyOf: (path: string) => string;
  /** Receives every file, once. */
  readonly keep: (file: {
    readonly key: string;
    readonly shown: string;
    readonly bytes: Uint8Array;
    readonly at: Span;
  }) => void;
  readonly translate: (file: ForeignFile) => Promise<Translated | undefined>;
}

export interface ConfigPlaces {
  /** Configurations, the one that wins first. */
  readonly paths: readonly string[];
  /** The folder that the files its agents name have to lie in; the configuration's own when absent. */
  readonly within?: string;
}

type FindAgent = (places: ConfigPlaces, name: string, at: Span) => Promise<ConfigAgent | "refused" | undefined>;

/** Finds agents in configurations, each of which is read once. */
export function createConfigAgents({ problems, shown, keyOf, keep, translate }: ConfigAgentsOptions): FindAgent {
  const read = new Map<string, Promise<Config | undefined>>();
  const kept = new Set<string>();

  return async ({ paths, within }, name, at) => {
    for (const path of paths) {
      const config = read.get(path) ?? readConfig(path, shown(path));
      read.set(path, config);
      const found = await agentIn(await config, { path, within: within ?? dirname(path), name, at });
      if (found !== undefined) return found;
    }
    return undefined;
  };

  async function agentIn(config: Config | undefined, wanted: Wanted): Promise<ConfigAgent | "refused" | undefined> {
    const { path, name, at } = wanted;
    if (config === undefined) return undefined;
    const { bytes, document } = config;
    if (!document.ok) {
      // Another program's file is in nobody's way, unless it may be the one that is meant.
      if (!new TextDecoder().decode(bytes).includes(JSON.stringify(name))) return undefined;
      keepOnce(path, bytes, at);
      problems.add(document.error);
      return "refused";
    }
    const node = agentsInConfig(document.value).get(name);
    if (node === undefined) return undefined;
    keepOnce(path, bytes, at);
    const root = await withPromptFile(node, wanted);
    if (root === undefined) return "refused";
    const key = `${keyOf(path)}#${name}`;
    const foreign = await translate({ key, dialect: "opencode", document: { ...document.value, root } });
    return { key, stem: name, dialect: "opencode", document: { ...document.value, root: node }, foreign, path };
  }

  function keepOnce(path: string, bytes: Uint8Array, at: Span): void {
    if (kept.has(path)) return;
    kept.add(path);
    keep({ key: keyOf(path), shown: shown(path), bytes, at });
  }

  async function withPromptFile(node: SourceNode, { path, within, at }: Wanted): Promise<SourceNode | undefined> {
    const map = asMap(node);
    const prompt = asText(map?.entries.find(({ key }) => key === "prompt")?.value);
    if (map === undefined || prompt === undefined) return node;
    const filled = await filledIn(prompt.value, { folder: dirname(path), within, shown });
    if (!filled.ok) {
      problems.report("FLOW1001", prompt.at, filled.error);
      return undefined;
    }
    for (const { file, bytes } of filled.value.files) keepOnce(file, bytes, at);
    const value = nodeOf(filled.value.text, prompt.at);
    const entries = map.entries.map((it): MapEntry => (it.key === "prompt" ? { ...it, value } : it));
    return filled.value.files.length === 0 ? node : { kind: "map", entries, at: map.at };
  }
}

interface Filled {
  readonly text: string;
  readonly files: readonly { readonly file: string; readonly bytes: Uint8Array }[];
}

interface FillPlace {
  readonly folder: string;
  readonly within: string;
  readonly shown: (path: string) => string;
}

/** A prompt with the texts of the files it names as `{file:PATH}`. */
async function filledIn(prompt: string, { folder, within, shown }: FillPlace): Promise<Result<Filled, string>> {
  const files: { readonly file: string; readonly bytes: Uint8Array }[] = [];
  let text = "";
  let end = 0;
  for (const match of prompt.matchAll(/\{file:([^{}]*)\}/g)) {
    const [whole, written = ""] = match;
    const file = resolve(folder, written.trim());
    const cannot = (why: string): Result<Filled, string> =>
      err(`the file \`${written}\` of this prompt cannot be read: ${why}`);
    if (!isInside(file, within)) return cannot("it lies outside of the project");
    const bytes = await readSource(file);
    if (!bytes.ok) return cannot(bytes.error.message);
    const read = decode(bytes.value, shown(file));
    if (!read.ok) return cannot("it is not text");
    files.push({ file, bytes: bytes.value });
    text += prompt.slice(end, match.index) + read.value.trim();
    end = match.index + whole.length;
  }
  return ok({ text: text + prompt.slice(end), files });
}

interface Config {
  readonly bytes: Uint8Array;
  readonly document: ReturnType<typeof parseConfig>;
}

interface Wanted {
  readonly path: string;
  readonly within: string;
  readonly name: string;
  readonly at: Span;
}

async function readConfig(path: string, shown: string): Promise<Config | undefined> {
  const bytes = await readSource(path);
  return bytes.ok ? { bytes: bytes.value, document: parseConfig(bytes.value, shown) } : undefined;
}

/** By where a path leads to, and not by how it is spelled. */
function isInside(file: string, folder: string): boolean {
  const way = relative(real(folder), real(file));
  return way !== "" && way.split(/[\\/]/)[0] !== ".." && !isAbsolute(way);
}

/** What is not there is told when it is read. */
function real(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
