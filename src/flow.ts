import { compile, type Compilation } from "./compile/compile.ts";
import { type Given, readGivenInputs } from "./compile/given-inputs.ts";
import type { Diagnostic, SourceTexts } from "./model/diagnostic.ts";
import type { LogLine } from "./model/event.ts";
import type { JsonObject } from "./model/json.ts";
import { exitCodes } from "./model/outcome.ts";
import type { Plan } from "./model/plan.ts";
import { workspaceOf } from "./runlog/runs.ts";
import { languageTools } from "./tools/names.ts";
import type { Models } from "./flow/models.ts";
import type { PastRun } from "./flow/resume.ts";
import type { RunEnd } from "./flow/run.ts";
import type { StartOptions } from "./flow/run-options.ts";

export type { Compilation } from "./compile/compile.ts";
export type { Given } from "./compile/given-inputs.ts";
export type { RunEnd } from "./flow/run.ts";
export { evaluate } from "./expr/public.ts";
export { describeExpression } from "./flow/describe-expression.ts";

/** Which workflow, and where. */
export interface WorkflowSource {
  /** Path, relative to `cwd`; `-` for `stdin`. */
  readonly file: string;
  readonly stdin?: Uint8Array;
  /** Absolute; the process's working directory when absent. */
  readonly cwd?: string;
}

/** Compiles and checks a workflow with everything it names. Runs nothing, writes nothing. */
export async function check(source: WorkflowSource): Promise<Compilation> {
  const cwd = source.cwd ?? process.cwd();
  return compile({ ...source, cwd, workspace: workspaceOf(cwd), tools: languageTools, toolParameters });
}

/** The tools themselves are loaded only for a workflow that calls one in a step of its own. */
async function toolParameters(name: string): Promise<JsonObject | undefined> {
  if (languageTools.get(name) !== true) return undefined;
  const { parametersOf } = await import("./tools/index.ts");
  return parametersOf(name);
}

export interface RunRequest extends WorkflowSource, Conditions {
  readonly inputs?: Given;
}

/** What a run runs under, whether it begins or goes on. */
export interface Conditions {
  /** A file of replies that replaces every agent's model. */
  readonly script?: string;
  readonly env?: { readonly [name: string]: string | undefined };
  readonly runsDir?: string;
  /** Steps at once where the workflow does not say; 8 by default. */
  readonly parallel?: number;
  readonly logDeltas?: boolean;
  readonly fsync?: boolean;
  /** Sees every event in the order of the log. */
  readonly onEvent?: (line: LogLine) => void;
  /** Aborted with `"SIGINT"` or `"SIGTERM"` as reason: the run is cancelled, and its `always()` steps run. */
  readonly signal?: AbortSignal;
  /** Aborted: everything ends at once. */
  readonly kill?: AbortSignal;
}

/** A run that did not start, and why. Nothing has been executed or written. */
export type Refusal =
  | {
      readonly kind: "invalid";
      readonly exitCode: number;
      readonly diagnostics: readonly Diagnostic[];
      readonly sources: SourceTexts;
    }
  | { readonly kind: "unavailable" | "usage"; readonly exitCode: number; readonly message: string };

/** A workflow that could start now, with everything it would start with. */
export interface Prepared {
  readonly plan: Plan;
  readonly inputs: JsonObject;
  readonly warnings: readonly Diagnostic[];
  readonly sources: SourceTexts;
}

export type RunResult =
  | { readonly started: true; readonly end: RunEnd; readonly prepared: Prepared }
  | { readonly started: false; readonly refusal: Refusal };

/** Checks a workflow, runs it, and says how it ended. */
export async function run(request: RunRequest): Promise<RunResult> {
  const prepared = await prepare(request);
  if ("kind" in prepared) return { started: false, refusal: prepared };
  const cwd = request.cwd ?? process.cwd();
  const options = await equip(request, prepared, { cwd, workspace: workspaceOf(cwd) });
  if ("kind" in options) return { started: false, refusal: options };
  const { startRun } = await import("./flow/run.ts");
  const end = await startRun(options);
  if (end.ok) return { started: true, end: end.value, prepared };
  return { started: false, refusal: unavailable(end.error) };
}

function unavailable(message: string): Refusal {
  return { kind: "unavailable", exitCode: exitCodes.unavailable, message };
}

/** Everything a run needs beside its plan, or why it cannot start. */
async function equip(
  request: Conditions,
  { plan, inputs, warnings, sources }: Prepared,
  place: { readonly cwd: string; readonly workspace: string },
): Promise<StartOptions | Refusal> {
  const env = request.env ?? process.env;
  const early = notYet(warnings, sources);
  if (early) return early;
  const secrets = readSecrets(plan, env);
  if ("kind" in secrets) return secrets;
  const models =
    Object.keys(plan.agents).length === 0 ? undefined : await openModels(request, { plan, sources, ...place, env });
  if (models && "kind" in models) return models;
  const never = new AbortController().signal;
  // Without its text, as after the file is gone, the plan itself tells.
  const texts = sources.size > 0 ? [...sources.values()] : [JSON.stringify(plan)];
  return {
    plan,
    inputs,
    secrets: secrets.values,
    models,
    ...place,
    env,
    runsDir: request.runsDir,
    script: request.script,
    parallel: request.parallel,
    logDeltas: request.logDeltas ?? false,
    fsync: request.fsync ?? false,
    hashesFiles: texts.some((text) => /hashfiles/i.test(text)),
    onEvent: request.onEvent,
    signal: request.signal ?? never,
    kill: request.kill ?? never,
  };
}

/** The part of a run before anything happens: compile, check, fit the inputs. */
export async function prepare(request: RunRequest): Promise<Prepared | Refusal> {
  const { plan, diagnostics, sources } = await check(request);
  if (!plan) return { kind: "invalid", exitCode: exitCodes.usage, diagnostics, sources };
  const declared = plan.workflows[plan.root]?.inputs ?? [];
  const inputs = await readGivenInputs(declared, request.inputs ?? { texts: [], values: {} }, request.file);
  if (!inputs.ok) return { kind: "invalid", exitCode: exitCodes.usage, diagnostics: inputs.error, sources };
  return { plan, inputs: inputs.value, warnings: diagnostics, sources };
}

export interface ResumeRequest extends Conditions {
  /** `latest`, the id of a run, its beginning, or its folder. */
  readonly run: string;
  /** The workflow to go on with, when it is not the one the run was started with; relative to `cwd`. */
  readonly workflow?: string;
  /** Path of an execution: it and everything after it run again. */
  readonly from?: string;
  /** `PATH.output=value`, each: outputs of finished steps to replace. */
  readonly set?: readonly string[];
  readonly cwd?: string;
}

/** A run that had succeeded already and that nothing was asked of has nothing left to do: it is `finished`. */
export type ResumeResult = RunResult | { readonly started: false; readonly finished: RunEnd };

/** Goes on with a run from its log: what ended and still holds is reused, all else runs. */
export async function resume(request: ResumeRequest): Promise<ResumeResult> {
  const { locateRun } = await import("./flow/read-run.ts");
  const { openPast } = await import("./flow/resume.ts");
  const found = locateRun(request.run, request);
  if (!found.ok) return { started: false, refusal: usage(found.error) };
  const past = await openPast(found.value);
  if (!past.ok) {
    const { kind, message } = past.error;
    return { started: false, refusal: kind === "usage" ? usage(message) : unavailable(message) };
  }
  try {
    return await goOn(request, past.value);
  } finally {
    past.value.close();
  }
}

function usage(message: string): Refusal {
  return { kind: "usage", exitCode: exitCodes.usage, message };
}

async function goOn(request: ResumeRequest, past: PastRun): Promise<ResumeResult> {
  const { inheritPlan, isUnchanged, finishedEnd, readWishes, resumeRun } = await import("./flow/resume.ts");
  const source = inheritPlan(past, request);
  const { file } = source;
  const isKnown = file === undefined || (request.workflow === undefined && isUnchanged(past));
  const prepared = isKnown ? preparedFromLog(past) : await prepareAgain(file, past);
  if ("kind" in prepared) return { started: false, refusal: prepared };
  const { plan } = prepared;
  const wishes = { from: request.from, set: request.set ?? [] };
  const set = await readWishes(past, plan, wishes);
  if (!set.ok) return { started: false, refusal: usage(set.error) };
  const finished = finishedEnd(past);
  if (finished && plan.digest === past.digest && wishes.from === undefined && set.value.length === 0)
    return { started: false, finished };
  const stranger = request.workflow === undefined ? undefined : source.stranger(plan);
  if (stranger !== undefined) return { started: false, refusal: usage(stranger) };
  const conditions = { ...request, ...(past.script !== undefined && { script: request.script ?? past.script }) };
  const { cwd, workspace } = past;
  const options = await equip(conditions, prepared, { cwd, workspace });
  if ("kind" in options) return { started: false, refusal: options };
  const { from } = wishes;
  const end = await resumeRun({ past, options, from, set: set.value, notes: source.notes });
  if (end.ok) return { started: true, end: end.value, prepared };
  return { started: false, refusal: unavailable(end.error) };
}

/** The workflow's file as it is now, with the inputs of the log as far as it still takes them. */
async function prepareAgain(file: string, { cwd, inputs }: PastRun): Promise<Prepared | Refusal> {
  const { plan, diagnostics, sources } = await check({ file, cwd });
  if (!plan) return { kind: "invalid", exitCode: exitCodes.usage, diagnostics, sources };
  const declared = plan.workflows[plan.root]?.inputs ?? [];
  const kept = declared.filter(({ name }) => Object.hasOwn(inputs, name));
  const values = Object.fromEntries(kept.map(({ name }) => [name, inputs[name] ?? null]));
  const fitted = await readGivenInputs(declared, { texts: [], values }, file);
  if (!fitted.ok) return { kind: "invalid", exitCode: exitCodes.usage, diagnostics: fitted.error, sources };
  return { plan, inputs: fitted.value, warnings: diagnostics, sources };
}

function preparedFromLog({ plan, inputs }: PastRun): Prepared {
  return { plan, inputs, warnings: [], sources: new Map() };
}

/** Keys that are checked but have no behaviour yet stop a run: they are never ignored. */
function notYet(warnings: readonly Diagnostic[], sources: SourceTexts): Refusal | undefined {
  const early = warnings.filter((warning) => warning.code === "FLOW9001");
  if (early.length === 0) return undefined;
  const diagnostics = early.map((warning): Diagnostic => ({ ...warning, severity: "error" }));
  return { kind: "invalid", exitCode: exitCodes.usage, diagnostics, sources };
}

function readSecrets(
  plan: Plan,
  env: RunRequest["env"] & object,
): { readonly values: { readonly [name: string]: string } } | Refusal {
  const names = new Set(Object.values(plan.workflows).flatMap((workflow) => workflow.secrets));
  const valueOf = (name: string): string => (Object.hasOwn(env, name) ? (env[name] ?? "") : "");
  const missing = [...names].filter((name) => valueOf(name) === "");
  if (missing.length > 0) {
    const message = `the workflow declares the secret${missing.length > 1 ? "s" : ""} ${missing.join(", ")}, and no such environment variable is set (in CI: pass it to this job; on a fork secrets are not there)`;
    return { kind: "unavailable", exitCode: exitCodes.unavailable, message };
  }
  return { values: Object.fromEntries([...names].map((name) => [name, valueOf(name)])) };
}

interface ModelsSource {
  readonly plan: Plan;
  readonly sources: SourceTexts;
  readonly cwd: string;
  readonly workspace: string;
  readonly env: RunRequest["env"] & object;
}

async function openModels(request: Conditions, source: ModelsSource): Promise<Models | Refusal> {
  const [{ createModels }, { systemClock }] = await Promise.all([
    import("./flow/models.ts"),
    import("./flow/clock.ts"),
  ]);
  const models = createModels({ ...source, script: request.script, clock: systemClock });
  const problem = await models.prepare();
  if (!problem) return models;
  if (problem.kind === "invalid") {
    const sources = new Map([...source.sources, ...problem.sources]);
    return { ...problem, sources, exitCode: exitCodes.usage };
  }
  return { ...problem, exitCode: exitCodes.unavailable };
}
