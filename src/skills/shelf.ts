import { type Dirent, readdirSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import type { Diagnostic, SourceTexts } from "../model/diagnostic.ts";
import { readSkill } from "./read.ts";
import type { Skill } from "./skill.ts";
import { readSource } from "../source/read.ts";

export interface Shelf {
  readonly skills: readonly Skill[];
  /** Of skills that cannot be used; by the skill's folder name. */
  readonly broken: ReadonlyMap<string, readonly Diagnostic[]>;
  readonly warnings: readonly Diagnostic[];
  readonly sources: SourceTexts;
}

const roots = [".agents/skills", ".claude/skills", ".opencode/skill", ".opencode/skills", "skills"];
const mostSkills = 500;

/** The skills of some folders, nearest first: of two with one name the first counts. */
export async function readShelf(
  folders: readonly string[],
  { cwd, workspace }: { readonly cwd: string; readonly workspace: string },
): Promise<Shelf> {
  const skills = new Map<string, Skill>();
  const broken = new Map<string, readonly Diagnostic[]>();
  const warnings: Diagnostic[] = [];
  const sources = new Map<string, string>();
  const places = [...new Set(folders.flatMap((folder) => roots.map((root) => resolve(folder, root))))];
  for (const { name, path } of places.flatMap(foldersIn).slice(0, mostSkills)) {
    const bytes = await readSource(join(path, "SKILL.md"));
    if (!bytes.ok) continue;
    const file = shownFrom(cwd, join(path, "SKILL.md"));
    sources.set(file, new TextDecoder().decode(bytes.value));
    const read = readSkill(bytes.value, { file, stem: name, folder: relative(workspace, path).replaceAll("\\", "/") });
    if (!read.ok) broken.set(name, [...(broken.get(name) ?? []), ...read.error]);
    else {
      warnings.push(...read.value.warnings);
      if (!skills.has(read.value.skill.name)) skills.set(read.value.skill.name, read.value.skill);
    }
  }
  return { skills: [...skills.values()], broken, warnings, sources };
}

function foldersIn(place: string): { readonly name: string; readonly path: string }[] {
  let entries: Dirent[];
  try {
    entries = readdirSync(place, { withFileTypes: true });
  } catch {
    return [];
  }
  return entries
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith("."))
    .map(({ name }) => ({ name, path: join(place, name) }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

function shownFrom(cwd: string, path: string): string {
  const short = relative(cwd, path);
  return short.startsWith("..") ? path : short.replaceAll("\\", "/");
}
