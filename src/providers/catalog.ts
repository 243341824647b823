import type { Json, JsonObject } from "../model/json.ts";
import { isJsonObject, own } from "../model/json.ts";
import { nearest } from "../model/names.ts";
import type { Result } from "../model/result.ts";
import { err, ok } from "../model/result.ts";
import { type Endpoint, type Quirks, customParallel, endpoints, plainQuirks } from "./endpoints.ts";
import { type KnownModel, type Price, knownModels } from "./known-models.ts";

/** Providers and models a workflow may name: the built-in tables, and what a configuration adds to them. */
export interface Catalog {
  readonly providers: { readonly [name: string]: Endpoint };
  /** By `provider/name`. */
  readonly models: { readonly [id: string]: KnownModel };
}

export const builtInCatalog: Catalog = { providers: endpoints, models: knownModels };

/** What `model:` names: a script, or a model on somebody's server. */
export type ModelChoice =
  /** `path` is relative to the workflow file. */
  { readonly kind: "scripted"; readonly id: string; readonly path: string } | ServerModel;

export interface ServerModel {
  readonly kind: "server";
  /** As the workflow names it, and the log. */
  readonly id: string;
  /** The provider's name in the catalog; `custom` for a server named by `base-url`. */
  readonly provider: string;
  /** The model's name on the wire. */
  readonly name: string;
  readonly protocol: Endpoint["protocol"];
  readonly baseUrl: string;
  /** The variable that holds the key; absent when none is sent. */
  readonly key?: string;
  readonly keyOptional: boolean;
  readonly local: boolean;
  readonly parallel: number;
  readonly quirks: Quirks;
  readonly known: KnownModel;
}

/** Reads a `model:` value: `provider/model`, `scripted/PATH`, or `{ id, base-url, key: ENV_NAME, price }`. */
export function parseModel(model: Json, catalog: Catalog = builtInCatalog): Result<ModelChoice, string> {
  if (typeof model === "string") return parseModelId(model, catalog);
  if (!isJsonObject(model)) return err("a model is `provider/name`, or a map of `id`, `base-url` and `key`");
  const id = own(model, "id");
  const baseUrl = own(model, "base-url");
  const key = own(model, "key");
  const written = priceOf(own(model, "price"));
  if (typeof id !== "string" || id === "") return err("`model.id` is missing");
  if (baseUrl === undefined) {
    if (key !== undefined) return err("`model.key` needs `model.base-url`");
    const choice = parseModelId(id, catalog);
    if (!choice.ok || choice.value.kind === "scripted" || written === undefined) return choice;
    return ok({ ...choice.value, known: { ...choice.value.known, price: written } });
  }
  if (typeof baseUrl !== "string" || !isHttpUrl(baseUrl)) return err("`model.base-url` is not an http or https URL");
  const unusable = addressProblem(baseUrl);
  if (unusable !== undefined) return err(`\`model.base-url\` ${unusable}`);
  if (key !== undefined && (typeof key !== "string" || !/^[A-Za-z_][A-Za-z0-9_]*$/.test(key)))
    return err("`model.key` is the name of an environment variable, never the key itself");
  return ok({
    kind: "server",
    id,
    provider: "custom",
    name: id,
    protocol: "openai",
    baseUrl,
    ...(key !== undefined && { key }),
    keyOptional: false,
    local: false,
    parallel: customParallel,
    quirks: plainQuirks,
    known: written === undefined ? {} : { price: written },
  });
}

/** `openai/gpt-4o-mini`, `scripted/replies.yaml`. The error says what is known, and what was probably meant. */
function parseModelId(id: string, { providers, models }: Catalog): Result<ModelChoice, string> {
  const slash = id.indexOf("/");
  const provider = id.slice(0, Math.max(slash, 0));
  const name = id.slice(slash + 1);
  if (provider === "" || name === "")
    return err(`\`${id}\` is not a model: write \`provider/name\`, such as \`openai/gpt-4o-mini\``);
  if (provider === "scripted") return ok({ kind: "scripted", id, path: name });
  const endpoint = Object.hasOwn(providers, provider) ? providers[provider] : undefined;
  if (endpoint !== undefined) {
    const known = Object.hasOwn(models, id) ? models[id] : undefined;
    const { keyOptional = false, local = false, ...rest } = endpoint;
    return ok({ kind: "server", id, provider, name, ...rest, keyOptional, local, known: known ?? {} });
  }
  const names = ["scripted", ...Object.keys(providers)];
  const near = nearest(provider, names);
  return err(
    `there is no provider \`${provider}\`${near === undefined ? `; known: ${names.join(", ")}` : `; did you mean \`${near}\`?`}`,
  );
}

/** The listed model that somebody who wrote `id` probably meant: a name that differs by little, and is not newer. */
export function likelyModel(id: string, { models }: Catalog = builtInCatalog): string | undefined {
  if (Object.hasOwn(models, id)) return undefined;
  const near = nearest(id, Object.keys(models));
  // Names of models differ in their numbers: only a slip among letters is one.
  const digits = (text: string): string => text.replaceAll(/\D/g, "");
  return near !== undefined && digits(near) === digits(id) ? near : undefined;
}

/** A `price` as a workflow or a configuration gives it: US dollars for a million tokens. */
export function priceOf(value: Json | undefined): Price | undefined {
  if (!isJsonObject(value)) return undefined;
  const [input, output] = [amountAt(value, "input"), amountAt(value, "output")];
  if (input === undefined || output === undefined) return undefined;
  const cacheRead = amountAt(value, "cache-read");
  const cacheWrite = amountAt(value, "cache-write");
  return {
    input,
    output,
    ...(cacheRead !== undefined && { cacheRead }),
    ...(cacheWrite !== undefined && { cacheWrite }),
  };
}

function amountAt(object: JsonObject, key: string): number | undefined {
  const value = own(object, key);
  return typeof value === "number" && value >= 0 && value < Infinity ? value : undefined;
}

function isHttpUrl(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}

/** What keeps an http address from being asked; its password is never repeated. */
export function addressProblem(address: string): string | undefined {
  if (!URL.canParse(address)) return "is not an http or https URL";
  const { username, password } = new URL(address);
  if (username === "" && password === "") return undefined;
  return "holds a user or a password, which every reader of the file and of the log would see: name the variable that holds the key in `key`";
}

/**
 * The key to send, from the one variable the choice names; undefined when it names none (a script, a server without
 * a key). The error is the name of the variable that is not set.
 */
export function keyFor(
  choice: ModelChoice,
  env: { readonly [name: string]: string | undefined },
): Result<string | undefined, string> {
  if (choice.kind === "scripted" || choice.key === undefined) return ok(undefined);
  const key = Object.hasOwn(env, choice.key) ? env[choice.key]?.trim() : undefined;
  if (key !== undefined && key !== "") return ok(key);
  return choice.keyOptional ? ok(undefined) : err(choice.key);
}
