import { realpathSync } from "node:fs";
import { dirname, isAbsolute, relative, resolve, sep } from "node:path";
import type { Span } from "../model/diagnostic.ts";
import { entry, type MapNode, type ScalarNode, type SourceDocument, type SourceNode } from "../source/document.ts";
import { parseSource } from "../source/parse.ts";
import { readSource } from "../source/read.ts";
import { agentFiles, builtInAgents, userAgentFiles } from "./agent-files.ts";
import { type AgentFile, type AgentShelf, createAgentShelf, type NamedAgents } from "./agent-shelf.ts";
import type { ForeignFile, Translated } from "./dialects/index.ts";
import { type ProjectServers, projectServersFile, readProjectServers } from "./project-servers.ts";
import { asMap, asText, entriesOf } from "./read/nodes.ts";
import type { createReport } from "./report.ts";

/** Every file of a workflow, read once: the bytes that are hashed here are the bytes that are compiled. */
export interface Library {
  /** Key of the root workflow. */
  readonly root: string;
  readonly workflows: ReadonlyMap<string, WorkflowFile>;
  /** What was read, in order. */
  readonly files: readonly ReadFile[];
  /** The project's MCP servers; absent where it has none, or no file speaks of any. */
  readonly servers?: ProjectServers;
}

export interface ReadFile {
  /** Relative to the workspace. */
  readonly path: string;
  readonly bytes: Uint8Array;
}

export interface WorkflowFile {
  /** Path relative to the workspace with `/`, or `-`. */
  readonly key: string;
  /** The folder that relative paths in the file start from. */
  readonly folder: string;
  readonly document: SourceDocument;
  /** Sub-workflows and agent files by the text that names them here. */
  readonly workflows: ReadonlyMap<string, string>;
  readonly agents: ReadonlyMap<string, AgentFile>;
  /** Names whose file was found and could not be read; that has been reported. */
  readonly refusedAgents: ReadonlySet<string>;
  /** What the agents that it defines itself, and the teams of its steps, name. */
  readonly namedAgents: ReadonlyMap<MapNode, NamedAgents>;
  /** Names of the agents whose files lie where this file's are looked for; reads those folders. */
  readonly agentsNearby: () => readonly string[];
}

export interface LoadOptions {
  /** Path as typed, or `-` for `stdin`. */
  readonly file: string;
  readonly stdin?: Uint8Array;
  readonly cwd: string;
  readonly workspace: string;
  /** Receives the text of every file that was read, whole or not, by the name its spans carry. */
  readonly texts: Map<string, string>;
  readonly problems: ReturnType<typeof createReport>;
  /** The folder of the agents that come with flow. */
  readonly builtIns: string;
  readonly home?: string;
  readonly translate: (file: ForeignFile) => Promise<Translated | undefined>;
}

/** The agent that writes summaries; whoever has one of his own replaces flow's. */
export const compactAgent = "compact";

const closureLimit = 32 * 1024 * 1024;
const workflowLimit = 1_000;
const depthLimit = 5;

/** Reads a workflow with everything it names. Undefined when the root itself cannot be read. */
export async function load(options: LoadOptions): Promise<Library | undefined> {
  const shelf = createShelf(options);
  const rootAt: Span = { file: options.file, line: 1, column: 1, endLine: 1, endColumn: 1 };
  const root =
    options.file === "-"
      ? shelf.open("-", options.cwd, options.stdin ?? new Uint8Array(), rootAt)
      : await shelf.workflow(resolve(options.cwd, options.file), rootAt);
  if (!root) return undefined;
  const workflows = new Map<string, WorkflowFile>();
  const calls: Call[] = [];
  const queue: Opened[] = [root];
  for (let next = queue.shift(); next; next = queue.shift()) {
    if (workflows.has(next.key)) continue;
    if (workflows.size >= workflowLimit) {
      options.problems.report("FLOW3008", rootAt, `this workflow reaches more than ${workflowLimit} other workflows`);
      break;
    }
    const named = namedIn(next.document);
    const found = new Map<string, string>();
    for (const { text, node } of named.workflows) {
      if (found.has(text)) continue;
      const target = await shelf.workflow(resolve(next.folder, text), node.at);
      if (!target) continue;
      found.set(text, target.key);
      calls.push({ from: next.key, to: target.key, at: node.at });
      queue.push(target);
    }
    const agents = new Map<string, AgentFile>();
    const refusedAgents = new Set<string>();
    for (const { text, node } of named.agents) {
      if (agents.has(text)) continue;
      const agent = await shelf.agents.find(next.folder, text, node.at);
      if (agent === "refused") refusedAgents.add(text);
      else if (agent) agents.set(text, agent);
    }
    const compact =
      next === root && agents.size + named.definitions.length > 0
        ? await shelf.agents.own(next.folder, compactAgent, rootAt)
        : undefined;
    if (compact && compact !== "refused" && !agents.has(compactAgent)) agents.set(compactAgent, compact);
    const agentsNearby = (): string[] => [
      ...new Set([
        ...agentFiles(next.folder, options.workspace).map(({ name }) => name),
        ...builtInAgents(options.builtIns),
        ...userAgentFiles(options.home).map(({ name }) => name),
      ]),
    ];
    const namedAgents = new Map<MapNode, NamedAgents>();
    for (const definition of named.definitions)
      namedAgents.set(definition, await shelf.agents.namedIn(definition, next.folder, named.inline));
    workflows.set(next.key, { ...next, workflows: found, agents, refusedAgents, namedAgents, agentsNearby });
  }
  checkNesting(root.key, calls, options);
  const servers = await projectServers(options, shelf.files);
  return { root: root.key, workflows, files: shelf.files, ...(servers && { servers }) };
}

/** Read only for files that speak of MCP at all. */
async function projectServers(
  { workspace, cwd, texts, problems }: LoadOptions,
  files: ReadFile[],
): Promise<ProjectServers | undefined> {
  if (![...texts.values()].some((text) => text.includes("mcp"))) return undefined;
  const path = resolve(workspace, projectServersFile);
  const name = shown(path, cwd);
  const keep = (bytes: Uint8Array): void => {
    files.push({ path: projectServersFile, bytes });
    texts.set(name, new TextDecoder().decode(bytes));
  };
  return readProjectServers({ path, shown: name, problems, keep });
}

interface Opened {
  readonly key: string;
  readonly folder: string;
  readonly document: SourceDocument;
}
interface Call {
  readonly from: string;
  readonly to: string;
  readonly at: Span;
}

/** Opens files, each once, and keeps count of what was read. */
function createShelf({ problems, cwd, workspace, texts, builtIns, home, translate }: LoadOptions): {
  readonly files: ReadFile[];
  open(key: string, folder: string, bytes: Uint8Array, at: Span): Opened | undefined;
  workflow(path: string, at: Span): Promise<Opened | undefined>;
  readonly agents: AgentShelf;
} {
  const files: ReadFile[] = [];
  const opened = new Map<string, Opened | undefined>();
  let total = 0;

  const keep = (key: string, bytes: Uint8Array, at: Span): void => {
    files.push({ path: key, bytes });
    total += bytes.length;
    if (total > closureLimit)
      problems.report("FLOW3013", at, `the files of this workflow are over ${closureLimit / 1024 / 1024} MiB together`);
  };
  const open = (key: string, folder: string, bytes: Uint8Array, at: Span): Opened | undefined => {
    keep(key, bytes, at);
    const file = key === "-" ? "-" : shown(resolve(workspace, key), cwd);
    texts.set(file, new TextDecoder().decode(bytes));
    const document = parseSource(bytes, file);
    if (!document.ok) {
      problems.add(document.error);
      return undefined;
    }
    return { key, folder, document: document.value };
  };

  return {
    files,
    open,
    async workflow(path, at) {
      const real = realPath(path);
      const key = keyOf(real, workspace);
      if (opened.has(key)) return opened.get(key);
      const bytes = await readSource(real);
      if (!bytes.ok) {
        const isRoot = opened.size === 0;
        problems.report(
          isRoot ? bytes.error.code : "FLOW3006",
          at,
          isRoot ? bytes.error.message : `the sub-workflow cannot be read: ${bytes.error.message}`,
        );
        return undefined;
      }
      const result = open(key, dirname(real), bytes.value, at);
      opened.set(key, result);
      return result;
    },
    agents: createAgentShelf({
      workspace,
      builtIns,
      home,
      problems,
      translate,
      shown: (path) => shown(path, cwd),
      keyOf: (path) => keyOf(path, workspace),
      keep({ key, shown: file, bytes, at }) {
        keep(key, bytes, at);
        texts.set(file, new TextDecoder().decode(bytes));
      },
    }),
  };
}

interface NamedNode {
  readonly text: string;
  readonly node: ScalarNode;
}

interface Named {
  readonly workflows: NamedNode[];
  readonly agents: NamedNode[];
  /** The agents it defines, and the steps: what else names agents. */
  readonly definitions: MapNode[];
  /** Names of the agents it defines for all of it. */
  readonly inline: ReadonlySet<string>;
}

/** The sub-workflows and agents a file names, at every depth. */
function namedIn(document: SourceDocument): Named {
  const root = asMap(document.root);
  const defined = entriesOf(root && entry(root, "agents")?.value);
  const inline = new Set(defined.map((agent) => agent.key));
  const definitions = defined.flatMap(({ value }) => asMap(value) ?? []);
  const named: Named = { workflows: [], agents: [], definitions, inline };
  const visitStep = (step: SourceNode | undefined): void => {
    const map = asMap(step);
    if (!map) return;
    const workflow = asText(entry(map, "workflow")?.value);
    if (workflow && !workflow.value.includes("${{")) named.workflows.push({ text: workflow.value, node: workflow });
    const written = entry(map, "agent")?.value;
    const agent = asText(written);
    if (agent && !inline.has(agent.value) && !agent.value.includes("${{"))
      named.agents.push({ text: agent.value, node: agent });
    const definition = asMap(written);
    if (definition) definitions.push(definition);
    if (entry(map, "team")) definitions.push(map);
    visitSteps(entry(map, "steps")?.value);
    visitStep(entry(map, "undo")?.value);
  };
  const visitSteps = (steps: SourceNode | undefined): void => entriesOf(steps).forEach((step) => visitStep(step.value));
  if (root) visitSteps(entry(root, "steps")?.value);
  return named;
}

/** Reports a workflow that contains itself, or that reaches too deep. Works on a stack of its own: chains may be long. */
function checkNesting(root: string, calls: readonly Call[], { problems }: LoadOptions): void {
  const callsOf = Map.groupBy(calls, (call) => call.from);
  /** Levels below a workflow that has been looked through. */
  const heights = new Map<string, number>();
  const way: Level[] = [{ key: root, next: 0, call: undefined, height: 0 }];
  for (let top = way.at(-1); top; top = way.at(-1)) {
    const call = callsOf.get(top.key)?.[top.next++];
    if (!call) {
      heights.set(top.key, top.height);
      way.pop();
      const above = way.at(-1);
      if (above) above.height = Math.max(above.height, top.height + 1);
      continue;
    }
    const below = heights.get(call.to);
    const start = way.findIndex((level) => level.key === call.to);
    if (start >= 0) {
      const loop = [...way.slice(start).map((level) => level.key), call.to].join(" -> ");
      const related = way
        .slice(start + 1)
        .flatMap((level) =>
          level.call ? [{ message: `\`${level.call.to}\` is entered here`, at: level.call.at }] : [],
        );
      problems.report("FLOW3007", call.at, `a workflow cannot contain itself: ${loop}`, { related });
    } else if (way.length + (below ?? 0) > depthLimit) {
      problems.report(
        "FLOW3008",
        call.at,
        `sub-workflows may be nested ${depthLimit} levels deep; this reaches level ${way.length + (below ?? 0)}`,
      );
    } else if (below === undefined) {
      way.push({ key: call.to, next: 0, call, height: 0 });
    } else {
      top.height = Math.max(top.height, below + 1);
    }
  }
}

interface Level {
  readonly key: string;
  readonly call: Call | undefined;
  next: number;
  height: number;
}

/** What cannot be resolved is told when it is read. */
function realPath(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    return path;
  }
}

function keyOf(path: string, workspace: string): string {
  return relative(workspace, path).split(sep).join("/");
}

/** A path as a person in `cwd` would type it: relative, unless it lies elsewhere. */
function shown(path: string, cwd: string): string {
  const short = relative(cwd, path);
  return short === "" || isAbsolute(short) ? path : short.split(sep).join("/");
}
