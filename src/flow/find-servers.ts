import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { projectServersFile, readProjectServers } from "../compile/project-servers.ts";
import { createReport } from "../compile/report.ts";
import type { ServerShape } from "../compile/server-shape.ts";
import { createEvaluator, type Evaluator } from "../expr/template.ts";
import { isRequired, type ServerSpec, specOf } from "../mcp/index.ts";
import type { Diagnostic, SourceTexts } from "../model/diagnostic.ts";
import { isJsonObject, type Json, type JsonObject } from "../model/json.ts";
import { err, ok, type Result } from "../model/result.ts";
import { stepEnvironment } from "../process/environment.ts";
import { namedKeys } from "../providers/key-names.ts";
import { workspaceOf } from "../runlog/runs.ts";
import { check, configOf, configuredServers } from "./check.ts";
import { type PlannedServer, secretVariables, serversOfPlan } from "./plan-servers.ts";

/** Where servers are looked for: those a workflow uses, or without one those every workflow knows. */
export interface ServersRequest {
  readonly file?: string;
  readonly cwd: string;
  readonly env: { readonly [name: string]: string | undefined };
  /** Only these; all when absent. */
  readonly servers?: readonly string[];
  readonly signal: AbortSignal;
}

export type McpProblem =
  | { readonly kind: "invalid"; readonly diagnostics: readonly Diagnostic[]; readonly sources: SourceTexts }
  | { readonly kind: "usage" | "unavailable"; readonly message: string };

/** A server with its definition resolved, or why that cannot be. */
export interface Found extends Pick<PlannedServer, "name" | "file"> {
  readonly required: boolean;
  /** Null where it cannot be resolved. */
  readonly definition: Json;
  readonly spec: Result<ServerSpec, string>;
  /** Variables that it is given as secrets, and those that hold models' keys: what they hold is printed nowhere. */
  readonly hidden: readonly string[];
}

/** The servers that every workflow here can name. Checks of the project's own file are those of one that names them all. */
export async function serversInProject({ cwd, env }: ServersRequest): Promise<Result<readonly Found[], McpProblem>> {
  const workspace = workspaceOf(cwd);
  const config = await configOf({ cwd, workspace, env });
  if (config?.ok === false) return err({ kind: "invalid", ...config.error });
  const { before, behind } = configuredServers(config?.value ?? { servers: new Map() });
  const project = await projectShapes(workspace);
  if (!project.ok) return project;
  const shapes = new Map([...behind.values(), ...project.value, ...before.values()].map((it) => [it.name, it]));
  const evaluator = createEvaluator();
  const place: Place = { cwd, workspace, env, keys: config?.value.keys ?? [] };
  return ok([...shapes.values()].map((shape) => foundServer(shape, { evaluator, place, ...withSecrets(shape, env) })));
}

async function projectShapes(workspace: string): Promise<Result<readonly ServerShape[], McpProblem>> {
  const problems = createReport();
  const file = join(workspace, projectServersFile);
  const project = await readProjectServers({ path: file, shown: projectServersFile, problems, keep: () => undefined });
  const shapes = (project?.names ?? []).flatMap((name) => project?.find(name) ?? []);
  if (project?.names.length === 0) project.find("");
  const diagnostics = problems.sorted();
  if (diagnostics.some(({ severity }) => severity === "error")) {
    const text = existsSync(file) ? readFileSync(file, "utf8") : "";
    return err({ kind: "invalid", diagnostics, sources: new Map([[projectServersFile, text]]) });
  }
  return ok(shapes.filter((shape) => shape !== "broken"));
}

export async function serversInWorkflow(
  file: string,
  { cwd, env }: ServersRequest,
): Promise<Result<readonly Found[], McpProblem>> {
  const { plan, diagnostics, sources } = await check({ file, cwd, env });
  if (!plan) return err({ kind: "invalid", diagnostics, sources });
  const evaluator = createEvaluator();
  const keys = [...(await configuredKeys({ cwd, env })), ...namedKeys(plan as unknown as Json)];
  const place: Place = { cwd, workspace: workspaceOf(cwd), env, keys };
  return ok(
    serversOfPlan(plan).map((server): Found => {
      const workflow = plan.workflows[server.workflow];
      const presets = workflow?.inputs.map((input) => [input.name, input.default?.json ?? null] as const) ?? [];
      const names = workflow?.secrets ?? [];
      const known = { inputs: Object.fromEntries(presets), secrets: valuesOf(names, env) };
      const vars = evaluator.resolve({ type: "map", entries: workflow?.vars ?? [] }, { contexts: known });
      const contexts = { ...known, ...(vars.ok && { vars: vars.value }) };
      const around = evaluator.resolve({ type: "map", entries: workflow?.env ?? [] }, { contexts });
      const read = JSON.stringify(server.definition);
      const secrets = { all: names, read: names.filter((name) => read.includes(`secrets.${name}`)) };
      return foundServer(server, { evaluator, place, contexts, secrets, ...(around.ok && { around: around.value }) });
    }),
  );
}

/** Variables that hold the keys of configured providers; none where the configuration cannot be read. */
export async function configuredKeys({ cwd, env }: Pick<ServersRequest, "cwd" | "env">): Promise<readonly string[]> {
  const config = await configOf({ cwd, workspace: workspaceOf(cwd), env });
  return config?.ok === true ? config.value.keys : [];
}

interface Place extends Pick<ServersRequest, "cwd" | "env"> {
  readonly workspace: string;
  /** Variables that hold models' keys. */
  readonly keys: readonly string[];
}

interface Surroundings {
  readonly evaluator: Evaluator;
  readonly place: Place;
  readonly contexts: JsonObject;
  /** Those that are masked, and those that its definition reads. */
  readonly secrets: { readonly all: readonly string[]; readonly read: readonly string[] };
  /** The workflow's `env`. */
  readonly around?: Json;
}

/** Without a workflow that declares them, the secrets are those that the server reads. */
function withSecrets({ secrets }: ServerShape, env: ServersRequest["env"]): Pick<Surroundings, "contexts" | "secrets"> {
  return { contexts: { secrets: valuesOf(secrets, env) }, secrets: { all: secrets, read: secrets } };
}

function valuesOf(secrets: readonly string[], env: ServersRequest["env"]): JsonObject {
  return Object.fromEntries(secrets.map((name) => [name, secretIn(env, name)]));
}

function secretIn(env: ServersRequest["env"], name: string): string {
  return Object.hasOwn(env, name) ? (env[name] ?? "") : "";
}

function foundServer(
  { name, file, expands, base, definition: written }: Omit<ServerShape, "secrets">,
  { evaluator, place, contexts, secrets, around = {} }: Surroundings,
): Found {
  const { cwd, workspace, env, keys } = place;
  const definition = evaluator.resolve(written, { contexts });
  const required = definition.ok && isRequired(definition.value);
  const expanded = expands && written.type === "data" ? secretVariables(written.json) : [];
  const hidden = [...secrets.all, ...keys, ...expanded];
  const found = { name, file, required, hidden, definition: definition.ok ? definition.value : null };
  const missing = secrets.read.filter((secret) => secretIn(env, secret) === "");
  if (missing.length > 0) return { ...found, spec: err(`it reads the secret ${missing.join(", ")}, which is not set`) };
  if (!definition.ok) return { ...found, spec: err(definition.error.message) };
  const spec = specOf({
    name,
    definition: definition.value,
    ...(expands && { variables: env }),
    cwd: base === "workspace" ? workspace : cwd,
    inherited: stepEnvironment({ inherited: env, providerKeys: keys, secrets: secrets.all, own: {} }),
    around: isJsonObject(around) ? around : {},
    step: {},
  });
  return { ...found, spec };
}
