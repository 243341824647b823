import type { ModelProblem as ModelProblemOf, RuleProblems, SkillProblems } from "../compile/checks/check.ts";
import { compile, type Compilation } from "../compile/compile.ts";
import type { CompileDefaults } from "../compile/defaults.ts";
import { readGivenInputs } from "../compile/given-inputs.ts";
import { bySpan } from "../model/diagnostic.ts";
import type { Json, JsonObject } from "../model/json.ts";
import { exitCodes } from "../model/outcome.ts";
import type { Template } from "../model/plan.ts";
import type { Result } from "../model/result.ts";
import { workspaceOf } from "../runlog/runs.ts";
import type { Shelf } from "../skills/shelf.ts";
import { canonicalToolName, languageTools } from "../tools/names.ts";
import type { Config, ConfigProblem } from "./config.ts";
import { type ConfigPlace, configSources } from "./config-files.ts";
import { foreignNames } from "./foreign.ts";
import type { Prepared, Refusal, RunRequest, WorkflowSource } from "./requests.ts";

/** Compiles and checks a workflow with everything it names. Runs nothing, writes nothing. */
export async function check({ env = process.env, ...source }: CheckRequest): Promise<Compilation> {
  const cwd = source.cwd ?? process.cwd();
  const place = { cwd, workspace: workspaceOf(cwd) };
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
    foreign: foreignNames(config?.aliases ?? new Map(), modelProblem),
    ...(config && { defaults: defaultsOf(config) }),
  });
  if (read?.ok !== false) return compiled;
  const { diagnostics, sources } = read.error;
  return {
    diagnostics: [...diagnostics, ...compiled.diagnostics],
    sources: new Map([...compiled.sources, ...sources]),
  };
}

type CheckRequest = WorkflowSource & Pick<RunRequest, "env">;

/** The configuration is loaded only where there is one. */
async function configOf(place: ConfigPlace): Promise<Result<Config, ConfigProblem> | undefined> {
  return configSources(place).length === 0 ? undefined : (await import("./config.ts")).readConfig(place);
}

function defaultsOf({ model, limits, disabled }: Config): CompileDefaults {
  const models = model === undefined ? [] : Array.isArray(model.value) ? model.value : [model.value];
  const values = Object.entries(limits).map(([kind, { value }]) => [kind, value]);
  return {
    models: models.map((json): Template => ({ type: "data", json })),
    limits: Object.fromEntries(values),
    disabled: (name) => disabled.get(name)?.at,
  };
}

/** Checks a workflow as {@link check} does, and what it asks of its models. No key is needed. */
export async function validate(source: WorkflowSource): Promise<Compilation> {
  const compiled = await check(source);
  const { plan, diagnostics, sources } = compiled;
  if (plan === undefined || Object.keys(plan.agents).length === 0) return compiled;
  const { modelDiagnostics } = await import("./open-models.ts");
  const cwd = source.cwd ?? process.cwd();
  const found = await modelDiagnostics(plan, { cwd, workspace: workspaceOf(cwd), env: process.env, sources });
  if (found.diagnostics.length === 0) return compiled;
  const all = [...diagnostics, ...found.diagnostics].sort((a, b) => bySpan(a.at, b.at));
  return { diagnostics: all, sources: new Map([...sources, ...found.sources]) };
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
  const tools = [...languageTools.keys(), ...ownTools];
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
