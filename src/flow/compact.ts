import { join } from "node:path";
import type { AgentPorts } from "../agent/agent-ports.ts";
import type { Plan } from "../model/plan.ts";
import { parseFrontMatter } from "../source/front-matter.ts";
import { readSource } from "../source/read.ts";
import { builtInAgentsFolder } from "./built-in-agents.ts";

/** The agent that summarises: the project's own, or the one that comes with flow, which is read when it is first needed. */
export function createCompact({ compact, agents }: Plan): AgentPorts["compact"] {
  const own = compact === undefined ? undefined : agents[compact];
  let builtIn: Promise<string> | undefined;
  return async () => {
    if (own?.instructions === undefined) return { instructions: await (builtIn ??= readBuiltIn()), models: [] };
    const models = own.models.flatMap((model) => (model.type === "data" ? [model.json] : []));
    return { instructions: own.instructions, models };
  };
}

async function readBuiltIn(): Promise<string> {
  const file = join(builtInAgentsFolder(), "compact.md");
  const bytes = await readSource(file);
  const read = bytes.ok ? parseFrontMatter(bytes.value, file) : undefined;
  const body = read?.ok === true ? read.value.body : undefined;
  if (body?.kind !== "scalar" || typeof body.value !== "string")
    throw new Error(`${file} is missing from this installation`);
  return body.value.trim();
}
