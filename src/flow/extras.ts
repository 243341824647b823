import type { Extras } from "../agent/agent-ports.ts";
import type { Emit } from "../model/ports.ts";
import { memoryOf } from "./memory.ts";
import type { StartOptions } from "./run-options.ts";
import type { Skills } from "./skills.ts";

interface ExtrasSource {
  readonly options: StartOptions;
  readonly skills: Skills | undefined;
  readonly emit: Emit;
}

/** What the agents of a run have beside their tools: the skills of the project, and a memory where they ask for one. */
export function extrasOf({
  options,
  skills,
  emit,
}: ExtrasSource): (agent: string, names: readonly string[] | undefined) => Extras {
  return (key, names) => {
    const agent = Object.hasOwn(options.plan.agents, key) ? options.plan.agents[key] : undefined;
    const memory = agent && memoryOf(agent, options, emit);
    return {
      tools: [...(skills?.tools(names) ?? []), ...(memory ? [memory.tool] : [])],
      told: (tools) => [...(skills?.told(key, tools) ?? []), ...(memory ? [memory.told()] : [])],
    };
  };
}
