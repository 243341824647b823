import { createEvaluator } from "../expr/template.ts";
import { isJsonObject } from "../model/json.ts";
import type { Failure } from "../model/outcome.ts";
import type { Tool } from "../model/ports.ts";
import { err, ok, type Result } from "../model/result.ts";
import { stepEnvironment } from "../process/environment.ts";
import type { Marks } from "../process/marks.ts";
import { createTools, customTools, type ToolsOptions } from "../tools/index.ts";
import { byteFilter, type Masking } from "./masking.ts";
import type { StartOptions } from "./run-options.ts";
import { workflowsOf } from "./workflows-of.ts";

export interface RunToolsSource {
  readonly options: StartOptions;
  readonly masking: Masking;
  readonly marks: Marks;
  /** A folder for output too long to be kept as a value. */
  readonly spillFolder: string;
}

/** The tools of one run, by the path of the step that uses them: a workflow's own are known in that workflow alone. */
export interface RunTools {
  readonly all: (step: string) => readonly Tool[];
  /** Those of these names; the error names one that is not there. Without names: all. */
  readonly named: (names: readonly string[] | undefined, step: string) => Result<readonly Tool[], Failure>;
}

export function createRunTools({ options, masking, marks, spillFolder }: RunToolsSource): RunTools {
  const { plan, secrets, env } = options;
  const { mask, hasSecrets, keys: providerKeys } = masking;
  const programs: ToolsOptions = {
    marks,
    environment: stepEnvironment({ inherited: env, providerKeys, secrets: Object.keys(secrets), own: {} }),
    spillFolder,
    ...(hasSecrets && { filter: () => byteFilter(mask.stream()) }),
  };
  const common = createTools(programs);
  const evaluator = createEvaluator();
  const byWorkflow = new Map(
    Object.entries(plan.workflows).map(([key, { tools }]) => {
      const own = customTools(isJsonObject(tools?.json) ? tools.json : {}, {
        ...programs,
        evaluator,
        secrets: { ...secrets },
      });
      return [key, own];
    }),
  );
  const all = (step: string): readonly Tool[] => {
    const own = workflowsOf(plan, step).flatMap((key) => byWorkflow.get(key) ?? []);
    return [...common, ...own];
  };
  return {
    all,
    named(names, step) {
      const tools = all(step);
      if (names === undefined) return ok(tools);
      const missing = names.find((name) => !isServers(name) && !tools.some((tool) => tool.name === name));
      if (missing !== undefined) return err({ kind: "unavailable", message: `there is no tool \`${missing}\`` });
      return ok(tools.filter(({ name }) => names.includes(name)));
    },
  };
}

/** Tools of MCP servers come with their servers, the one for skills with the skills, those for others with the others. */
function isServers(name: string): boolean {
  return name.startsWith("mcp__") || name === "Skill" || name === "Task";
}
