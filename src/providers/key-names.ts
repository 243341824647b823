import type { Json, JsonObject } from "../model/json.ts";
import { isJsonObject, own } from "../model/json.ts";

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

/** The variables that models take their keys from (`model.key`), wherever in a plan or in inputs such a model is. */
export function namedKeys(root: Json): string[] {
  const found: string[] = [];
  const open: Json[] = [root];
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    if (typeof value !== "object" || value === null) continue;
    for (const key of Object.keys(value)) {
      const inner = (value as JsonObject)[key];
      if (typeof inner === "object" && inner !== null) open.push(inner);
    }
    if (!isJsonObject(value)) continue;
    const key = keyOf(value);
    if (typeof key === "string") found.push(key);
  }
  return found;
}

/** The `key` beside a `base-url`, in a model or among the constant entries of one that has expressions beside them. */
function keyOf(value: JsonObject): Json | undefined {
  if (own(value, "type") !== "map") return Object.hasOwn(value, "base-url") ? own(value, "key") : undefined;
  const written = own(value, "entries");
  const entries = Array.isArray(written) ? written.filter(isJsonObject) : [];
  if (!entries.some((entry) => own(entry, "name") === "base-url")) return undefined;
  const key = own(entries.find((entry) => own(entry, "name") === "key") ?? {}, "value");
  return key !== undefined && isJsonObject(key) ? own(key, "json") : undefined;
}
