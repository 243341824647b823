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
import type { RunEnd } from "./flow/run.ts";

export type { Compilation } from "./compile/compile.ts";
export type { Given } from "./compile/given-inputs.ts";
export type { RunEnd } from "./flow/run.ts";
export { evaluate } from "./expr/public.ts";
export { describeExpression } from "./flow/describe-expression.ts";
export { version } from "./flow/version.ts";

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

export interface RunRequest extends WorkflowSource {
  readonly inputs?: Given;
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
  | { readonly kind: "invalid"; readonly exitCode: number; readonly diagnostics: readonly Diagnostic[]; readonly sources: SourceTexts }
  | { readonly kind: "unavailable"; readonly exitCode: number; readonly message: string };

/** A workflow that could start now, with everything it would start with. */
export interface Prepared {
  readonly plan: Plan;
  readonly inputs: JsonObject;
  readonly warnings: readonly Diagnostic[];
  readonly sources: SourceTexts;
}

export type RunResult = { readonly started: true; readonly end: RunEnd; readonly prepared: Prepared } | { readonly started: false; readonly refusal: Refusal };

/** Checks a workflow, runs it, and says how it ended. */
export async function run(request: RunRequest): Promise<RunResult> {
  const prepared = await prepare(request);
  if ("kind" in prepared) return { started: false, refusal: prepared };
  const { plan, inputs, sources } = prepared;
  const cwd = request.cwd ?? process.cwd();
  const workspace = workspaceOf(cwd);
  const env = request.env ?? process.env;
  const early = notYet(prepared.warnings, sources);
  if (early) return { started: false, refusal: early };
  const secrets = readSecrets(plan, env);
  if ("kind" in secrets) return { started: false, refusal: secrets };
  const models = Object.keys(plan.agents).length === 0 ? undefined : await openModels(request, { plan, sources, cwd, workspace, env });
  if (models && "kind" in models) return { started: false, refusal: models };
  const { startRun } = await import("./flow/run.ts");
  const never = new AbortController().signal;
  const end = await startRun({
    plan,
    inputs,
    secrets: secrets.values,
    models,
    cwd,
    workspace,
    env,
    runsDir: request.runsDir,
    parallel: request.parallel,
    logDeltas: request.logDeltas ?? false,
    fsync: request.fsync ?? false,
    hashesFiles: [...sources.values()].some((text) => /hashfiles/i.test(text)),
    onEvent: request.onEvent,
    signal: request.signal ?? never,
    kill: request.kill ?? never,
  });
  if (end.ok) return { started: true, end: end.value, prepared };
  return { started: false, refusal: { kind: "unavailable", exitCode: exitCodes.unavailable, message: end.error } };
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

/** Keys that are checked but have no behaviour yet stop a run: they are never ignored. */
function notYet(warnings: readonly Diagnostic[], sources: SourceTexts): Refusal | undefined {
  const early = warnings.filter((warning) => warning.code === "FLOW9001");
  if (early.length === 0) return undefined;
  const diagnostics = early.map((warning): Diagnostic => ({ ...warning, severity: "error" }));
  return { kind: "invalid", exitCode: exitCodes.usage, diagnostics, sources };
}

function readSecrets(plan: Plan, env: RunRequest["env"] & object): { readonly values: { readonly [name: string]: string } } | Refusal {
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

async function openModels(request: RunRequest, source: ModelsSource): Promise<Models | Refusal> {
  const [{ createModels }, { systemClock }] = await Promise.all([import("./flow/models.ts"), import("./flow/clock.ts")]);
  const models = createModels({ ...source, script: request.script, clock: systemClock });
  const problem = await models.prepare();
  if (!problem) return models;
  if (problem.kind === "invalid") {
    const sources = new Map([...source.sources, ...problem.sources]);
    return { ...problem, sources, exitCode: exitCodes.usage };
  }
  return { ...problem, exitCode: exitCodes.unavailable };
}
