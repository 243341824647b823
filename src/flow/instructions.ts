import { createHash } from "node:crypto";
import { readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, relative, resolve, sep } from "node:path";
import { isJsonObject, type Json, own } from "../model/json.ts";
import type { Failure } from "../model/outcome.ts";
import type { Agent, Plan } from "../model/plan.ts";
import { err, ok, type Result } from "../model/result.ts";

/** A file of instructions as it was when the run began. `path` is relative to the workspace. */
export interface InstructionFile {
  readonly path: string;
  readonly text: string;
}

export interface Instructions {
  /** Those of an agent, by its key in the plan; the nearest last. */
  readonly of: (agent: string) => Result<readonly InstructionFile[], Failure>;
  /** The plan with the content of the files in its agents: whoever compares definitions sees a changed file. */
  readonly plan: Plan;
}

/** In each folder the first of these. */
const names = ["AGENTS.md", "CLAUDE.md", "GEMINI.md"];
/** Characters of one file; the rest is left out, and the text says so. */
const longest = 64 * 1024;

/** Reads what the agents of a plan are told beside their own instructions (`instructions-files`), once for a run. */
export function readInstructions(plan: Plan, cwd: string, workspace: string): Instructions {
  const keys = Object.keys(plan.agents);
  if (keys.length === 0) return { of: () => ok([]), plan };
  const found = new Map(Object.entries(plan.agents).map(([key, agent]) => [key, filesOf(agent, cwd, workspace)]));
  const agents = Object.entries(plan.agents).map(([key, agent]) => [key, withContent(agent, found.get(key))] as const);
  return { of: (key) => found.get(key) ?? ok([]), plan: { ...plan, agents: Object.fromEntries(agents) } };
}

function filesOf({ name, settings }: Agent, cwd: string, workspace: string): Result<InstructionFile[], Failure> {
  const written = isJsonObject(settings.json) ? own(settings.json, "instructions-files") : undefined;
  if (written === "none") return ok([]);
  if (!Array.isArray(written)) return ok(foldersTo(cwd, workspace).flatMap((folder) => firstIn(folder, workspace)));
  const files: InstructionFile[] = [];
  for (const path of written.filter((item) => typeof item === "string")) {
    const file = readFile(resolve(cwd, path), workspace);
    if (file === undefined)
      return err({
        kind: "input",
        message: `agent \`${name}\`: the instructions file \`${path}\` is not a file in ${workspace}`,
      });
    files.push(file);
  }
  return ok(files);
}

/** From the workspace down to the working directory. */
function foldersTo(cwd: string, workspace: string): string[] {
  const folders = [cwd];
  for (let folder = cwd; folder !== workspace && folder.startsWith(workspace + sep);) {
    folder = dirname(folder);
    folders.unshift(folder);
  }
  return folders;
}

function firstIn(folder: string, workspace: string): InstructionFile[] {
  for (const name of names) {
    const file = readFile(resolve(folder, name), workspace);
    if (file !== undefined) return [file];
  }
  return [];
}

/** Undefined for what is not a readable file inside the workspace, also by a link. */
function readFile(path: string, workspace: string): InstructionFile | undefined {
  try {
    const real = realpathSync(path);
    if (!real.startsWith(realpathSync(workspace) + sep) || !statSync(real).isFile()) return undefined;
    const whole = readFileSync(real, "utf8").trim();
    const text = whole.length > longest ? `${whole.slice(0, longest)}\n[cut: the file is longer]` : whole;
    return { path: relative(workspace, path).replaceAll("\\", "/"), text };
  } catch {
    return undefined;
  }
}

function withContent(agent: Agent, files: Result<readonly InstructionFile[], Failure> | undefined): Agent {
  if (files?.ok !== true || files.value.length === 0 || !isJsonObject(agent.settings.json)) return agent;
  const hashes: Json = files.value.map(({ path, text }) => [path, createHash("sha256").update(text).digest("hex")]);
  return { ...agent, settings: { json: { ...agent.settings.json, "instructions-files": hashes } } };
}
