import type { Usage } from "../model/message.ts";
import type { ModelRequest } from "../model/ports.ts";

/** Characters a token has on average, in English and in code. */
const charactersPerToken = 4;

/** Usage nobody reported: from the length of what was sent and of what came back. `cost` as for reported usage. */
export function estimateUsage(request: ModelRequest, reply: number, cost: number | null): Usage {
  const sent = JSON.stringify(request.messages).length + JSON.stringify(request.tools).length;
  const tokens = { input: Math.ceil(sent / charactersPerToken), output: Math.ceil(reply / charactersPerToken) };
  return { ...tokens, cacheRead: 0, cacheWrite: 0, reasoning: 0, estimated: true, cost };
}
