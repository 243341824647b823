import { dirname, isAbsolute, relative } from "node:path";
import { realpath } from "node:fs/promises";
import type { JsonObject } from "../model/json.ts";
import type { Tool, ToolCall, ToolOutput } from "../model/ports.ts";
import { type Result, err, ok } from "../model/result.ts";
import { answer, fileName } from "./answer.ts";
import { textArgument } from "./arguments.ts";
import type { Marks } from "../process/marks.ts";
import { type SearchCall, exclusions, ripgrep } from "./ripgrep.ts";
import { isSecretFile } from "./secret-files.ts";
import { openInside, placeOf } from "./workspace-path.ts";

const listed = 1_000;
const longestPattern = 1_000;

/** Finds files by name. */
export function globTool(marks: Marks): Tool {
  return { ...spec, run: (args, call) => find(args, { ...call, marks }) };
}

const spec: Omit<Tool, "run"> = {
  name: "Glob",
  description:
    "Finds files by a pattern such as `src/**/*.ts` or `**/*.{yaml,yml}`, relative to path. Returns paths from the " +
    "workspace, sorted, at most 1000. Links are not followed; .git and node_modules only when named.",
  readOnly: true,
  aliases: { names: ["glob", "find"], parameters: { dir_path: "path" } },
  parameters: {
    type: "object",
    required: ["pattern"],
    additionalProperties: false,
    properties: {
      pattern: { type: "string", minLength: 1, maxLength: longestPattern, description: "Pattern of the wanted paths" },
      path: { type: "string", description: "Folder to start in; the workspace by default" },
    },
  },
};

async function find(args: JsonObject, call: SearchCall): Promise<Result<ToolOutput, string>> {
  const start = textArgument(args, "path") ?? ".";
  const opened = await openInside(call.workspace, start, "folder");
  if (!opened.ok) return opened;
  const { handle, place, stable } = opened.value;
  try {
    const pattern = await relativePattern(textArgument(args, "pattern") ?? "", place.real);
    if (!pattern.ok) return pattern;
    // A leading slash ties the pattern to the start; without it ripgrep takes `*.ts` for every depth.
    const globs = [`--glob=/${pattern.value}`, ...exclusions([pattern.value, place.relative])];
    const search = ["--files", "--hidden", "--no-ignore", "--null", "--sort=path", ...globs, "./"];
    const found = await ripgrep(search, stable, call);
    if (!found.ok) return found;
    const names = found.value.text
      .split("\0")
      .slice(0, -1)
      .map((name) => name.replace(/^\.\//, ""));
    return await present(names, {
      workspace: call.workspace,
      base: place.relative,
      complete: found.value.complete,
      mayRead: call.mayRead,
    });
  } finally {
    await handle.close();
  }
}

/** The pattern from the start folder; absolute ones are accepted when they lie below it. */
async function relativePattern(pattern: string, start: string): Promise<Result<string, string>> {
  if (pattern.length > longestPattern) return err(`the pattern is longer than ${longestPattern} characters`);
  if (pattern.includes("\0")) return err("the pattern contains a NUL character");
  const own =
    isAbsolute(pattern) && pattern.startsWith(`${await realpath(start)}/`) ? relative(start, pattern) : pattern;
  const bare = own.replace(/^(?:\.\/)+/, "");
  if (isAbsolute(bare) || bare.startsWith("~")) return err("the pattern leads outside; write it relative to path");
  if (bare.split("/").includes("..")) return err("the pattern may not contain `..`; set path instead");
  return ok(bare);
}

interface Shown {
  readonly workspace: string;
  readonly base: string;
  readonly complete: boolean;
  readonly mayRead: ToolCall["mayRead"];
}

async function present(names: readonly string[], shown: Shown): Promise<Result<ToolOutput, string>> {
  const paths = names.map((name) => (shown.base === "" ? name : `${shown.base}/${name}`));
  const lines: string[] = [];
  let more = !shown.complete;
  const folders = new Map<string, boolean>();
  // Asked again of the real file system: a folder may have become a link while ripgrep walked.
  const isInside = async (folder: string): Promise<boolean> => {
    const known = folders.get(folder) ?? (await placeOf(shown.workspace, `./${folder}`)).ok;
    folders.set(folder, known);
    return known;
  };
  for (const path of paths) {
    if (isSecretFile(path) || !(await isInside(dirname(path))) || shown.mayRead?.(path) === false) continue;
    more ||= lines.length === listed;
    if (lines.length === listed) break;
    lines.push(fileName(path));
  }
  if (lines.length === 0) return answer("[no file matches]");
  if (more) lines.push(`[the first ${lines.length} paths; there are more, use a narrower pattern]`);
  return answer(lines.join("\n"));
}
