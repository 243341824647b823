import { describe, expect, it } from "vitest";
import { type EnvironmentSources, stepEnvironment } from "../../src/process/environment.ts";

function environment(sources: Partial<EnvironmentSources>): Record<string, string> {
  return stepEnvironment({ inherited: {}, providerKeys: [], secrets: [], own: {}, ...sources });
}

describe("the environment of a step", () => {
  it("is what flow inherited", () => {
    const inherited = { PATH: "/bin", HOME: "/root", EMPTY: "", GONE: undefined };
    expect(environment({ inherited })).toEqual({ PATH: "/bin", HOME: "/root", EMPTY: "" });
  });

  it.each([
    ["OPENAI_API_KEY"],
    ["ANTHROPIC_API_KEY"],
    ["DEEPSEEK_API_KEY"],
    ["GROQ_API_KEY"],
    ["ZHIPU_API_KEY"],
    ["ZAI_API_KEY"],
    ["DASHSCOPE_API_KEY"],
    ["MOONSHOT_API_KEY"],
    ["OPENROUTER_API_KEY"],
    ["LMSTUDIO_API_KEY"],
    ["OLLAMA_API_KEY"],
    ["GEMINI_API_KEY"],
    ["GOOGLE_API_KEY"],
    ["MISTRAL_API_KEY"],
    ["openai_api_key"],
    ["GITHUB_TOKEN"],
    ["GH_TOKEN"],
    ["ACTIONS_RUNTIME_TOKEN"],
    ["ACTIONS_ID_TOKEN_REQUEST_TOKEN"],
    ["ACTIONS_ID_TOKEN_REQUEST_URL"],
    ["INPUT_GITHUB-TOKEN"],
    ["CI_JOB_TOKEN"],
    ["SYSTEM_ACCESSTOKEN"],
    ["NPM_TOKEN"],
    ["NODE_AUTH_TOKEN"],
    ["MY_OWN_KEY"],
    ["A_SECRET"],
  ])("has no %s", (name) => {
    const sources = { providerKeys: ["MY_OWN_KEY"], secrets: ["A_SECRET"] };
    expect(environment({ ...sources, inherited: { [name]: "x", PATH: "/bin" } })).toEqual({ PATH: "/bin" });
    expect(environment({ ...sources, inherited: { [name]: "x" }, own: { [name]: "given" } })).toEqual({
      [name]: "given",
    });
  });

  it("keeps names that only look alike", () => {
    const inherited = { GITHUB_SHA: "1", TOKENIZERS_PARALLELISM: "2", MY_API_KEY: "3", ACTIONS_CACHE_URL: "4" };
    expect(environment({ inherited })).toEqual(inherited);
  });

  it("is overridden by the step's own, names like __proto__ included", () => {
    const own = Object.fromEntries([
      ["__proto__", "a"],
      ["PATH", "/own"],
    ]);
    const result = environment({ inherited: { PATH: "/bin" }, own });
    expect(Object.entries(result)).toEqual([
      ["PATH", "/own"],
      ["__proto__", "a"],
    ]);
    expect(Object.getPrototypeOf(result)).toBe(Object.prototype);
  });
});
