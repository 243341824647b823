import { own } from "../model/json.ts";
import type { Tool } from "../model/ports.ts";
import { ok } from "../model/result.ts";
import { findSkill } from "./find.ts";
import type { Skill } from "./skill.ts";

/** Gives an agent the text of a skill when it asks for it. */
export function skillTool(all: readonly Skill[]): Tool {
  const skills = all.filter(({ hidden }) => !hidden);
  return {
    name: "Skill",
    description:
      "Gives the instructions of a skill. Call it as soon as a skill of the list fits what you are to do, and before you begin.",
    readOnly: false,
    narrows: true,
    parameters: {
      type: "object",
      required: ["skill"],
      additionalProperties: false,
      properties: {
        skill: { type: "string", minLength: 1, description: "Name of the skill, as in the list" },
        args: { type: "string", description: "What it is wanted for" },
      },
    },
    aliases: { names: ["skill", "activate_skill"], parameters: { name: "skill", command: "skill" } },
    async run(args, call) {
      const asked = own(args, "skill");
      const found = findSkill(typeof asked === "string" ? asked : "", skills);
      if (!found.ok) return found;
      const skill = found.value;
      if (skill.allowedTools) call.narrow?.(skill.allowedTools);
      return ok({ blocks: [{ type: "text", text: skillText(skill) }] });
    },
  };
}

/** A skill as an agent reads it, with what may lie beside it. */
export function skillText({ name, folder, body, allowedTools }: Skill): string {
  const tools = allowedTools ? `\nIt works with ${allowedTools.join(", ")} alone.` : "";
  return `Skill ${name}. Its files lie in ${folder}/; paths in it start there.${tools}\n\n${body}`;
}

/** What an agent is told up front of the skills it may ask for. */
export function skillList(all: readonly Skill[]): string | undefined {
  const skills = all.filter(({ hidden }) => !hidden);
  if (skills.length === 0) return undefined;
  const lines = skills.map(({ name, description }) => `- ${name}: ${description}`);
  return `Skills you can ask for with the tool \`Skill\`, each with what it is for:\n\n${lines.join("\n")}`;
}
