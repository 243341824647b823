import type { JsonObject } from "../model/json.ts";
import type { Tool, ToolOutput } from "../model/ports.ts";
import { type Result, err, ok } from "../model/result.ts";
import { answer, fileName, plural } from "./answer.ts";
import { flagArgument, textArgument, wholeArgument } from "./arguments.ts";
import type { Marks } from "../process/marks.ts";
import { type SearchCall, exclusions, ripgrep } from "./ripgrep.ts";
import { type Opened, openInside } from "./workspace-path.ts";

type Mode = "content" | "files_with_matches" | "count";

const longestPattern = 10_000;
const defaultEntries = 250;
/** Files open at once. */
const batch = 100;
const number = { type: "integer", minimum: 0, maximum: 10_000 };

/** Searches file contents. */
export function grepTool(marks: Marks): Tool {
  return { ...spec, run: (args, call) => search(args, { ...call, marks }) };
}

const spec: Omit<Tool, "run"> = {
  name: "Grep",
  description:
    "Searches file contents with a regular expression (Rust syntax: no look-around, no back-references). Respects " +
    ".gitignore. output_mode files_with_matches (default) gives paths, content gives matching lines, count gives matches " +
    "per file. At most 250 entries unless head_limit says otherwise.",
  readOnly: true,
  aliases: {
    names: ["grep", "grep_search", "search_file_content"],
    parameters: { include: "glob", dir_path: "path" },
  },
  parameters: {
    type: "object",
    required: ["pattern"],
    additionalProperties: false,
    properties: {
      pattern: { type: "string", minLength: 1, maxLength: longestPattern, description: "Regular expression" },
      path: { type: "string", description: "File or folder to search; the workspace by default" },
      glob: { type: "string", maxLength: 1_000, description: "Only files that match, such as `*.ts` or `!*.md`" },
      type: {
        type: "string",
        maxLength: 100,
        description: "Only files of a type ripgrep knows, such as `js` or `rust`",
      },
      output_mode: { type: "string", enum: ["content", "files_with_matches", "count"] },
      "-A": { ...number, description: "Lines after each match (content)" },
      "-B": { ...number, description: "Lines before each match (content)" },
      "-C": { ...number, description: "Lines around each match (content)" },
      "-n": { type: "boolean", description: "Line numbers (content); true by default" },
      "-i": { type: "boolean", description: "Ignore case" },
      "-o": { type: "boolean", description: "Only the matching parts (content)" },
      multiline: { type: "boolean", description: "Patterns may span lines, and . matches a newline" },
      head_limit: { type: "integer", minimum: 0, description: "Entries shown; 0 for as many as fit; 250 by default" },
      offset: { type: "integer", minimum: 0, description: "Entries left out at the beginning" },
    },
  },
};

/**
 * In two passes. The first walks the tree and gives names only. Each named file is then opened and proved to lie inside
 * and to be no secret, and the second pass reads exactly what was opened: a folder that becomes a link meanwhile shows
 * nothing from outside.
 */
async function search(args: JsonObject, call: SearchCall): Promise<Result<ToolOutput, string>> {
  const pattern = textArgument(args, "pattern") ?? "";
  if (pattern.includes("\0")) return err("the pattern contains a NUL character");
  const candidates = await candidatesOf(args, call);
  if (!candidates.ok) return candidates;
  const limit = wholeArgument(args, "head_limit") ?? defaultEntries;
  const offset = wholeArgument(args, "offset") ?? 0;
  const wanted = limit === 0 ? Infinity : offset + limit;
  const entries: string[] = [];
  let complete = candidates.value.complete;
  // One entry more than wanted says that there are more.
  for (let at = 0; at < candidates.value.paths.length && entries.length <= wanted; at += batch) {
    const some = await searchFiles(candidates.value.paths.slice(at, at + batch), args, call);
    if (!some.ok) return some;
    for (const entry of some.value.entries) entries.push(entry);
    complete &&= some.value.complete;
  }
  return present(entries, { offset, wanted, complete });
}

interface Candidates {
  /** From the workspace, sorted. */
  readonly paths: readonly string[];
  readonly complete: boolean;
}

async function candidatesOf(args: JsonObject, call: SearchCall): Promise<Result<Candidates, string>> {
  const start = textArgument(args, "path") ?? ".";
  const file = await openInside(call.workspace, start, "file");
  if (file.ok) {
    await file.value.handle.close();
    return ok({ paths: [file.value.place.relative], complete: true });
  }
  const folder = await openInside(call.workspace, start, "folder");
  // A FIFO or a device is neither: what was said about the file is the better answer.
  if (!folder.ok) return file;
  const { handle, place, stable } = folder.value;
  try {
    const glob = textArgument(args, "glob");
    const type = textArgument(args, "type");
    const options = [
      "--files-with-matches",
      "--null",
      "--hidden",
      "--no-ignore-global",
      "--sort=path",
      ...matching(args),
      ...(glob === undefined ? [] : [`--glob=${glob}`]),
      ...(type === undefined ? [] : [`--type=${type}`]),
      ...exclusions([glob ?? "", place.relative]),
    ];
    const found = await ripgrep([...options, "./"], stable, call);
    if (!found.ok) return found;
    const names = found.value.text
      .split("\0")
      .slice(0, -1)
      .map((name) => name.replace(/^\.\//, ""));
    const paths = names.map((name) => (place.relative === "" ? name : `${place.relative}/${name}`));
    return ok({ paths, complete: found.value.complete });
  } finally {
    await handle.close();
  }
}

/** The arguments that decide what a match is; the same in both passes. */
function matching(args: JsonObject): string[] {
  return [
    `--regexp=${textArgument(args, "pattern") ?? ""}`,
    "--crlf",
    ...(flagArgument(args, "-i") === true ? ["--ignore-case"] : []),
    ...(flagArgument(args, "multiline") === true ? ["--multiline", "--multiline-dotall"] : []),
  ];
}

interface Entries {
  readonly entries: readonly string[];
  readonly complete: boolean;
}

async function searchFiles(
  paths: readonly string[],
  args: JsonObject,
  call: SearchCall,
): Promise<Result<Entries, string>> {
  const opened: Opened[] = [];
  try {
    for (const path of paths) {
      const file = await openInside(call.workspace, `./${path}`, "file");
      if (!file.ok) continue;
      if (call.mayRead?.(file.value.place.relative) === false) await file.value.handle.close();
      else opened.push(file.value);
    }
    if (opened.length === 0) return ok({ entries: [], complete: true });
    const mode = modeOf(args);
    const options = [
      "--with-filename",
      "--null",
      "--threads=1",
      "--no-ignore",
      ...matching(args),
      ...printing(mode, args),
    ];
    const names = new Map(opened.map(({ stable, place }) => [stable, fileName(place.relative)]));
    const found = await ripgrep([...options, "--", ...names.keys()], call.workspace, call);
    if (!found.ok) return found;
    const numbers = flagArgument(args, "-n") ?? true;
    return ok({ entries: entriesOf(found.value.text, { names, mode, numbers }), complete: found.value.complete });
  } finally {
    for (const { handle } of opened) await handle.close();
  }
}

function modeOf(args: JsonObject): Mode {
  const mode = textArgument(args, "output_mode");
  return mode === "content" || mode === "count" ? mode : "files_with_matches";
}

function printing(mode: Mode, args: JsonObject): string[] {
  if (mode === "files_with_matches") return ["--files-with-matches"];
  if (mode === "count") return ["--count-matches"];
  const lines = (["-A", "-B", "-C"] as const).flatMap((name) => {
    const value = wholeArgument(args, name);
    return value === undefined ? [] : [`${name}${value}`];
  });
  const only = flagArgument(args, "-o") === true ? ["--only-matching"] : [];
  return ["--no-heading", "--line-number", "--max-columns=500", "--max-columns-preview", ...lines, ...only];
}

interface Printed {
  readonly names: ReadonlyMap<string, string>;
  readonly mode: Mode;
  readonly numbers: boolean;
}

/** What ripgrep printed, with our names for the files. A line without a file belongs to the match before it. */
function entriesOf(text: string, { names, mode, numbers }: Printed): string[] {
  if (mode === "files_with_matches") return text.split("\0").flatMap((path) => names.get(path) ?? []);
  const entries: string[] = [];
  for (const line of text.split("\n").slice(0, -1)) {
    const zero = line.indexOf("\0");
    const name = zero < 0 ? undefined : names.get(line.slice(0, zero));
    const rest = line.slice(zero + 1).replace(/\r$/, "");
    if (name === undefined) entries.push(line.replace(/\r$/, ""));
    else if (mode === "count") entries.push(`${name}:${rest}`);
    else entries.push(contentEntry(name, rest, numbers));
  }
  return entries;
}

/** `12:text` for a match, `12-text` for a line around one. */
function contentEntry(name: string, rest: string, numbers: boolean): string {
  const [prefix = "", sign = ":"] = /^\d+([:-])/.exec(rest) ?? [];
  return numbers ? `${name}${sign}${rest}` : `${name}${sign}${rest.slice(prefix.length)}`;
}

function present(entries: readonly string[], shown: { offset: number; wanted: number; complete: boolean }) {
  const { offset, wanted, complete } = shown;
  if (entries.length === 0) return answer(complete ? "[no match]" : "[no match in the part that was searched]");
  const lines = entries.slice(offset, wanted);
  if (lines.length === 0)
    return answer(`[only ${plural(entries.length, "line")} of result; offset ${offset} is beyond]`);
  if (entries.length > wanted) lines.push(`[there is more; continue with offset ${wanted}]`);
  else if (!complete) lines.push("[the result was too large and is cut here; narrow pattern, path or glob]");
  return answer(lines.join("\n"));
}
