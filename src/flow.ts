import { compile, type Compilation } from "./compile/compile.ts";
import type { ModelProblem as ModelProblemOf, RuleProblems } from "./compile/checks/check.ts";
import { type Given, readGivenInputs } from "./compile/given-inputs.ts";
import type { Diagnostic, SourceTexts } from "./model/diagnostic.ts";
import type { GivenAnswer, LogLine } from "./model/event.ts";
import type { Json, JsonObject } from "./model/json.ts";
import { exitCodes } from "./model/outcome.ts";
import type { Plan } from "./model/plan.ts";
import type { WorstCase } from "./model/worst-case.ts";
import type { Asker, ModelRequest } from "./model/ports.ts";
import { err, ok, type Result } from "./model/result.ts";
import { workspaceOf } from "./runlog/runs.ts";
import { canonicalToolName, languageTools } from "./tools/names.ts";
import type { Answers } from "./flow/approvals.ts";
import type * as Reading from "./flow/approvals.ts";
import type { Catalog } from "./providers/catalog.ts";
import type { Cassette } from "./providers/replay.ts";
import type { Models } from "./flow/models.ts";
import type { PastRun } from "./flow/resume.ts";
import type { RunEnd } from "./flow/run.ts";
import type { PermitResult } from "./flow/permit.ts";
import type { RunPermissions } from "./flow/rights.ts";
import type { Profile } from "./permissions/index.ts";
import type { StartOptions } from "./flow/run-options.ts";

export type { Compilation } from "./compile/compile.ts";
export type { Given } from "./compile/given-inputs.ts";
export type { RunEnd } from "./flow/run.ts";
export type { Permit, PermitResult } from "./flow/permit.ts";
export type { Profile } from "./permissions/index.ts";
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
  const workspace = workspaceOf(cwd);
  return compile({ ...source, cwd, workspace, tools: languageTools, toolParameters, ruleProblems, modelProblem: modelProblems({ cwd, workspace }) });
}

/** The rules themselves are loaded only for a workflow that has some. */
async function ruleProblems(permissions: Json, ownTools: readonly string[]): ReturnType<RuleProblems> {
  const { checkRules } = await import("./permissions/index.ts");
  const { isSecretFile } = await import("./tools/secret-files.ts");
  const tools = [...languageTools.keys(), ...ownTools];
  return checkRules({ layer: "workflow", permissions }, { tools, canonical: canonicalToolName, isSecret: isSecretFile });
}

/** The catalog, and a configuration, are read only for a workflow that names a model. */
function modelProblems(place: { readonly cwd: string; readonly workspace: string }): ModelProblemOf {
  let catalog: Promise<Catalog> | undefined;
  return async (model) => {
    const { likelyModel, parseModel } = await import("./providers/catalog.ts");
    catalog ??= readCatalog(place);
    const known = await catalog;
    const choice = parseModel(model, known);
    if (!choice.ok) return { message: choice.error };
    const { id, provider } = { provider: "custom", ...choice.value };
    const likely = provider === "custom" ? undefined : likelyModel(id, known);
    if (likely === undefined) return undefined;
    return { message: `nothing is known of the model \`${id}\``, suggestion: `did you mean \`${likely}\`?` };
  };
}

/** A configuration that cannot be read is refused by whoever needs it to run. */
async function readCatalog(place: { readonly cwd: string; readonly workspace: string }): Promise<Catalog> {
  const [{ builtInCatalog }, { configFiles, readConfig }] = await Promise.all([
    import("./providers/catalog.ts"),
    import("./flow/config.ts"),
  ]);
  const at = { ...place, env: process.env };
  const config = configFiles(at).length === 0 ? undefined : await readConfig(at);
  return config?.ok === true ? config.value.catalog : builtInCatalog;
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
  /** A run, or a log file, whose replies replace every agent's model. */
  readonly replay?: string;
  readonly env?: { readonly [name: string]: string | undefined };
  readonly runsDir?: string;
  /** Steps at once where the workflow does not say; 8 by default. */
  readonly parallel?: number;
  /** What agents may do where no rule says otherwise; reading the workspace when absent. */
  readonly profile?: Profile;
  /** Permission rules for this run: `Tool` or `Tool(pattern)`, each. */
  readonly allow?: readonly string[];
  /** False: steps with `cache` run whatever is kept; what they give is kept in its place. */
  readonly cache?: boolean;
  readonly logDeltas?: boolean;
  readonly fsync?: boolean;
  /** Paths of approvals that get a yes: before the run begins, or of those that are open in a resume. */
  readonly approve?: readonly string[];
  /** `field=value` or `PATH.field=value`, each: what goes into the forms of `approve`. */
  readonly form?: readonly string[];
  /** Goes with every answer. */
  readonly comment?: string;
  /** Who gives the answers; found out when absent. */
  readonly by?: string;
  /** Whom approvals ask while the run goes on; nobody when absent: then a run may end as `waiting`. */
  readonly asker?: Asker;
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
  const { plan } = prepared;
  const answers = await answersOf(request, cwd, (read, given) => read.readUpFront(plan, given));
  if (!answers.ok) return { started: false, refusal: usage(answers.error) };
  const options = await equip(request, prepared, { cwd, workspace: workspaceOf(cwd), answers: answers.value });
  if ("kind" in options) return { started: false, refusal: options };
  const { startRun } = await import("./flow/run.ts");
  const end = await startRun(options);
  if (end.ok) return { started: true, end: end.value, prepared };
  return { started: false, refusal: unavailable(end.error) };
}

function unavailable(message: string): Refusal {
  return { kind: "unavailable", exitCode: exitCodes.unavailable, message };
}

/** The answers to approvals that were typed, checked by `read`. */
async function answersOf(
  request: Conditions & Pick<ResumeRequest, "deny">,
  cwd: string,
  read: (module: typeof Reading, given: Answers) => Promise<Result<readonly GivenAnswer[], string>>,
): Promise<Result<readonly GivenAnswer[], string>> {
  const { approve = [], deny = [], form = [], comment = "", by, env = process.env } = request;
  if (approve.length + deny.length + form.length === 0 && comment === "") return ok([]);
  const [approvals, { userName }] = await Promise.all([import("./flow/approvals.ts"), import("./flow/user-name.ts")]);
  return read(approvals, { approve, deny, form, comment, by: () => by ?? userName(env, cwd) });
}

/** Everything a run needs beside its plan, or why it cannot start. */
async function equip(
  request: Conditions,
  { plan, inputs, warnings, sources }: Prepared,
  place: { readonly cwd: string; readonly workspace: string; readonly answers: readonly GivenAnswer[] },
): Promise<StartOptions | Refusal> {
  const env = request.env ?? process.env;
  const early = notYet(warnings, sources);
  if (early) return early;
  const secrets = readSecrets(plan, env);
  if ("kind" in secrets) return secrets;
  const equipment =
    Object.keys(plan.agents).length === 0
      ? { models: undefined, keys: [], replay: undefined }
      : await openModels(request, { plan, inputs, secrets: secrets.values, sources, ...place, env });
  if ("kind" in equipment) return equipment;
  const { supervise } = await import("./flow/supervision.ts");
  const supervision = supervise(env);
  if (!supervision.ok) return { ...supervision.error, exitCode: exitCodes[supervision.error.kind] };
  const permissions = await rightsFor(request, { plan, workspace: place.workspace, env });
  if (!permissions.ok) return permissions.error;
  const never = new AbortController().signal;
  // Without its text, as after the file is gone, the plan itself tells.
  const texts = sources.size > 0 ? [...sources.values()] : [JSON.stringify(plan)];
  return {
    plan,
    inputs,
    secrets: secrets.values,
    ...equipment,
    ...place,
    env,
    runsDir: request.runsDir,
    supervision: supervision.value,
    permissions: permissions.value,
    script: request.script,
    parallel: request.parallel,
    refresh: request.cache === false,
    logDeltas: request.logDeltas ?? false,
    fsync: request.fsync ?? false,
    hashesFiles: texts.some((text) => /hashfiles/i.test(text)),
    onEvent: request.onEvent,
    asker: request.asker,
    signal: request.signal ?? never,
    kill: request.kill ?? never,
  };
}

interface RightsSource {
  readonly plan: Plan;
  readonly workspace: string;
  readonly env: RunRequest["env"] & object;
}

/** The rights of a run's agents, where it has any or a managed file speaks of all that runs. */
async function rightsFor(
  { profile, allow = [], asker }: Conditions,
  { plan, workspace, env }: RightsSource,
): Promise<Result<RunPermissions | undefined, Refusal>> {
  const { managedRules } = await import("./flow/managed.ts");
  const managed = await managedRules(env);
  if (!managed.ok) return err(unavailable(managed.error));
  if (Object.keys(plan.agents).length === 0 && managed.value.length === 0 && allow.length === 0) return ok(undefined);
  const { createRights, missingSandbox } = await import("./flow/rights.ts");
  const options = { plan, workspace, asker, env, allow, managed: managed.value, ...(profile && { profile }) };
  const missing = missingSandbox(options);
  if (missing !== undefined) return err(unavailable(missing));
  const rights = createRights(options);
  return rights.ok ? rights : err(usage(rights.error));
}

export interface PermitRequest extends Pick<Conditions, "profile" | "allow" | "env"> {
  /** A workflow or agent file, relative to `cwd`, or the name of an agent. */
  readonly agent: string;
  /** `Bash(git push)`, `Write(src/a.ts)`. */
  readonly call: string;
  readonly cwd?: string;
}

/** What the rules make of a call by each agent of a file, or by one agent. Runs nothing. */
export async function permit({ agent, call, cwd = process.cwd(), ...request }: PermitRequest): Promise<PermitResult> {
  const { judgeCall, sourceOf } = await import("./flow/permit.ts");
  const compiled = await check({ ...sourceOf(agent), cwd });
  const { plan, diagnostics, sources } = compiled;
  if (!plan) return { kind: "invalid", diagnostics, sources };
  const { managedRules } = await import("./flow/managed.ts");
  const managed = await managedRules(request.env ?? process.env);
  if (!managed.ok) return { kind: "usage", message: managed.error };
  const { profile, allow = [] } = request;
  const env = request.env ?? process.env;
  const wishes = { allow, env, managed: managed.value, ...(profile && { profile }) };
  const permits = await judgeCall({ plan, workspace: workspaceOf(cwd), call, ...wishes });
  return permits.ok ? { kind: "judged", permits: permits.value } : { kind: "usage", message: permits.error };
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
  /** Paths of open approvals that get a no. */
  readonly deny?: readonly string[];
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
  const answers = await answersOf(request, past.cwd, (read, given) => read.readAnswers(past, given));
  if (!answers.ok) return { started: false, refusal: usage(answers.error) };
  const wishes = { from: request.from, set: request.set ?? [] };
  const set = await readWishes(past, plan, wishes);
  if (!set.ok) return { started: false, refusal: usage(set.error) };
  const finished = finishedEnd(past);
  if (finished && plan.digest === past.digest && wishes.from === undefined && set.value.length === 0)
    return { started: false, finished };
  const stranger = request.workflow === undefined ? undefined : source.stranger(plan);
  if (stranger !== undefined) return { started: false, refusal: usage(stranger) };
  const conditions = { ...request, ...inheritReplies(request, past) };
  const { cwd, workspace } = past;
  const options = await equip(conditions, prepared, { cwd, workspace, answers: answers.value });
  if ("kind" in options) return { started: false, refusal: options };
  const { from } = wishes;
  const end = await resumeRun({ past, options, from, set: set.value, notes: source.notes });
  if (end.ok) return { started: true, end: end.value, prepared };
  return { started: false, refusal: unavailable(end.error) };
}

/** Who answers for the models is as it was, unless somebody says otherwise. */
function inheritReplies(given: ResumeRequest, past: PastRun): Pick<Conditions, "script" | "replay"> {
  if (given.script !== undefined || given.replay !== undefined) return {};
  if (past.replay !== undefined) return { replay: past.replay };
  return past.script === undefined ? {} : { script: past.script };
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
  readonly inputs: JsonObject;
  readonly secrets: StartOptions["secrets"];
  readonly sources: SourceTexts;
  readonly cwd: string;
  readonly workspace: string;
  readonly env: RunRequest["env"] & object;
}

async function openModels(
  request: Conditions,
  source: ModelsSource,
): Promise<Pick<StartOptions, "models" | "keys" | "replay"> | Refusal> {
  const made = await makeModels(request, source);
  if ("kind" in made) return made;
  const problem = await made.models.prepare();
  if (!problem) return made;
  return problem.kind === "invalid" ? invalidIn(source, problem) : { ...problem, exitCode: exitCodes.unavailable };
}

function invalidIn(
  source: ModelsSource,
  problem: Pick<Extract<Refusal, { kind: "invalid" }>, "diagnostics" | "sources">,
): Refusal {
  const sources = new Map([...source.sources, ...problem.sources]);
  return { kind: "invalid", diagnostics: problem.diagnostics, sources, exitCode: exitCodes.usage };
}

/** The models of a run, of which none has been opened. */
async function makeModels(
  request: Conditions,
  source: ModelsSource,
): Promise<(Pick<StartOptions, "keys" | "replay"> & { readonly models: Models }) | Refusal> {
  const { script, replay } = request;
  if (script !== undefined && replay !== undefined) return usage("--script and --replay exclude each other");
  const [{ createModels }, { systemClock }, { builtInCatalog }, { configFiles, readConfig }] = await Promise.all([
    import("./flow/models.ts"),
    import("./flow/clock.ts"),
    import("./providers/catalog.ts"),
    import("./flow/config.ts"),
  ]);
  const config = configFiles(source).length === 0 ? undefined : await readConfig(source);
  if (config?.ok === false) return invalidIn(source, config.error);
  const keys = config?.value.keys ?? [];
  const played = replay === undefined ? undefined : await openReplay(replay, request, { ...source, keys });
  if (played?.ok === false) return usage(played.error);
  const models = createModels({
    ...source,
    script,
    ...(played && { cassette: played.value.cassette }),
    catalog: config?.value.catalog ?? builtInCatalog,
    clock: systemClock,
  });
  return { models, keys, replay: played?.value.file };
}

/** What a run could take at most; no key is needed. The error is a limit on cost that nobody could keep. */
export async function worstCase(request: RunRequest, { plan, inputs, sources }: Prepared): Promise<WorstCase | Refusal> {
  const cwd = request.cwd ?? process.cwd();
  const place = { cwd, workspace: workspaceOf(cwd), env: request.env ?? process.env };
  const source = { plan, inputs, secrets: {}, sources, ...place };
  const [made, { unpricedModels }, worst] = await Promise.all([
    makeModels(request, source),
    import("./flow/prices.ts"),
    import("./flow/worst-case.ts"),
  ]);
  if ("kind" in made) return made;
  const { facts } = made.models;
  const diagnostics = await unpricedModels(plan, facts);
  return diagnostics.length > 0
    ? invalidIn(source, { diagnostics, sources: new Map() })
    : worst.worstCase(plan, facts);
}

/** The masks of this run: the log's texts are masked, so what is compared with them has to be. */
async function openReplay(
  replay: string,
  { runsDir }: Conditions,
  source: ModelsSource & Pick<StartOptions, "keys">,
): Promise<Result<{ readonly cassette: Cassette; readonly file: string }, string>> {
  const [{ locateLog, openCassette }, { createMasking, maskedRequest }] = await Promise.all([
    import("./flow/cassette.ts"),
    import("./flow/masking.ts"),
  ]);
  const { mask, hasSecrets } = createMasking(source);
  const place = { cwd: source.cwd, ...(runsDir !== undefined && { runsDir }) };
  const file = locateLog(replay, place);
  if (!file.ok) return file;
  const masked = (asked: ModelRequest): ModelRequest => (hasSecrets ? maskedRequest(asked, mask) : asked);
  const cassette = await openCassette(file.value, replay, masked);
  return cassette.ok ? ok({ cassette: cassette.value, file: file.value }) : cassette;
}
