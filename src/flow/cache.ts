import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { definitionOf, type Definition } from "../cache/definition.ts";
import { decide, differing, type Masks, type NamedValue, type Part } from "../cache/parts.ts";
import { openStore, prune, type Pruned, type Store } from "../cache/store.ts";
import type { Plan, PlanFile, Step } from "../model/plan.ts";
import type { Cache, CacheAnswer, CacheQuestion, Clock } from "../model/ports.ts";
import { err, messageOf, ok, type Result } from "../model/result.ts";
import { workspaceOf } from "../runlog/runs.ts";
import { systemClock } from "./clock.ts";
import { loadListFiles } from "./hash-files.ts";

export interface CacheOptions {
  readonly plan: Plan;
  readonly run: string;
  readonly workspace: string;
  /** Where flow was started. */
  readonly cwd: string;
  /** The file of replies that stands for every model; relative to `cwd`. */
  readonly script: string | undefined;
  /** Nothing is reused, and what runs is kept in the place of what was. */
  readonly refresh: boolean;
  readonly mask: Masks;
  readonly clock: Clock;
  /** Hears of an entry that cannot be read or kept: the step runs, and the run goes on. */
  readonly warn: (message: string) => void;
}

/** The outputs of earlier executions in this workspace. */
export async function createCache(options: CacheOptions): Promise<Cache> {
  const { plan, workspace, mask, clock, run, refresh } = options;
  const store = openStore(cacheFolder(workspace));
  const listFiles = await loadListFiles(workspace);
  const definitions = new WeakMap<Step, Definition>();
  const warned = new Set<string>();
  const warn = (text: string): void => {
    const message = text.replaceAll(`${workspace}/`, "");
    if (!warned.has(message)) options.warn(message);
    warned.add(message);
  };
  return {
    async ask(question) {
      const files = filesOf(question, listFiles);
      if (!files.ok) return files;
      const { step, workflow } = question;
      const definition = definitions.get(step) ?? definitionOf(step, plan);
      definitions.set(step, definition);
      const around = aroundOf(options, question, definition);
      const { key, parts } = decide({ question, definition: definition.values, around, files: files.value, mask });
      const name = `${workflow.path} ${question.path}`;
      return ok({
        key,
        found: refresh ? { miss: { why: "refresh" } } : look({ store, key, name, parts, warn }),
        keep: (outputs) => {
          const stored = new Date(clock.now()).toISOString();
          const kept = store.put({ format: 1, key, step: name, run, stored, parts, outputs });
          if (!kept.ok) warn(`the outputs of \`${question.path}\` could not be kept for later runs: ${kept.error}`);
        },
      });
    },
  };
}

/** Removes what was not used for `age` milliseconds, or everything, from the cache of the workspace around `cwd`. */
export function pruneCache(cwd: string, age: number | undefined): Result<Pruned & { readonly folder: string }, string> {
  const folder = cacheFolder(workspaceOf(cwd));
  const pruned = prune(folder, age === undefined ? Number.POSITIVE_INFINITY : systemClock.now() - age);
  return pruned.ok ? ok({ folder, ...pruned.value }) : err(`the cache ${folder} cannot be pruned: ${pruned.error}`);
}

function cacheFolder(workspace: string): string {
  return join(workspace, ".flow", "cache");
}

interface Asked {
  readonly store: Store;
  readonly key: string;
  readonly name: string;
  readonly parts: readonly Part[];
  readonly warn: (message: string) => void;
}

function look({ store, key, name, parts, warn }: Asked): CacheAnswer["found"] {
  const entry = store.get(key);
  if (!entry.ok) {
    warn(`the cache cannot be read: ${entry.error}`);
    return { miss: { why: "damaged" } };
  }
  if (entry.value !== undefined) {
    const { outputs, run, stored } = entry.value;
    return { hit: { outputs, run, stored } };
  }
  const last = store.last(name);
  if (last === undefined) return { miss: { why: "first" } };
  const than = { run: last.run, stored: last.stored };
  return { miss: { why: "changed", changed: differing(last.parts, parts), than } };
}

function filesOf(
  { files }: CacheQuestion,
  listFiles: Awaited<ReturnType<typeof loadListFiles>>,
): Result<readonly PlanFile[], string> {
  if (files.length === 0) return ok([]);
  try {
    const found = listFiles(files);
    return found.ok ? found : err(`\`cache.files\` ${found.error}`);
  } catch (error) {
    return err(`a file of \`cache.files\` cannot be read: ${messageOf(error)}`);
  }
}

/** What counts beside the step itself: the folder its commands start in, the rules and replies its agents run under. */
function aroundOf(options: CacheOptions, { workflow, inputs }: CacheQuestion, definition: Definition): NamedValue[] {
  const { workspace, cwd, script } = options;
  const around: NamedValue[] = [{ name: "working folder", value: cwd.slice(workspace.length) }];
  const { permissions, mcp, tools } = workflow;
  for (const [name, value] of Object.entries({ permissions, mcp, tools }))
    if (value !== undefined) around.push({ name: `the workflow's ${name}`, value: value.json });
  if (definition.agents.length === 0) return around;
  const folder = workflow.path === "-" ? cwd : dirname(resolve(workspace, workflow.path));
  const folders = [folder, ...definition.workflows.map((key) => dirname(resolve(workspace, key)))];
  const named = [...scriptsIn([definition.values, inputs])];
  const scripts =
    script === undefined ? folders.flatMap((from) => named.map((path) => resolve(from, path))) : [resolve(cwd, script)];
  return [...around, ...[...new Set(scripts)].flatMap(replies)];
}

/** Paths of the files of replies that are named as models. */
function* scriptsIn(value: unknown): Generator<string> {
  if (typeof value === "string" && value.startsWith("scripted/")) yield value.slice("scripted/".length);
  else if (typeof value === "object" && value !== null)
    for (const inner of Object.values(value)) yield* scriptsIn(inner);
}

function replies(path: string): NamedValue[] {
  try {
    const value = createHash("sha256").update(readFileSync(path)).digest("hex");
    return [{ name: "replies of the script", value }];
  } catch {
    return [];
  }
}
