import { asMap, entriesOf as nodesOf, itemsOf, textOf } from "../compile/read/nodes.ts";
import { readLimits } from "../compile/read/agent.ts";
import { readPermissions } from "../compile/read/permissions.ts";
import type { ServerShape } from "../compile/server-shape.ts";
import type { Span } from "../model/diagnostic.ts";
import { isJsonObject, type Json, type JsonObject, own } from "../model/json.ts";
import type { Limits } from "../model/plan.ts";
import { err, ok, type Result } from "../model/result.ts";
import type { Block, Profile } from "../permissions/index.ts";
import { builtInCatalog, type Catalog } from "../providers/catalog.ts";
import { entry, type MapNode, toJson } from "../source/document.ts";
import { endpointOf, knownModelOf } from "./config-catalog.ts";
import { type ConfigProblem, problemAt, readOne } from "./config-read.ts";
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
  /** MCP servers that agents and steps of every workflow may name. */
  readonly servers: ReadonlyMap<string, Setting<ServerShape>>;
  /** What in them has no effect, with the texts they were read from. */
  readonly warnings: ConfigProblem;
}

/** A value, and who says so. */
export interface Setting<T> {
  readonly value: T;
  readonly layer: ConfigLayer;
  readonly at: Span;
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
  servers: new Map(),
  warnings: { diagnostics: [], sources: new Map() },
};

/** Reads every configuration there is, one over the other. */
export async function readConfig(place: ConfigPlace): Promise<Result<Config, ConfigProblem>> {
  let config = emptyConfig;
  for (const source of configSources(place)) {
    const read = await readOne(source);
    if (!read.ok) return read;
    const next = over(config, read.value.root, source);
    if (!next.ok) return next;
    const { servers, warnings, sources } = read.value;
    config = {
      ...next.value,
      servers: serversOver(config, servers, source),
      warnings: {
        diagnostics: [...config.warnings.diagnostics, ...warnings],
        sources: new Map([...config.warnings.sources, ...sources]),
      },
    };
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

function serversOver(
  { servers }: Config,
  found: ReadonlyMap<string, ServerShape & { readonly at: Span }>,
  { layer }: ConfigSource,
): Config["servers"] {
  const settings = [...found].map(([name, { at, ...value }]) => [name, { value, layer, at }] as const);
  return new Map([...servers, ...settings]);
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

function withoutAddress(file: string, name: string): ConfigProblem {
  const message = `names the provider \`${name}\` without a \`base-url\`, and no built-in one has that name`;
  return { diagnostics: [problemAt(file, "FLOW2003", message)], sources: new Map() };
}

function entriesOf(config: JsonObject, key: string): [string, JsonObject][] {
  const value = own(config, key);
  const entries = isJsonObject(value) ? Object.entries(value) : [];
  return entries.flatMap(([name, inner]) => (isJsonObject(inner) ? [[name, inner] as [string, JsonObject]] : []));
}
