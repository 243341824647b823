import { dirname, join } from "node:path";
import { compileSchema } from "../jsonschema/compile.ts";
import type { Json } from "../model/json.ts";
import type { StepKind } from "../model/plan.ts";
import type { Emit, Execute } from "../model/ports.ts";
import { err, ok } from "../model/result.ts";
import type { StreamFilter } from "../process/capture.ts";
import type { Marks } from "../process/marks.ts";
import { maskData } from "../runlog/mask-event.ts";
import type { Mask, StreamMask } from "../runlog/redact.ts";
import type { LogWriter } from "../runlog/write.ts";
import { createSteps } from "../steps/index.ts";
import { systemClock } from "./clock.ts";
import type { Before, StartOptions } from "./run-options.ts";

/** What the rooms of one run are made with. */
export interface ExecuteSource {
  readonly options: StartOptions;
  readonly run: string;
  readonly mask: Mask;
  readonly tempFolder: string;
  readonly marks: Marks;
  readonly log: LogWriter;
  readonly emit: Emit;
  readonly before: Before | undefined;
  /** Names of variables that hold models' keys. */
  readonly keys: readonly string[];
  readonly hasSecrets: boolean;
}

/** The record of step kinds: which room executes an attempt of which kind. */
export function createExecute(source: ExecuteSource): Execute {
  const { options, run, mask, tempFolder, log, keys, hasSecrets } = source;
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

/** The text mask as a filter of bytes; a character cut in two waits for its other half. */
function byteFilter(mask: StreamMask): StreamFilter {
  const decoder = new TextDecoder();
  return {
    write: (chunk) => Buffer.from(mask.push(decoder.decode(chunk, { stream: true }))),
    end: () => Buffer.from(mask.push(decoder.decode()) + mask.end()),
  };
}

/** The compiler keeps these out of a run, and the engine runs groups and sub-workflows by itself. */
function refused(): never {
  throw new Error("this kind of step is not executed as an attempt");
}

/** Outputs are masked where they are captured: a later step sees `***` now and after a resume alike. */
function masked(execute: Execute, mask: Mask): Execute {
  return async (attempt) => {
    const result = await execute(attempt);
    if (result.outcome === "success") {
      return {
        outcome: "success",
        result: maskData(result.result, mask.mask),
        outputs: maskData(result.outputs, mask.mask),
      };
    }
    const outputs = result.outputs === undefined ? {} : { outputs: maskData(result.outputs, mask.mask) };
    if (result.outcome === "cancelled") return { outcome: "cancelled", ...outputs };
    return { outcome: "failure", error: { ...result.error, message: mask.mask(result.error.message) }, ...outputs };
  };
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
