import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { projectServersFile, readProjectServers } from "../compile/project-servers.ts";
import { createReport } from "../compile/report.ts";
import { createEvaluator } from "../expr/template.ts";
import { isRequired, type ServerSpec, specOf } from "../mcp/index.ts";
import type { Diagnostic, SourceTexts } from "../model/diagnostic.ts";
import { isJsonObject, type Json, type JsonObject } from "../model/json.ts";
import { err, ok, type Result } from "../model/result.ts";
import { stepEnvironment } from "../process/environment.ts";
import { workspaceOf } from "../runlog/runs.ts";
import { check } from "./check.ts";
import { type PlannedServer, serversOfPlan } from "./plan-servers.ts";

/** Where servers are looked for: those a workflow uses, or without one those of the project. */
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
  readonly spec: Result<ServerSpec, string>;
}

/** Checks of the project's own file are those of a workflow that names every server in it. */
export async function serversInProject({ cwd, env }: ServersRequest): Promise<Result<readonly Found[], McpProblem>> {
  const workspace = workspaceOf(cwd);
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
  return ok(
    shapes.flatMap((shape) => {
      if (shape === "broken" || shape.definition.type !== "data") return [];
      const { name, file: from, definition } = shape;
      const spec = specOf({
        name,
        definition: definition.json,
        variables: env,
        cwd: workspace,
        ...surroundings(env, []),
      });
      return [{ name, file: from, required: isRequired(definition.json), spec }];
    }),
  );
}

export async function serversInWorkflow(
  file: string,
  { cwd, env }: ServersRequest,
): Promise<Result<readonly Found[], McpProblem>> {
  const { plan, diagnostics, sources } = await check({ file, cwd, env });
  if (!plan) return err({ kind: "invalid", diagnostics, sources });
  const evaluator = createEvaluator();
  const workspace = workspaceOf(cwd);
  const servers = serversOfPlan(plan).map((server): Found => {
    const workflow = plan.workflows[server.workflow];
    const presets = workflow?.inputs.map((input) => [input.name, input.default?.json ?? null] as const) ?? [];
    const names = workflow?.secrets ?? [];
    const secrets = Object.fromEntries(names.map((name) => [name, env[name] ?? ""]));
    const known = { inputs: Object.fromEntries(presets), secrets };
    const vars = evaluator.resolve({ type: "map", entries: workflow?.vars ?? [] }, { contexts: known });
    const contexts = { ...known, ...(vars.ok && { vars: vars.value }) };
    const definition = evaluator.resolve(server.definition, { contexts });
    const around = evaluator.resolve({ type: "map", entries: workflow?.env ?? [] }, { contexts });
    const missing = names.filter(
      (name) => JSON.stringify(server.definition).includes(`secrets.${name}`) && (env[name] ?? "") === "",
    );
    const { name, file: from, expands } = server;
    const required = definition.ok && isRequired(definition.value);
    if (missing.length > 0)
      return { name, file: from, required, spec: err(`it reads the secret ${missing.join(", ")}, which is not set`) };
    if (!definition.ok) return { name, file: from, required, spec: err(definition.error.message) };
    const spec = specOf({
      name,
      definition: definition.value,
      ...(expands && { variables: env }),
      cwd: from === projectServersFile ? workspace : cwd,
      ...surroundings(env, names, around.ok ? around.value : {}),
    });
    return { name, file: from, required, spec };
  });
  return ok(servers);
}

function surroundings(
  env: ServersRequest["env"],
  secrets: readonly string[],
  around: Json = {},
): { inherited: Record<string, string>; around: JsonObject; step: JsonObject } {
  const inherited = stepEnvironment({ inherited: env, providerKeys: [], secrets, own: {} });
  return { inherited, around: isJsonObject(around) ? around : {}, step: {} };
}
