import type { Usage } from "../model/message.ts";
import type { ModelFacts } from "../model/ports.ts";
import type { ServerModel } from "./catalog.ts";
import type { Price } from "./known-models.ts";

type Tokens = Omit<Usage, "cost" | "estimated">;

/** The price package's names for providers whose models it prices. */
const pricedAs: { readonly [provider: string]: string } = {
  openai: "openai",
  anthropic: "anthropic",
  deepseek: "deepseek",
  groq: "groq",
  zhipu: "zhipuai",
  moonshot: "moonshotai",
  openrouter: "openrouter",
};

/**
 * What is known of a model: from the workflow, the configuration and our table first, then from the price package, which
 * is loaded only where those have no price and never asks the network. A model on the user's own machine costs nothing.
 */
export async function factsOf({ provider, name, known, local, quirks }: ServerModel): Promise<ModelFacts> {
  const { window, maxOutput, price, jsonSchema = quirks.jsonSchema } = known;
  const listed = price === undefined && !local ? await listedFacts(provider, name) : undefined;
  const ceiling = window ?? listed?.window;
  return {
    ...(ceiling !== undefined && { window: ceiling }),
    ...(maxOutput !== undefined && { maxOutput }),
    jsonSchema,
    ...(quirks.refusedAtRoot !== undefined && { refusedAtRoot: quirks.refusedAtRoot }),
    cost: price === undefined ? (local ? () => 0 : (listed?.cost ?? (() => null))) : (tokens) => costAt(price, tokens),
  };
}

const million = 1_000_000;

/** A price for the cache that is not given is the price of plain input. */
export function costAt({ input, output, cacheRead = input, cacheWrite = input, long }: Price, tokens: Tokens): number {
  const sent = tokens.input + tokens.cacheRead + tokens.cacheWrite;
  const sum =
    tokens.input * input + tokens.cacheRead * cacheRead + tokens.cacheWrite * cacheWrite + tokens.output * output;
  return ((long !== undefined && sent > long.above ? long.times : 1) * sum) / million;
}

async function listedFacts(
  provider: string,
  name: string,
): Promise<(Pick<ModelFacts, "cost"> & { readonly window?: number }) | undefined> {
  const providerId = Object.hasOwn(pricedAs, provider) ? pricedAs[provider] : undefined;
  if (providerId === undefined) return undefined;
  const { calcPrice } = await import("@pydantic/genai-prices");
  const priceOf = ({ input, output, cacheRead, cacheWrite }: Tokens): ReturnType<typeof calcPrice> =>
    calcPrice(
      {
        input_tokens: input + cacheRead + cacheWrite,
        cache_read_tokens: cacheRead,
        cache_write_tokens: cacheWrite,
        output_tokens: output,
      },
      name,
      { providerId },
    );
  const found = priceOf({ input: 1, output: 1, cacheRead: 0, cacheWrite: 0, reasoning: 0 });
  if (found === null) return undefined;
  const window = found.model.context_window;
  return { ...(window !== undefined && { window }), cost: (tokens) => priceOf(tokens)?.total_price ?? null };
}
