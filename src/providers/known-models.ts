/** What is known of a model beside its name. Prices are US dollars for a million tokens. */
export interface KnownModel {
  /** Tokens, input and output together. */
  readonly window?: number;
  readonly maxOutput?: number;
  readonly jsonSchema?: boolean;
  /** Of the Anthropic protocol: how much to think is said as a word, or only as a number of tokens. */
  readonly thinking?: "adaptive" | "budget";
  readonly price?: Price;
}

export interface Price {
  readonly input: number;
  readonly output: number;
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
  /** Every price is `times` this much for a request of more than `above` input tokens. */
  readonly long?: { readonly above: number; readonly times: number };
}

const thousand = 1_000;
const million = 1_000_000;
const deepseekFlash: KnownModel = {
  window: million,
  maxOutput: 384 * thousand,
  price: { input: 0.14, output: 0.28, cacheRead: 0.0028 },
};

/**
 * Models as models.dev listed them in July 2026: before the price package, which is older for some of them. A model
 * that is in neither works; its price is unknown.
 */
export const knownModels: { readonly [id: string]: KnownModel } = {
  "deepseek/deepseek-chat": deepseekFlash,
  "deepseek/deepseek-reasoner": deepseekFlash,
  "deepseek/deepseek-v4-flash": deepseekFlash,
  "deepseek/deepseek-v4-pro": {
    window: million,
    maxOutput: 384 * thousand,
    price: { input: 0.435, output: 0.87, cacheRead: 0.0036 },
  },
  "openai/gpt-4o": { window: 128 * thousand, maxOutput: 16_384, price: { input: 2.5, output: 10, cacheRead: 1.25 } },
  "openai/gpt-4o-mini": {
    window: 128 * thousand,
    maxOutput: 16_384,
    price: { input: 0.15, output: 0.6, cacheRead: 0.075 },
  },
  "openai/gpt-5": { window: 400 * thousand, maxOutput: 128 * thousand },
  "openai/gpt-5-nano": { window: 400 * thousand, maxOutput: 128 * thousand },
  "openai/gpt-5-mini": {
    window: 400 * thousand,
    maxOutput: 128 * thousand,
    price: { input: 0.25, output: 2, cacheRead: 0.025 },
  },
  "openai/gpt-5.4": {
    window: 1_050 * thousand,
    maxOutput: 128 * thousand,
    price: { input: 2.5, output: 15, cacheRead: 0.25, long: { above: 272 * thousand, times: 2 } },
  },
  "anthropic/claude-sonnet-4-6": {
    window: million,
    maxOutput: 64 * thousand,
    thinking: "adaptive",
    price: { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 },
  },
  "anthropic/claude-sonnet-5": {
    window: million,
    maxOutput: 128 * thousand,
    thinking: "adaptive",
    price: { input: 2, output: 10, cacheRead: 0.2, cacheWrite: 2.5 },
  },
  "anthropic/claude-opus-4-8": {
    window: million,
    maxOutput: 128 * thousand,
    thinking: "adaptive",
    price: { input: 5, output: 25, cacheRead: 0.5, cacheWrite: 6.25 },
  },
  "anthropic/claude-haiku-4-5": {
    window: 200 * thousand,
    maxOutput: 64 * thousand,
    thinking: "budget",
    price: { input: 1, output: 5, cacheRead: 0.1, cacheWrite: 1.25 },
  },
  "groq/llama-3.3-70b-versatile": {
    window: 131_072,
    maxOutput: 32_768,
    price: { input: 0.59, output: 0.79 },
  },
  "groq/openai/gpt-oss-20b": { window: 131_072, maxOutput: 65_536, jsonSchema: true },
  "groq/openai/gpt-oss-120b": { window: 131_072, maxOutput: 65_536, jsonSchema: true },
  "zhipu/glm-4.7": { window: 204_800, price: { input: 0.6, output: 2.2, cacheRead: 0.11 } },
  "zhipu/glm-5.2": { window: million, maxOutput: 131_072, price: { input: 1.4, output: 4.4, cacheRead: 0.26 } },
  "qwen/qwen-max": { window: 32_768, maxOutput: 8_192, price: { input: 1.6, output: 6.4 } },
  "qwen/qwen3-coder-plus": { window: million, maxOutput: 65_536, price: { input: 1, output: 5 } },
  "qwen/qwen3-max": { window: 262_144, maxOutput: 65_536, price: { input: 1.2, output: 6 } },
  "moonshot/kimi-k2.6": { window: 262_144, price: { input: 0.95, output: 4, cacheRead: 0.16 } },
  "moonshot/kimi-k2-thinking": { window: 262_144, price: { input: 0.6, output: 2.5, cacheRead: 0.15 } },
};
