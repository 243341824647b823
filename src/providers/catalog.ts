import type { Json, JsonObject } from "../model/json.ts";
import { isJsonObject, own } from "../model/json.ts";
import { nearest } from "../model/names.ts";
import type { Result } from "../model/result.ts";
import { err, ok } from "../model/result.ts";

/** What `model:` names: a script, a provider's model, or a model on a server of the user's own. */
export type ModelChoice =
  /** `path` is relative to the workflow file. */
  | { readonly provider: "scripted"; readonly id: string; readonly path: string }
  /** `name` is the model's name on the wire; `key` the variable that holds the key, absent when none is sent. */
  | {
      readonly provider: "openai";
      readonly id: string;
      readonly name: string;
      readonly baseUrl: string;
      readonly key?: string;
      /** True for a server named by `base-url`: no ambient key is sent to it, and it gets the plainest dialect. */
      readonly custom: boolean;
    };

interface Endpoint {
  readonly baseUrl: string;
  readonly key: string;
}

/** Providers a `provider/model` id may name today. */
const endpoints: { readonly [provider: string]: Endpoint } = {
  openai: { baseUrl: "https://api.openai.com/v1", key: "OPENAI_API_KEY" },
};

/** Providers that are designed and not built; their servers that speak OpenAI's protocol are reachable by `base-url`. */
const laterProviders: readonly string[] = [
  "anthropic",
  "deepseek",
  "groq",
  "zhipu",
  "qwen",
  "moonshot",
  "ollama",
  "vllm",
  "lmstudio",
  "openrouter",
];

/** Variables that hold a provider's key: no step, tool or agent's shell ever sees them. */
export const providerKeyNames: readonly string[] = [
  "ANTHROPIC_API_KEY",
  "ANTHROPIC_AUTH_TOKEN",
  "DASHSCOPE_API_KEY",
  "DEEPSEEK_API_KEY",
  "GROQ_API_KEY",
  "LMSTUDIO_API_KEY",
  "MOONSHOT_API_KEY",
  "OLLAMA_API_KEY",
  "OPENAI_ADMIN_KEY",
  "OPENAI_API_KEY",
  "OPENROUTER_API_KEY",
  "ZAI_API_KEY",
  "ZHIPU_API_KEY",
];

/** Reads a `model:` value: `provider/model`, `scripted/PATH`, or `{ id, base-url, key: ENV_NAME }`. */
export function parseModel(model: Json): Result<ModelChoice, string> {
  if (typeof model === "string") return parseModelId(model);
  if (!isJsonObject(model)) return err("a model is `provider/name`, or a map of `id`, `base-url` and `key`");
  const id = own(model, "id");
  const baseUrl = own(model, "base-url");
  const key = own(model, "key");
  if (typeof id !== "string" || id === "") return err("`model.id` is missing");
  if (baseUrl === undefined) return key === undefined ? parseModelId(id) : err("`model.key` needs `model.base-url`");
  if (typeof baseUrl !== "string" || !isHttpUrl(baseUrl)) return err("`model.base-url` is not an http or https URL");
  if (key !== undefined && (typeof key !== "string" || !/^[A-Za-z_][A-Za-z0-9_]*$/.test(key)))
    return err("`model.key` is the name of an environment variable, never the key itself");
  return ok({ provider: "openai", id, name: id, baseUrl, custom: true, ...(key === undefined ? {} : { key }) });
}

/** `openai/gpt-4o-mini`, `scripted/replies.yaml`. The error says what is known, and what was probably meant. */
export function parseModelId(id: string): Result<ModelChoice, string> {
  const slash = id.indexOf("/");
  const provider = id.slice(0, Math.max(slash, 0));
  const name = id.slice(slash + 1);
  if (provider === "" || name === "")
    return err(`\`${id}\` is not a model: write \`provider/name\`, such as \`openai/gpt-4o-mini\``);
  if (provider === "scripted") return ok({ provider, id, path: name });
  const endpoint = Object.hasOwn(endpoints, provider) ? endpoints[provider] : undefined;
  if (endpoint !== undefined) return ok({ provider: "openai", id, name, custom: false, ...endpoint });
  if (laterProviders.includes(provider))
    return err(
      `the provider \`${provider}\` is not yet available; its OpenAI-compatible server is reachable with \`model: { id, base-url, key }\``,
    );
  const known = ["scripted", ...Object.keys(endpoints)];
  const near = nearest(provider, [...known, ...laterProviders]);
  return err(
    `there is no provider \`${provider}\`${near === undefined ? `; known: ${known.join(", ")}` : `; did you mean \`${near}\`?`}`,
  );
}

function isHttpUrl(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}

/**
 * The key to send, from the one variable the choice names; undefined when it names none (a script, a server without
 * a key). The error is the name of the variable that is not set.
 */
export function keyFor(
  choice: ModelChoice,
  env: { readonly [name: string]: string | undefined },
): Result<string | undefined, string> {
  if (choice.provider === "scripted" || choice.key === undefined) return ok(undefined);
  const key = Object.hasOwn(env, choice.key) ? env[choice.key]?.trim() : undefined;
  return key === undefined || key === "" ? err(choice.key) : ok(key);
}

/** The variables that models take their keys from (`model.key`), wherever in a plan or in inputs such a model is. */
export function namedKeys(root: Json): string[] {
  const found: string[] = [];
  const open: Json[] = [root];
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    if (typeof value !== "object" || value === null) continue;
    for (const inner of Object.values(value)) if (typeof inner === "object" && inner !== null) open.push(inner);
    if (!isJsonObject(value)) continue;
    const model = own(value, "type") === "map" ? constants(own(value, "entries")) : value;
    const key = Object.hasOwn(model, "base-url") ? own(model, "key") : undefined;
    if (typeof key === "string") found.push(key);
  }
  return found;
}

/** The constant entries of a model that has expressions beside them. */
function constants(entries: Json | undefined): JsonObject {
  const list = Array.isArray(entries) ? entries.filter(isJsonObject) : [];
  return Object.fromEntries(
    list.flatMap(({ name, value }) =>
      typeof name === "string" ? [[name, isJsonObject(value) ? (own(value, "json") ?? null) : null]] : [],
    ),
  );
}
