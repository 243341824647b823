import type { Code } from "../model/codes.ts";
import type { Diagnostic, Span } from "../model/diagnostic.ts";
import { err, ok, type Result } from "../model/result.ts";
import { entry, type MapNode, type SourceNode } from "../source/document.ts";
import { parseFrontMatter } from "../source/front-matter.ts";
import type { Skill } from "./skill.ts";

const namePattern = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;
const known: ReadonlySet<string> = new Set([
  "name",
  "description",
  "license",
  "compatibility",
  "metadata",
  "allowed-tools",
  "disable-model-invocation",
]);

export interface SkillPlace {
  readonly file: string;
  /** The name of its folder. */
  readonly stem: string;
  readonly folder: string;
}

/** One `SKILL.md`. The error is why it cannot be used. */
export function readSkill(
  bytes: Uint8Array,
  { file, stem, folder }: SkillPlace,
): Result<{ readonly skill: Skill; readonly warnings: readonly Diagnostic[] }, readonly Diagnostic[]> {
  const parsed = parseFrontMatter(bytes, file);
  if (!parsed.ok) return parsed;
  const { document, body, warnings } = parsed.value;
  const { root } = document;
  if (root.kind !== "map") return err([problem("FLOW2005", root.at, "a skill begins with `name` and `description`")]);
  const found = [...warnings, ...checked(root, stem)];
  const errors = found.filter(({ severity }) => severity === "error");
  if (errors.length > 0) return err(errors);
  const tools = toolsOf(entry(root, "allowed-tools")?.value);
  const skill: Skill = {
    name: text(root, "name") ?? stem,
    description: (text(root, "description") ?? "").replaceAll(/\s+/g, " ").trim(),
    folder,
    body: body.value.trim(),
    ...(tools && { allowedTools: tools }),
    hidden: isTrue(entry(root, "disable-model-invocation")?.value),
  };
  return ok({ skill, warnings: found });
}

function checked(root: MapNode, stem: string): Diagnostic[] {
  const problems: Diagnostic[] = [];
  const at = (key: string): Span => entry(root, key)?.value.at ?? root.at;
  const name = text(root, "name");
  if (name === undefined) problems.push(problem("FLOW2003", at("name"), "a skill needs a `name`"));
  else if (!namePattern.test(name) || name.length > 64) {
    const message = `${JSON.stringify(name)} is no name of a skill: 1 to 64 small letters, digits and single hyphens`;
    problems.push(problem("FLOW3001", at("name"), message));
  } else if (name !== stem)
    problems.push(
      warning(
        at("name"),
        `the skill \`${name}\` lies in a folder called \`${stem}\`; other programs want the same name`,
      ),
    );
  const description = text(root, "description")?.trim() ?? "";
  if (description === "")
    problems.push(problem("FLOW2003", at("description"), "a skill needs a `description`: agents choose by it"));
  else if (description.length > 1024)
    problems.push(warning(at("description"), "a description has at most 1,024 characters"));
  for (const { key, keyAt } of root.entries)
    if (!known.has(key)) problems.push(warning(keyAt, `\`${key}\` of a skill has no effect here`));
  return problems;
}

/** `Read Bash(git *)`, with spaces or commas between, or a list. */
function toolsOf(node: SourceNode | undefined): string[] | undefined {
  if (node?.kind === "list") return node.items.flatMap((item) => (item.kind === "scalar" ? [String(item.value)] : []));
  if (node?.kind !== "scalar" || typeof node.value !== "string") return undefined;
  return [...node.value.matchAll(/[^\s,()]+(?:\([^)]*\))?/g)].map(([tool]) => tool);
}

function text(root: MapNode, key: string): string | undefined {
  const value = entry(root, key)?.value;
  return value?.kind === "scalar" && typeof value.value === "string" ? value.value : undefined;
}

function isTrue(node: SourceNode | undefined): boolean {
  return node?.kind === "scalar" && node.value === true;
}

function problem(code: Code, at: Span, message: string): Diagnostic {
  return { code, severity: "error", message, at };
}

function warning(at: Span, message: string): Diagnostic {
  return { code: "FLOW6021", severity: "warning", message, at };
}
