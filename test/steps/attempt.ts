import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Json, JsonObject } from "../../src/model/json.ts";
import type { StepResult } from "../../src/model/outcome.ts";
import type { Body, StepKind } from "../../src/model/plan.ts";
import type { Attempt } from "../../src/model/ports.ts";
import { systemClock } from "../../src/flow/clock.ts";
import { Marks } from "../../src/process/marks.ts";
import { makeTempFolder } from "../../src/process/temp-folder.ts";
import { Approvals } from "../../src/steps/approvals.ts";
import type { ApproveOptions } from "../../src/steps/approve.ts";
import { createSteps, type StepsOptions } from "../../src/steps/index.ts";

const at = { file: "test.yaml", line: 1, column: 1, endLine: 1, endColumn: 2 };

export function attempt(kind: StepKind, body: Body, inputs: JsonObject, signal?: AbortSignal): Attempt {
  const step: Attempt["step"] = {
    id: "one",
    kind,
    at,
    join: "all",
    inputs: { type: "data", json: {} },
    body,
    continueOnError: false,
    limits: {},
  };
  return { step, path: "group[2]/one#3", attempt: 1, inputs, signal: signal ?? new AbortController().signal };
}

export interface Written {
  /** Text: a script; a list: argv. */
  readonly run: string | readonly Json[];
  readonly shell?: string;
  readonly output?: Json;
  readonly inputs?: JsonObject;
  readonly signal?: AbortSignal;
}

const noApprovals: ApproveOptions = {
  approvals: new Approvals(),
  by: () => "nobody",
  mask: (text) => text,
  emit: () => undefined,
  clock: systemClock,
  over: new AbortController().signal,
};

/** A folder with everything `run` steps need, and a way to run one. */
export class Bench {
  readonly folder: string = mkdtempSync(join(tmpdir(), "flow-steps-"));
  readonly temp: string = makeTempFolder();
  readonly spill: string = join(this.folder, "files");
  readonly cwd: string = join(this.folder, "cwd");

  constructor() {
    for (const folder of [this.spill, this.cwd]) mkdirSync(folder, { mode: 0o700 });
  }

  async run(written: Written, options: Partial<StepsOptions> = {}): Promise<StepResult> {
    const { run, shell = "bash", output, inputs = {}, signal } = written;
    const steps = createSteps({
      runId: "20260101-abc",
      cwd: this.cwd,
      tempFolder: this.temp,
      marks: new Marks("20260101-abc"),
      spillFolder: this.spill,
      inheritedEnvironment: process.env,
      providerKeys: [],
      secretNames: [],
      checkOutput: () => Promise.resolve([]),
      tools: () => Promise.resolve([]),
      workspace: this.cwd,
      ...noApprovals,
      ...options,
    });
    const command = typeof run === "string" ? { script: run } : ({ argv: true } as const);
    const body: Body = { kind: "run", command, shell, ...(output !== undefined && { output: { json: output } }) };
    const given = typeof run === "string" ? inputs : { ...inputs, argv: [...run] };
    return steps.run(attempt("run", body, given, signal));
  }

  remove(): void {
    for (const folder of [this.folder, this.temp]) rmSync(folder, { recursive: true, force: true });
  }
}

export function stdout(result: StepResult): string {
  const text = outputs(result)["stdout"];
  if (typeof text !== "string") throw new Error(`no stdout in ${JSON.stringify(result)}`);
  return text;
}

/** The outputs of a result that must have some. */
export function outputs(result: StepResult): JsonObject {
  const value = result.outputs;
  if (value === undefined || value === null || typeof value !== "object" || Array.isArray(value)) {
    throw new Error(`no outputs in ${JSON.stringify(result)}`);
  }
  return value;
}
