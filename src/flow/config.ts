import { existsSync } from "node:fs";
import path from "node:path";
import { asMap } from "../compile/read/nodes.ts";
import { reportIssues } from "../compile/read/schema.ts";
import { createReport } from "../compile/report.ts";
import { checkConfig } from "../jsonschema/check-config.ts";
import type { Diagnostic, SourceTexts } from "../model/diagnostic.ts";
import { isJsonObject, type Json, type JsonObject, own } from "../model/json.ts";
import { err, ok, type Result } from "../model/result.ts";
import { builtInCatalog, type Catalog, priceOf } from "../providers/catalog.ts";
import { type Endpoint, plainQuirks, type Quirks } from "../providers/endpoints.ts";
import type { KnownModel } from "../providers/known-models.ts";
import { nodeAt, toJson } from "../source/document.ts";
import { parseSource } from "../source/parse.ts";
import { readSource } from "../source/read.ts";

/** What configuration files say, the later file before the earlier one. */
export interface Config {
  /** Files that were read, the weakest first, as somebody would name them. */
  readonly files: readonly string[];
  readonly catalog: Catalog;
  /** Variables that hold the keys of its providers. */
  readonly keys: readonly string[];
}

export interface ConfigPlace {
  readonly cwd: string;
  readonly workspace: string;
  readonly env: { readonly [name: string]: string | undefined };
}

export interface ConfigProblem {
  readonly diagnostics: readonly Diagnostic[];
  readonly sources: SourceTexts;
}

export const configName = "flow.config.yaml";

/** Whether there is a configuration at all, so that a run without one loads nothing to read it. */
export function configFiles({ cwd, workspace, env }: ConfigPlace): readonly string[] {
  const project = path.join(workspace, configName);
  const named = env["FLOW_CONFIG"] ?? "";
  return [...(existsSync(project) ? [project] : []), ...(named === "" ? [] : [path.resolve(cwd, named)])];
}

/** Reads `flow.config.yaml` of the project, and over it the file that `FLOW_CONFIG` names. */
export async function readConfig(place: ConfigPlace): Promise<Result<Config, ConfigProblem>> {
  let { providers, models } = builtInCatalog;
  const files: string[] = [];
  const keys: string[] = [];
  for (const file of configFiles(place)) {
    const shown = path.relative(place.cwd, file) || file;
    const read = await readFile(file, shown);
    if (!read.ok) return read;
    files.push(shown);
    for (const [name, value] of entriesOf(read.value, "providers")) {
      const before = Object.hasOwn(providers, name) ? providers[name] : undefined;
      const endpoint = endpointOf(value, before);
      if (endpoint === undefined) return err(withoutAddress(shown, name));
      providers = { ...providers, [name]: endpoint };
      if (endpoint.key !== undefined) keys.push(endpoint.key);
    }
    for (const [id, value] of entriesOf(read.value, "models")) {
      const before = Object.hasOwn(models, id) ? models[id] : undefined;
      models = { ...models, [id]: { ...before, ...knownModelOf(value) } };
    }
  }
  return ok({ files, catalog: { providers, models }, keys });
}

async function readFile(file: string, shown: string): Promise<Result<JsonObject, ConfigProblem>> {
  const bytes = await readSource(file);
  if (!bytes.ok) {
    const { code, message } = bytes.error;
    return err({ diagnostics: [problemAt(shown, code, message)], sources: new Map() });
  }
  const sources = new Map([[shown, new TextDecoder().decode(bytes.value)]]);
  const document = parseSource(bytes.value, shown);
  if (!document.ok) return err({ diagnostics: document.error, sources });
  const root = asMap(document.value.root);
  if (root === undefined)
    return err({ diagnostics: [problemAt(shown, "FLOW2005", "a configuration is a mapping of keys")], sources });
  const value = toJson(root);
  const problems = createReport();
  const issues = checkConfig(value);
  reportIssues(root, issues, problems.report);
  for (const { problem, path: at } of issues) {
    if (problem.kind !== "name") continue;
    const what =
      at[0] === "models" ? "a model is named `provider/name`" : "a provider is named in small letters, digits and `-`";
    problems.report("FLOW3001", nodeAt(root, [...at, problem.key])?.keyAt ?? root.at, what);
  }
  const diagnostics = problems.sorted();
  if (diagnostics.length > 0) return err({ diagnostics, sources });
  return ok(isJsonObject(value) ? value : {});
}

function problemAt(file: string, code: Diagnostic["code"], message: string): Diagnostic {
  const at = { file, line: 1, column: 1, endLine: 1, endColumn: 1 };
  return { code, severity: "error", message: `the configuration ${message}`, at };
}

function withoutAddress(file: string, name: string): ConfigProblem {
  const message = `names the provider \`${name}\` without a \`base-url\`, and no built-in one has that name`;
  return { diagnostics: [problemAt(file, "FLOW2003", message)], sources: new Map() };
}

function entriesOf(config: JsonObject, key: string): [string, JsonObject][] {
  const value = own(config, key);
  const entries = isJsonObject(value) ? Object.entries(value) : [];
  return entries.flatMap(([name, inner]) => (isJsonObject(inner) ? [[name, inner] as [string, JsonObject]] : []));
}

/** Undefined when nobody says where the server is. */
function endpointOf(value: JsonObject, before: Endpoint | undefined): Endpoint | undefined {
  const ownUrl = textAt(value, "base-url");
  const baseUrl = ownUrl ?? before?.baseUrl;
  if (baseUrl === undefined) return undefined;
  // An ambient key is not for a server that somebody put in the place of its own.
  const key = textAt(value, "key") ?? (ownUrl === undefined ? before?.key : undefined);
  const protocol = textAt(value, "protocol") === "anthropic" ? "anthropic" : undefined;
  const isOpenai = textAt(value, "protocol") === "openai";
  return {
    protocol: protocol ?? (isOpenai ? "openai" : (before?.protocol ?? "openai")),
    baseUrl,
    ...(key !== undefined && { key }),
    ...(before?.keyOptional !== undefined && { keyOptional: before.keyOptional }),
    local: flagAt(value, "local") ?? (ownUrl === undefined ? (before?.local ?? false) : false),
    parallel: numberAt(value, "parallel") ?? before?.parallel ?? 64,
    quirks: quirksOf(value, before?.quirks ?? plainQuirks),
  };
}

function quirksOf(value: JsonObject, before: Quirks): Quirks {
  const given = own(value, "quirks");
  const quirks = isJsonObject(given) ? given : {};
  const toolStream = flagAt(quirks, "tool-stream") ?? before.toolStream;
  return {
    maxTokens: oneOf(maxTokensFields, own(quirks, "max-tokens")) ?? before.maxTokens,
    system: oneOf(systemRoles, own(quirks, "system")) ?? before.system,
    usageOption: flagAt(quirks, "usage-option") ?? before.usageOption,
    requiredCalls: flagAt(quirks, "required-calls") ?? before.requiredCalls,
    jsonSchema: flagAt(quirks, "json-schema") ?? before.jsonSchema,
    effort: oneOf(effortFields, own(quirks, "effort")) ?? before.effort,
    images: flagAt(quirks, "images") ?? before.images,
    ...(toolStream !== undefined && { toolStream }),
  };
}

const maxTokensFields = ["max_tokens", "max_completion_tokens"] as const;
const systemRoles = ["system", "developer"] as const;
const effortFields = [
  "reasoning_effort",
  "reasoning",
  "thinking",
  "thinking+effort",
  "enable_thinking",
  "none",
] as const satisfies readonly Quirks["effort"][];

function knownModelOf(value: JsonObject): KnownModel {
  const window = numberAt(value, "window");
  const maxOutput = numberAt(value, "max-output");
  const jsonSchema = flagAt(value, "json-schema");
  const thinking = oneOf(["adaptive", "budget"] as const, own(value, "thinking"));
  const price = priceOf(own(value, "price"));
  return {
    ...(window !== undefined && { window }),
    ...(maxOutput !== undefined && { maxOutput }),
    ...(jsonSchema !== undefined && { jsonSchema }),
    ...(thinking !== undefined && { thinking }),
    ...(price !== undefined && { price }),
  };
}

function oneOf<T extends string>(words: readonly T[], value: Json | undefined): T | undefined {
  return words.find((word) => word === value);
}

function textAt(object: JsonObject, key: string): string | undefined {
  const value = own(object, key);
  return typeof value === "string" ? value : undefined;
}

function numberAt(object: JsonObject, key: string): number | undefined {
  const value = own(object, key);
  return typeof value === "number" ? value : undefined;
}

function flagAt(object: JsonObject, key: string): boolean | undefined {
  const value = own(object, key);
  return typeof value === "boolean" ? value : undefined;
}
