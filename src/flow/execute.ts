import { dirname, join } from "node:path";
import { compileSchema } from "../jsonschema/compile.ts";
import type { Json } from "../model/json.ts";
import type { StepKind } from "../model/plan.ts";
import type { Emit, Execute } from "../model/ports.ts";
import { err, ok } from "../model/result.ts";
import type { Marks } from "../process/marks.ts";
import type { LogWriter } from "../runlog/write.ts";
import { createSteps } from "../steps/index.ts";
import { systemClock } from "./clock.ts";
import { byteFilter, masked, type Masking } from "./masking.ts";
import type { Before, StartOptions } from "./run-options.ts";

/** What the rooms of one run are made with. */
export interface ExecuteSource {
  readonly options: StartOptions;
  readonly run: string;
  readonly masking: Masking;
  readonly tempFolder: string;
  readonly marks: Marks;
  readonly log: LogWriter;
  readonly emit: Emit;
  readonly before: Before | undefined;
}

/** The record of step kinds: which room executes an attempt of which kind. */
export function createExecute(source: ExecuteSource): Execute {
  const { options, run, tempFolder, log } = source;
  const { mask, hasSecrets, keys } = source.masking;
  const { secrets, env, cwd } = options;
  const steps = createSteps({
    runId: run,
    cwd,
    tempFolder,
    spillFolder: join(dirname(log.file), "files"),
    inheritedEnvironment: env,
    providerKeys: keys,
    secretNames: Object.keys(secrets),
    checkOutput,
    tools: async () => (await import("../tools/index.ts")).createTools({ marks: source.marks }),
    workspace: options.workspace,
    ...(hasSecrets && { filter: () => byteFilter(mask.stream()) }),
  });
  let agent: Promise<Execute> | undefined;
  const kinds: { readonly [kind in StepKind]: Execute } = {
    run: steps.run,
    set: steps.set,
    agent: async (attempt) => {
      agent ??= loadAgent(source);
      return (await agent)(attempt);
    },
    tool: steps.tool,
    approve: refused,
    steps: refused,
    workflow: refused,
  };
  const execute: Execute = (attempt) => kinds[attempt.step.kind](attempt);
  return hasSecrets ? masked(execute, mask) : execute;
}

/** The compiler keeps these out of a run, and the engine runs groups and sub-workflows by itself. */
function refused(): never {
  throw new Error("this kind of step is not executed as an attempt");
}

async function checkOutput(schema: Json, value: Json): Promise<readonly string[]> {
  const check = await compileSchema(schema);
  if (!check.ok) return check.error.map((issue) => issue.message);
  return check
    .value(value)
    .map((issue) => `${issue.path.length === 0 ? "it" : `\`${issue.path.join(".")}\``} ${issue.message}`);
}

async function loadAgent({ options, log, emit, marks, before }: ExecuteSource): Promise<Execute> {
  const [{ createAgentExecute }, { createTools }] = await Promise.all([
    import("../agent/execute.ts"),
    import("../tools/index.ts"),
  ]);
  const { models, plan, workspace } = options;
  const offered = createTools({ marks });
  return createAgentExecute({
    agents: plan.agents,
    client: async (model, step) =>
      models?.client(model, step) ?? err({ kind: "internal", message: "the run was started without models" }),
    tools: (names) => ok(names === undefined ? offered : offered.filter((tool) => names.includes(tool.name))),
    workspace,
    emit,
    clock: systemClock,
    ...(before && { before: before.agents }),
    spill: (text) => {
      const kept = log.keep(text);
      return kept.ok ? kept.value : "(it could not be kept)";
    },
  });
}
