/** Where a step's environment comes from; all names are those of environment variables. */
export interface EnvironmentSources {
  /** What flow itself was started with. */
  readonly inherited: Readonly<Record<string, string | undefined>>;
  /** Names that hold model providers' keys, beside the well-known ones. */
  readonly providerKeys: readonly string[];
  /** Declared secrets. */
  readonly secrets: readonly string[];
  /** The step's own `env`, which may hand it one of the above on purpose. */
  readonly own: Readonly<Record<string, string>>;
}

/** The environment of a step: inherited, minus provider keys, CI tokens and declared secrets, plus the step's own. */
export function stepEnvironment({ inherited, providerKeys, secrets, own }: EnvironmentSources): Record<string, string> {
  const withheld = new Set([...knownProviderKeys, ...knownTokens, ...providerKeys, ...secrets].map(upper));
  const environment = new Map<string, string>();
  for (const [name, value] of Object.entries(inherited)) {
    if (value !== undefined && !withheld.has(upper(name)) && !isRunnerToken(name)) environment.set(name, value);
  }
  for (const [name, value] of Object.entries(own)) environment.set(name, value);
  return Object.fromEntries(environment);
}

const knownProviderKeys = [
  "AI_GATEWAY_API_KEY",
  "ANTHROPIC_API_KEY",
  "ANTHROPIC_AUTH_TOKEN",
  "AZURE_API_KEY",
  "AZURE_OPENAI_API_KEY",
  "AWS_BEARER_TOKEN_BEDROCK",
  "CEREBRAS_API_KEY",
  "CLAUDE_CODE_OAUTH_TOKEN",
  "COHERE_API_KEY",
  "DASHSCOPE_API_KEY",
  "DEEPINFRA_API_KEY",
  "DEEPSEEK_API_KEY",
  "FIREWORKS_API_KEY",
  "GEMINI_API_KEY",
  "GOOGLE_API_KEY",
  "GOOGLE_GENERATIVE_AI_API_KEY",
  "GROQ_API_KEY",
  "HF_TOKEN",
  "LMSTUDIO_API_KEY",
  "MINIMAX_API_KEY",
  "MISTRAL_API_KEY",
  "MOONSHOT_API_KEY",
  "OLLAMA_API_KEY",
  "OPENAI_API_KEY",
  "OPENROUTER_API_KEY",
  "PERPLEXITY_API_KEY",
  "QWEN_API_KEY",
  "TOGETHER_API_KEY",
  "VLLM_API_KEY",
  "XAI_API_KEY",
  "ZAI_API_KEY",
  "ZHIPUAI_API_KEY",
  "ZHIPU_API_KEY",
];

const knownTokens = [
  "BITBUCKET_STEP_OIDC_TOKEN",
  "BUILDKITE_AGENT_ACCESS_TOKEN",
  "CIRCLE_OIDC_TOKEN",
  "CIRCLE_OIDC_TOKEN_V2",
  "CIRCLE_TOKEN",
  "CI_BUILD_TOKEN",
  "CI_DEPLOY_PASSWORD",
  "CI_JOB_JWT",
  "CI_JOB_JWT_V1",
  "CI_JOB_JWT_V2",
  "CI_JOB_TOKEN",
  "CI_REGISTRY_PASSWORD",
  "CI_REPOSITORY_URL",
  "GH_ENTERPRISE_TOKEN",
  "GH_TOKEN",
  "GITHUB_ENTERPRISE_TOKEN",
  "GITHUB_PAT",
  "GITHUB_TOKEN",
  "GITLAB_TOKEN",
  "NODE_AUTH_TOKEN",
  "NPM_TOKEN",
  "SYSTEM_ACCESSTOKEN",
];

/** What GitHub's runner hands to actions: its own service tokens, and inputs, `INPUT_GITHUB-TOKEN` for example. */
function isRunnerToken(name: string): boolean {
  const known = upper(name);
  if (known.startsWith("ACTIONS_ID_TOKEN_REQUEST_")) return true;
  return /^(ACTIONS|INPUT)_/.test(known) && known.endsWith("TOKEN");
}

/** Names differ in case only by mistake, and on some systems not at all. */
function upper(name: string): string {
  return name.toUpperCase();
}
