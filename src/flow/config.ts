import { asMap, entriesOf as nodesOf, itemsOf, textOf } from "../compile/read/nodes.ts";
import { readLimits } from "../compile/read/agent.ts";
import { readPermissions } from "../compile/read/permissions.ts";
import { reportIssues } from "../compile/read/schema.ts";
import { createReport, type Report } from "../compile/report.ts";
import { checkConfig } from "../jsonschema/check-config.ts";
import type { Diagnostic, SourceTexts, Span } from "../model/diagnostic.ts";
import { isJsonObject, type Json, type JsonObject, own } from "../model/json.ts";
import type { Limits } from "../model/plan.ts";
import { err, ok, type Result } from "../model/result.ts";
import type { Block, Profile } from "../permissions/index.ts";
import { addressProblem, builtInCatalog, type Catalog } from "../providers/catalog.ts";
import { entry, type MapNode, nodeAt, toJson } from "../source/document.ts";
import { parseSource } from "../source/parse.ts";
import { readSource } from "../source/read.ts";
import { endpointOf, knownModelOf } from "./config-catalog.ts";
import { type ConfigLayer, type ConfigPlace, configSources, type ConfigSource } from "./config-files.ts";

/** What the configurations say, the stronger layer before the weaker one. */
export interface Config {
  /** What was read, the weakest first, as somebody would name it. */
  readonly files: readonly string[];
  readonly catalog: Catalog;
  /** Variables that hold the keys of its providers. */
  readonly keys: readonly string[];
  /** The model, or the list of models, of agents for which nobody else names one. */
  readonly model?: Setting<Json>;
  /** What words for models in other programs' agent files mean. */
  readonly aliases: ReadonlyMap<string, Setting<string>>;
  /** Rules, the weakest first. */
  readonly rules: readonly Block[];
  readonly profile?: Setting<Profile>;
  readonly sandbox?: Setting<"auto" | "on" | "off">;
  /** Of runs whose workflow says none of that kind. */
  readonly limits: { readonly [kind in keyof Limits]: Setting<number> };
  /** Agents nobody may use. */
  readonly disabled: ReadonlyMap<string, Setting<true>>;
  /** Of all layers, the weakest first; all of them run. */
  readonly hooks: readonly Setting<JsonObject>[];
}

/** A value, and who says so. */
export interface Setting<T> {
  readonly value: T;
  readonly layer: ConfigLayer;
  readonly at: Span;
}

export interface ConfigProblem {
  readonly diagnostics: readonly Diagnostic[];
  readonly sources: SourceTexts;
}

export const emptyConfig: Config = {
  files: [],
  catalog: builtInCatalog,
  keys: [],
  aliases: new Map(),
  rules: [],
  limits: {},
  disabled: new Map(),
  hooks: [],
};

/** Reads every configuration there is, one over the other. */
export async function readConfig(place: ConfigPlace): Promise<Result<Config, ConfigProblem>> {
  let config = emptyConfig;
  for (const source of configSources(place)) {
    const root = await readOne(source);
    if (!root.ok) return root;
    const next = over(config, root.value, source);
    if (!next.ok) return next;
    config = next.value;
  }
  return ok(config);
}

function over(before: Config, root: MapNode, { layer, shown }: ConfigSource): Result<Config, ConfigProblem> {
  const catalog = catalogOver(before, root, shown);
  if (!catalog.ok) return catalog;
  const setting = <T extends Json>(key: string): Setting<T> | undefined => {
    const found = entry(root, key);
    return found && { value: toJson(found.value) as T, layer, at: found.keyAt };
  };
  const model = setting<Json>("model") ?? before.model;
  const profile = setting<Profile>("profile") ?? before.profile;
  const sandbox = setting<"auto" | "on" | "off">("sandbox") ?? before.sandbox;
  const hooks = setting<JsonObject>("hooks");
  const permissions = entry(root, "permissions")?.value;
  const rules = permissions && readPermissions(permissions);
  return ok({
    ...before,
    ...catalog.value,
    files: [...before.files, shown],
    ...(model && { model }),
    ...(profile && { profile }),
    ...(sandbox && { sandbox }),
    hooks: hooks ? [...before.hooks, hooks] : before.hooks,
    rules: rules ? [...before.rules, { layer, permissions: rules.json, ...rules.at }] : before.rules,
    aliases: new Map([...before.aliases, ...aliasesOf(root, layer)]),
    limits: { ...before.limits, ...limitsOf(root, layer) },
    disabled: new Map([...before.disabled, ...disabledOf(root, layer)]),
  });
}

function aliasesOf(root: MapNode, layer: ConfigLayer): [string, Setting<string>][] {
  return nodesOf(entry(root, "model-aliases")?.value).flatMap(({ key, keyAt, value }) => {
    const text = textOf(value);
    return text === undefined ? [] : [[key, { value: text, layer, at: keyAt }] as [string, Setting<string>]];
  });
}

function limitsOf(root: MapNode, layer: ConfigLayer): Config["limits"] {
  const node = entry(root, "limits")?.value;
  const map = asMap(node);
  const values = Object.entries(readLimits(node, () => undefined));
  return Object.fromEntries(
    values.map(([kind, value]) => [kind, { value, layer, at: (map && entry(map, kind)?.keyAt) ?? root.at }]),
  );
}

function disabledOf(root: MapNode, layer: ConfigLayer): [string, Setting<true>][] {
  const agents = asMap(entry(root, "agents")?.value);
  return itemsOf(agents && entry(agents, "disable")?.value).flatMap((item) => {
    const name = textOf(item);
    return name === undefined ? [] : [[name, { value: true, layer, at: item.at }] as [string, Setting<true>]];
  });
}

function catalogOver(
  before: Config,
  root: MapNode,
  shown: string,
): Result<Pick<Config, "catalog" | "keys">, ConfigProblem> {
  let { providers, models } = before.catalog;
  const keys = [...before.keys];
  const value = toJson(root);
  const config = isJsonObject(value) ? value : {};
  for (const [name, given] of entriesOf(config, "providers")) {
    const known = Object.hasOwn(providers, name) ? providers[name] : undefined;
    const endpoint = endpointOf(given, known);
    if (endpoint === undefined) return err(withoutAddress(shown, name));
    providers = { ...providers, [name]: endpoint };
    if (endpoint.key !== undefined) keys.push(endpoint.key);
  }
  for (const [id, given] of entriesOf(config, "models")) {
    const known = Object.hasOwn(models, id) ? models[id] : undefined;
    models = { ...models, [id]: { ...known, ...knownModelOf(given) } };
  }
  return ok({ catalog: { providers, models }, keys });
}

async function readOne({ file, text, shown }: ConfigSource): Promise<Result<MapNode, ConfigProblem>> {
  const read = file === undefined ? ok(new TextEncoder().encode(text ?? "")) : await readSource(file);
  if (!read.ok) {
    const { code, message } = read.error;
    return err({ diagnostics: [problemAt(shown, code, `cannot be read: ${message}`)], sources: new Map() });
  }
  const sources = new Map([[shown, new TextDecoder().decode(read.value)]]);
  const document = parseSource(read.value, shown);
  if (!document.ok) return err({ diagnostics: document.error, sources });
  const root = asMap(document.value.root);
  if (root === undefined) return err({ diagnostics: [problemAt(shown, "FLOW2005", "is no mapping of keys")], sources });
  const problems = createReport();
  const issues = checkConfig(toJson(root));
  reportIssues(root, issues, problems.report);
  readLimits(entry(root, "limits")?.value, problems.report);
  for (const { problem, path: at } of issues) {
    if (problem.kind !== "name") continue;
    const what =
      at[0] === "models" ? "a model is named `provider/name`" : "a provider is named in small letters, digits and `-`";
    problems.report("FLOW3001", nodeAt(root, [...at, problem.key])?.keyAt ?? root.at, what);
  }
  await reportRules(root, problems.report);
  for (const { value } of nodesOf(entry(root, "providers")?.value)) {
    const address = asMap(value) && entry(asMap(value) ?? root, "base-url")?.value;
    const unusable = address && addressProblem(textOf(address) ?? "http://x");
    if (address && unusable !== undefined) problems.report("FLOW3001", address.at, `\`base-url\` ${unusable}`);
  }
  for (const { key, keyAt } of nodesOf(entry(root, "providers")?.value))
    if (key === "scripted")
      problems.report("FLOW3001", keyAt, `the provider \`scripted\` stands for files: ${ofScripts}`);
  for (const { key, keyAt } of nodesOf(entry(root, "models")?.value))
    if (key.startsWith("scripted/")) problems.report("FLOW3001", keyAt, `\`${key}\` is a file: ${ofScripts}`);
  const diagnostics = problems.sorted();
  return diagnostics.length > 0 ? err({ diagnostics, sources }) : ok(root);
}

/** Rules nobody can read would otherwise be missed in silence. One that never holds may speak of a workflow's own tool. */
async function reportRules(root: MapNode, report: Report): Promise<void> {
  const block = entry(root, "permissions")?.value;
  if (block?.kind !== "map") return;
  const [{ checkRules }, { canonicalToolName, languageTools }, { isSecretFile }] = await Promise.all([
    import("../permissions/index.ts"),
    import("../tools/names.ts"),
    import("../tools/secret-files.ts"),
  ]);
  const vocabulary = { tools: [...languageTools.keys()], canonical: canonicalToolName, isSecret: isSecretFile };
  for (const { path, message, suggestion, broken } of checkRules(
    { layer: "project", permissions: toJson(block) },
    vocabulary,
  )) {
    if (!broken) continue;
    const at = nodeAt(block, path);
    report("FLOW6008", at?.keyAt ?? at?.node.at ?? block.at, message, suggestion === undefined ? {} : { suggestion });
  }
}

const ofScripts = "`price`, `window` and `max-output` of a script stand in the script itself";

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
