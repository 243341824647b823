import type { Vocabulary } from "../compile/dialects/index.ts";
import type { ModelProblem } from "../compile/checks/check.ts";
import { canonicalToolName } from "../tools/names.ts";
import type { Config } from "./config.ts";

/** What agent files of other programs call a model, and what is asked here; `model-aliases` of a configuration goes before. */
export const builtInAliases: { readonly [word: string]: string } = {
  sonnet: "anthropic/claude-sonnet-5",
  opus: "anthropic/claude-opus-4-8",
  haiku: "anthropic/claude-haiku-4-5",
};

/** What names in agent files of other programs mean here. */
export function foreignNames(aliases: Config["aliases"], modelProblem: ModelProblem): Omit<Vocabulary, "tools"> {
  return {
    canonical: canonicalToolName,
    async modelOf(name, provider) {
      const word = name.replace(/\[[^\]]*\]$/, "");
      const alias = aliases.get(name)?.value ?? aliases.get(word)?.value ?? builtIn(word);
      if (alias !== undefined) return alias;
      const id = provider !== undefined && word.startsWith("claude-") ? `${provider}/${word}` : word;
      const problem = id.includes("/") ? await modelProblem(id) : { message: "" };
      return problem === undefined || "suggestion" in problem ? id : undefined;
    },
  };
}

function builtIn(word: string): string | undefined {
  return Object.hasOwn(builtInAliases, word) ? builtInAliases[word] : undefined;
}
