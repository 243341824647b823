import type { ModelProblem as ModelProblemOf, RuleProblems, SkillProblems } from "../compile/checks/check.ts";
import { compile, type Compilation, type CompileOptions } from "../compile/compile.ts";
import type { CompileDefaults, ConfiguredServers } from "../compile/defaults.ts";
import { readGivenInputs } from "../compile/given-inputs.ts";
import { bySpan, type SourceTexts } from "../model/diagnostic.ts";
import type { Json, JsonObject } from "../model/json.ts";
import { exitCodes } from "../model/outcome.ts";
import type { Plan, Template } from "../model/plan.ts";
import { err, ok, type Result } from "../model/result.ts";
import { workspaceOf } from "../runlog/runs.ts";
import type { Shelf } from "../skills/shelf.ts";
import { canonicalToolName, judgedTools, languageTools } from "../tools/names.ts";
import type { Config } from "./config.ts";
import type { ConfigProblem } from "./config-read.ts";
import { type ConfigPlace, configSources, homeOf } from "./config-files.ts";
import { builtInAgentsFolder } from "./built-in-agents.ts";
import { foreignNames } from "./foreign.ts";
import { managedOf } from "./managed.ts";
import type { Conditions, Prepared, Refusal, RunRequest, WorkflowSource } from "./requests.ts";

/** Compiles and checks a workflow with everything it names. Runs nothing, writes nothing. */
export async function check({ env = process.env, ...source }: CheckRequest): Promise<Compilation> {
  const cwd = source.cwd ?? process.cwd();
  const place = { cwd, workspace: workspaceOf(cwd) };
  const home = homeOf(env);
  const read = await configOf({ ...place, env });
  const config = read?.ok === true ? read.value : undefined;
  const modelProblem = modelProblems(config);
  const compiled = await compile({
    ...source,
    ...place,
    tools: languageTools,
    toolParameters,
    ruleProblems,
    modelProblem,
    skillProblems: skillProblems(place),
    builtIns: builtInAgentsFolder(),
    ...(home !== undefined && { home }),
    foreign: foreignNames(config?.aliases ?? new Map(), modelProblem),
    ...(config && { defaults: defaultsOf(config) }),
  });
  const found = read?.ok === false ? read.error : config?.warnings;
  if (found === undefined || found.diagnostics.length === 0) return compiled;
  return {
    ...(read?.ok === true && compiled),
    diagnostics: [...found.diagnostics, ...compiled.diagnostics],
    sources: new Map([...compiled.sources, ...found.sources]),
  };
}

type CheckRequest = WorkflowSource & Pick<RunRequest, "env"> & Pick<CompileOptions, "asksAbout">;

/** The configuration is loaded only where there is one. */
export async function configOf(place: ConfigPlace): Promise<Result<Config, ConfigProblem> | undefined> {
  return configSources(place).length === 0 ? undefined : (await import("./config.ts")).readConfig(place);
}

function defaultsOf({ model, limits, disabled, servers }: Config): CompileDefaults {
  const models = model === undefined ? [] : Array.isArray(model.value) ? model.value : [model.value];
  const values = Object.entries(limits).map(([kind, { value }]) => [kind, value]);
  return {
    models: models.map((json): Template => ({ type: "data", json })),
    limits: Object.fromEntries(values),
    disabled: (name) => disabled.get(name)?.at,
    servers: configuredServers({ servers }),
  };
}

/** The project's `.mcp.json` lies between what the user and what the project configures. */
export function configuredServers({ servers }: Pick<Config, "servers">): ConfiguredServers {
  const shapes = (isUsers: boolean): ConfiguredServers["before"] =>
    new Map([...servers].flatMap(([name, it]) => ((it.layer === "user") === isUsers ? [[name, it.value]] : [])));
  return { before: shapes(false), behind: shapes(true) };
}

/** Checks a workflow as {@link check} does, and what it asks of its models. No key is needed. */
export async function validate(source: WorkflowSource): Promise<Compilation> {
  const compiled = await check(source);
  const { plan, sources } = compiled;
  if (plan === undefined) return compiled;
  const cwd = source.cwd ?? process.cwd();
  const place = { cwd, workspace: workspaceOf(cwd), env: process.env };
  const within = await withinBounds(plan, { ...place, asksModels: true });
  if (!within.ok) return withProblems(compiled, within.error);
  if (Object.keys(plan.agents).length === 0) return compiled;
  const { modelDiagnostics } = await import("./open-models.ts");
  const found = await modelDiagnostics(within.value, { ...place, sources });
  return found.diagnostics.length === 0 ? compiled : withProblems(compiled, found);
}

function withProblems({ diagnostics, sources }: Compilation, found: ConfigProblem): Compilation {
  const all = [...diagnostics, ...found.diagnostics].sort((a, b) => bySpan(a.at, b.at));
  return { diagnostics: all, sources: new Map([...sources, ...found.sources]) };
}

/** The plan within what this machine allows; the problems are those of the managed file, or what in the plan is not allowed. */
export async function withinBounds(
  plan: Plan,
  { asksModels, ...place }: ConfigPlace & { readonly asksModels: boolean },
): Promise<Result<Plan, ConfigProblem & { readonly unreadable?: true }>> {
  const managed = await managedOf(place);
  if (!managed.ok) return err({ ...managed.error, unreadable: true });
  if (managed.value === undefined) return ok(plan);
  const [{ governed }, { builtInCatalog }, config] = await Promise.all([
    import("./governed.ts"),
    import("../providers/catalog.ts"),
    configOf(place),
  ]);
  if (config?.ok === false) return config;
  const catalog = config?.value.catalog ?? builtInCatalog;
  const found = governed(plan, { managed: managed.value, catalog, asksModels });
  return found.ok ? found : err({ diagnostics: found.error, sources: new Map() });
}

/** As {@link withinBounds}, of a run that a script or a log may answer. A file that cannot be read stops every run. */
export async function allowedPlan(
  plan: Plan,
  { script, replay }: Pick<Conditions, "script" | "replay">,
  place: ConfigPlace,
): Promise<Result<Plan, Refusal>> {
  const within = await withinBounds(plan, { ...place, asksModels: script === undefined && replay === undefined });
  if (within.ok) return within;
  const { unreadable, ...found } = within.error;
  return err({ kind: "invalid", exitCode: unreadable ? exitCodes.unavailable : exitCodes.usage, ...found });
}

/** The part of a run before anything happens: compile, check, fit the inputs. */
export async function prepare(request: RunRequest): Promise<Prepared | Refusal> {
  const { plan, inputsAt, diagnostics, sources } = await check(request);
  if (!plan || !inputsAt) return { kind: "invalid", exitCode: exitCodes.usage, diagnostics, sources };
  const declared = plan.workflows[plan.root]?.inputs ?? [];
  const given = { texts: request.inputTexts ?? [], values: request.inputs ?? {} };
  const inputs = await readGivenInputs(declared, given, inputsAt);
  if (!inputs.ok) return { kind: "invalid", exitCode: exitCodes.usage, diagnostics: inputs.error, sources };
  const { cwd = process.cwd(), env = process.env } = request;
  const allowed = await allowedPlan(plan, request, { cwd, workspace: workspaceOf(cwd), env });
  if (!allowed.ok) return withSources(allowed.error, sources);
  return { plan: allowed.value, inputs: inputs.value, warnings: diagnostics, sources };
}

function withSources(refusal: Refusal, sources: SourceTexts): Refusal {
  return refusal.kind === "invalid" ? { ...refusal, sources: new Map([...sources, ...refusal.sources]) } : refusal;
}

/** Skills are read only for a workflow whose agents list some. */
function skillProblems(place: { readonly cwd: string; readonly workspace: string }): SkillProblems {
  const shelves = new Map<string, Promise<Shelf>>();
  return async (workflow, { text, at }) => {
    const [{ shelfOf }, { findSkill }] = await Promise.all([import("./skills.ts"), import("../skills/find.ts")]);
    const shelf = shelves.get(workflow) ?? shelfOf([workflow], place);
    shelves.set(workflow, shelf);
    const { skills, broken } = await shelf;
    const found = findSkill(text, skills);
    if (found.ok) return [];
    return broken.get(text) ?? [{ code: "FLOW6021", severity: "error", message: found.error, at }];
  };
}

/** The rules themselves are loaded only for a workflow that has some. */
async function ruleProblems(permissions: Json, ownTools: readonly string[]): ReturnType<RuleProblems> {
  const { checkRules } = await import("../permissions/index.ts");
  const { isSecretFile } = await import("../tools/secret-files.ts");
  const tools = [...judgedTools, ...ownTools];
  return checkRules(
    { layer: "workflow", permissions },
    { tools, canonical: canonicalToolName, isSecret: isSecretFile },
  );
}

/** The catalog is loaded only for a workflow that names a model. */
function modelProblems(config: Config | undefined): ModelProblemOf {
  return async (model) => {
    const { builtInCatalog, likelyModel, parseModel } = await import("../providers/catalog.ts");
    const known = config?.catalog ?? builtInCatalog;
    const choice = parseModel(model, known);
    if (!choice.ok) return { message: choice.error };
    const { id, provider } = { provider: "custom", ...choice.value };
    const likely = provider === "custom" ? undefined : likelyModel(id, known);
    if (likely === undefined) return undefined;
    return { message: `nothing is known of the model \`${id}\``, suggestion: `did you mean \`${likely}\`?` };
  };
}

/** The tools themselves are loaded only for a workflow that calls one in a step of its own. */
async function toolParameters(name: string): Promise<JsonObject | undefined> {
  if (languageTools.get(name) !== true) return undefined;
  const { parametersOf } = await import("../tools/index.ts");
  return parametersOf(name);
}
