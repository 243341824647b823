import type { ModelProblem as ModelProblemOf, RuleProblems } from "../compile/checks/check.ts";
import { compile, type Compilation } from "../compile/compile.ts";
import { readGivenInputs } from "../compile/given-inputs.ts";
import type { Json, JsonObject } from "../model/json.ts";
import { exitCodes } from "../model/outcome.ts";
import type { Catalog } from "../providers/catalog.ts";
import { workspaceOf } from "../runlog/runs.ts";
import { canonicalToolName, languageTools } from "../tools/names.ts";
import type { Prepared, Refusal, RunRequest, WorkflowSource } from "./requests.ts";

/** Compiles and checks a workflow with everything it names. Runs nothing, writes nothing. */
export async function check(source: WorkflowSource): Promise<Compilation> {
  const cwd = source.cwd ?? process.cwd();
  const place = { cwd, workspace: workspaceOf(cwd) };
  const modelProblem = modelProblems(place);
  return compile({ ...source, ...place, tools: languageTools, toolParameters, ruleProblems, modelProblem });
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

/** The catalog, and a configuration, are read only for a workflow that names a model. */
function modelProblems(place: { readonly cwd: string; readonly workspace: string }): ModelProblemOf {
  let catalog: Promise<Catalog> | undefined;
  return async (model) => {
    const { likelyModel, parseModel } = await import("../providers/catalog.ts");
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
    import("../providers/catalog.ts"),
    import("./config.ts"),
  ]);
  const at = { ...place, env: process.env };
  const config = configFiles(at).length === 0 ? undefined : await readConfig(at);
  return config?.ok === true ? config.value.catalog : builtInCatalog;
}

/** The tools themselves are loaded only for a workflow that calls one in a step of its own. */
async function toolParameters(name: string): Promise<JsonObject | undefined> {
  if (languageTools.get(name) !== true) return undefined;
  const { parametersOf } = await import("../tools/index.ts");
  return parametersOf(name);
}
