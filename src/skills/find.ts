import { nearest } from "../model/names.ts";
import { err, ok, type Result } from "../model/result.ts";
import type { Skill } from "./skill.ts";

/**
 * The skill of a name, or the only one whose name begins with it, or the only one whose name ends with it. What stands
 * before a `:` names the plugin a skill came with, and means nothing here.
 */
export function findSkill(asked: string, skills: readonly Skill[]): Result<Skill, string> {
  const name = asked.trim().split(":").at(-1) ?? "";
  const exact = skills.find((skill) => skill.name === name);
  if (exact) return ok(exact);
  for (const part of [`${name}-`, `-${name}`]) {
    const isBeginning = part.endsWith("-");
    const found = skills.filter(
      (skill) => name !== "" && (isBeginning ? skill.name.startsWith(part) : skill.name.endsWith(part)),
    );
    const [only, another] = found;
    if (only && !another) return ok(only);
    if (only)
      return err(`\`${name}\` may be ${found.map((skill) => `\`${skill.name}\``).join(" or ")}: write the whole name`);
  }
  const names = skills.map((skill) => skill.name);
  const near = nearest(name, names);
  if (near !== undefined) return err(`there is no skill \`${name}\`; did you mean \`${near}\`?`);
  return err(
    `there is no skill \`${name}\`${names.length === 0 ? "" : `; there are ${names.slice(0, 20).join(", ")}`}`,
  );
}
