import { estimateTokenCount } from "tokenx";
import type { Usage } from "../model/message.ts";
import type { ModelFacts, ModelRequest } from "../model/ports.ts";

/** Usage with its disjoint parts, before it has a price. */
export type Tokens = Omit<Usage, "cost" | "estimated">;

/** Tokens one image may be worth, whatever its bytes. */
const imageTokens = 1_500;

export function priced(tokens: Tokens, { cost }: ModelFacts, estimated: boolean): Usage {
  return { ...tokens, estimated, cost: cost(tokens) };
}

/** Usage nobody reported, from the texts that were sent and came back. */
export function estimateTokens(request: ModelRequest, reply: string): Tokens {
  let images = 0;
  const sent = JSON.stringify([request.messages, request.tools], (key, value: unknown) => {
    if (key !== "data" || typeof value !== "string") return value;
    images++;
    return "";
  });
  const input = estimateTokenCount(sent) + images * imageTokens;
  return { input, output: estimateTokenCount(reply), cacheRead: 0, cacheWrite: 0, reasoning: 0 };
}

/** True when a server took more than its model can hold: it dropped a part of it in silence. */
export function isOverWindow({ input, cacheRead, cacheWrite }: Tokens, { window }: ModelFacts): boolean {
  return window !== undefined && input + cacheRead + cacheWrite > window;
}
