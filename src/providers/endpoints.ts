/** How the servers behind `provider/model` ids differ. Data: what to do about a quirk stands in the two protocols. */
export interface Endpoint {
  readonly protocol: "openai" | "anthropic";
  readonly baseUrl: string;
  /** Variable that holds the key; absent: no key is needed, and none is sent. */
  readonly key?: string;
  /** Its own key is sent when it is set, and not missed when it is not. */
  readonly keyOptional?: boolean;
  /** Runs on a machine of the user's: tokens cost nothing. */
  readonly local?: boolean;
  /** Calls at once, for all agents of a run. */
  readonly parallel: number;
  readonly quirks: Quirks;
}

export interface Quirks {
  readonly maxTokens: "max_completion_tokens" | "max_tokens";
  /** The role of instructions. */
  readonly system: "developer" | "system";
  /** Whether `stream_options: { include_usage }` is understood. */
  readonly usageOption: boolean;
  /** Whether the model can be made to call some tool. */
  readonly requiredCalls: boolean;
  /** Whether `response_format` with a schema is honoured, where the model says nothing else. */
  readonly jsonSchema: boolean;
  /**
   * How `effort` is said: `reasoning_effort` as text; `reasoning` as `{ effort }`; `thinking` as `{ type }`, on or off;
   * `thinking+effort` as both; `enable_thinking` as true or false; `none`: it cannot be said.
   */
  readonly effort: "reasoning_effort" | "reasoning" | "thinking" | "thinking+effort" | "enable_thinking" | "none";
  /** Keywords of JSON Schema that are refused at the root of a tool's parameters. */
  readonly refusedAtRoot?: readonly string[];
  /** Whether messages may hold images. */
  readonly images: boolean;
  /** Sent when tools are open: arguments come in pieces only then. */
  readonly toolStream?: boolean;
}

/** What a server that nobody knows most likely understands. */
export const plainQuirks: Quirks = {
  maxTokens: "max_tokens",
  system: "system",
  usageOption: true,
  requiredCalls: true,
  jsonSchema: false,
  effort: "reasoning_effort",
  images: true,
};

const plain = { protocol: "openai", parallel: 64, quirks: plainQuirks } as const;
const onThisMachine = { ...plain, local: true, parallel: 4 } as const;

export const endpoints: { readonly [provider: string]: Endpoint } = {
  openai: {
    ...plain,
    baseUrl: "https://api.openai.com/v1",
    key: "OPENAI_API_KEY",
    quirks: {
      ...plainQuirks,
      maxTokens: "max_completion_tokens",
      system: "developer",
      jsonSchema: true,
      refusedAtRoot: ["anyOf", "oneOf", "allOf", "enum", "not"],
    },
  },
  anthropic: {
    ...plain,
    protocol: "anthropic",
    baseUrl: "https://api.anthropic.com",
    key: "ANTHROPIC_API_KEY",
    quirks: { ...plainQuirks, jsonSchema: true, refusedAtRoot: ["anyOf", "oneOf", "allOf"] },
  },
  deepseek: {
    ...plain,
    baseUrl: "https://api.deepseek.com",
    key: "DEEPSEEK_API_KEY",
    quirks: { ...plainQuirks, effort: "thinking+effort", images: false },
  },
  // A schema is honoured by some of its models only, and refused with 400 by the others.
  groq: { ...plain, baseUrl: "https://api.groq.com/openai/v1", key: "GROQ_API_KEY" },
  zhipu: {
    ...plain,
    baseUrl: "https://open.bigmodel.cn/api/paas/v4",
    key: "ZHIPU_API_KEY",
    quirks: { ...plainQuirks, usageOption: false, requiredCalls: false, effort: "thinking", toolStream: true },
  },
  qwen: {
    ...plain,
    baseUrl: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
    key: "DASHSCOPE_API_KEY",
    quirks: { ...plainQuirks, requiredCalls: false, effort: "enable_thinking" },
  },
  moonshot: {
    ...plain,
    baseUrl: "https://api.moonshot.ai/v1",
    key: "MOONSHOT_API_KEY",
    quirks: { ...plainQuirks, effort: "thinking" },
  },
  openrouter: {
    ...plain,
    baseUrl: "https://openrouter.ai/api/v1",
    key: "OPENROUTER_API_KEY",
    quirks: { ...plainQuirks, effort: "reasoning" },
  },
  ollama: {
    ...onThisMachine,
    baseUrl: "http://localhost:11434/v1",
    key: "OLLAMA_API_KEY",
    keyOptional: true,
    quirks: { ...plainQuirks, requiredCalls: false, jsonSchema: true },
  },
  vllm: {
    ...onThisMachine,
    baseUrl: "http://localhost:8000/v1",
    parallel: 64,
    quirks: { ...plainQuirks, jsonSchema: true },
  },
  lmstudio: {
    ...onThisMachine,
    baseUrl: "http://127.0.0.1:1234/v1",
    key: "LMSTUDIO_API_KEY",
    keyOptional: true,
    quirks: { ...plainQuirks, jsonSchema: true, effort: "none" },
  },
};

/** Of a server named by `base-url` alone. */
export const customParallel = 256;
