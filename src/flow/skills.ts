import { createHash } from "node:crypto";
import { dirname, resolve } from "node:path";
import { isJsonObject, type Json, own } from "../model/json.ts";
import type { Agent, Plan } from "../model/plan.ts";
import type { Tool } from "../model/ports.ts";
import { findSkill } from "../skills/find.ts";
import { readShelf, type Shelf } from "../skills/shelf.ts";
import type { Skill } from "../skills/skill.ts";
import { skillList, skillText, skillTool } from "../skills/tool.ts";

/** What the agents of one run can learn. */
export interface Skills {
  /** What an agent, by its key in the plan, is told; `tools` are the names of those it is offered. */
  readonly told: (agent: string, tools: readonly string[]) => readonly string[];
  /** For an agent whose own list is `names`; undefined: everything there is. */
  readonly tools: (names: readonly string[] | undefined) => readonly Tool[];
  /** The plan with the content of the skills in its agents: whoever compares definitions sees a changed skill. */
  readonly plan: Plan;
}

interface Place {
  readonly cwd: string;
  readonly workspace: string;
}

/** The skills some workflows can use: beside their files, then of the project. */
export function shelfOf(workflows: readonly string[], { cwd, workspace }: Place): Promise<Shelf> {
  const folders = workflows.map((path) => (path === "-" ? cwd : dirname(resolve(workspace, path))));
  return readShelf([...folders, workspace], { cwd, workspace });
}

/** Reads the skills of a run's agents, once. */
export async function readSkills(plan: Plan, place: Place): Promise<Skills> {
  const { skills } = await shelfOf([plan.root, ...Object.keys(plan.workflows)], place);
  const listed = skills.some(({ hidden }) => !hidden);
  const agents = Object.entries(plan.agents).map(([key, agent]) => [key, withContent(agent, skills)] as const);
  return {
    told: (key, tools) => {
      const agent = Object.hasOwn(plan.agents, key) ? plan.agents[key] : undefined;
      const list = tools.includes("Skill") ? skillList(skills) : undefined;
      return [...(list === undefined ? [] : [list]), ...(agent ? preloaded(agent, skills).map(skillText) : [])];
    },
    tools: (names) => ((names === undefined ? listed : names.includes("Skill")) ? [skillTool(skills)] : []),
    plan: { ...plan, agents: Object.fromEntries(agents) },
  };
}

/** The skills an agent lists; that they are there was checked before anything ran. */
function preloaded({ settings }: Agent, skills: readonly Skill[]): Skill[] {
  const names = isJsonObject(settings.json) ? own(settings.json, "skills") : undefined;
  return (Array.isArray(names) ? names : []).flatMap((name) => {
    const found = typeof name === "string" ? findSkill(name, skills) : undefined;
    return found?.ok === true ? [found.value] : [];
  });
}

function withContent(agent: Agent, skills: readonly Skill[]): Agent {
  if (!isJsonObject(agent.settings.json) || skills.length === 0) return agent;
  const texts = [skillList(skills) ?? "", ...preloaded(agent, skills).map(skillText)];
  const hash: Json = createHash("sha256").update(texts.join("\0")).digest("hex");
  return { ...agent, settings: { json: { ...agent.settings.json, "skill-texts": hash } } };
}
