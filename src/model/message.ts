import type { Json } from "./json.ts";

/** A piece of a message. `raw` is the argument text as the model wrote it; `args` is null when it did not parse. */
export type Block =
  | { readonly type: "text"; readonly text: string }
  /** `model`: whose thinking it is; no other model is shown it. */
  | {
      readonly type: "thinking";
      readonly text: string;
      readonly signature?: string;
      readonly field?: string;
      readonly model?: string;
    }
  /** `data` is base64. */
  | { readonly type: "image"; readonly mediaType: string; readonly data: string }
  | { readonly type: "call"; readonly id: string; readonly name: string; readonly args: Json; readonly raw: string }
  | { readonly type: "result"; readonly id: string; readonly blocks: readonly Block[]; readonly error?: boolean };

export interface Message {
  readonly role: "system" | "user" | "assistant";
  readonly blocks: readonly Block[];
}

/** Tokens of one or many calls; the parts are disjoint except `reasoning`, which is part of `output`. */
export interface Usage {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly reasoning: number;
  /** True when any part was estimated because the server sent none. */
  readonly estimated: boolean;
  /** US dollars; null when the price is unknown (never 0 for unknown). */
  readonly cost: number | null;
}

export const noUsage: Usage = {
  input: 0,
  output: 0,
  cacheRead: 0,
  cacheWrite: 0,
  reasoning: 0,
  estimated: false,
  cost: 0,
};

export function addUsage(a: Usage, b: Usage): Usage {
  return {
    input: a.input + b.input,
    output: a.output + b.output,
    cacheRead: a.cacheRead + b.cacheRead,
    cacheWrite: a.cacheWrite + b.cacheWrite,
    reasoning: a.reasoning + b.reasoning,
    estimated: a.estimated || b.estimated,
    cost: a.cost === null || b.cost === null ? null : a.cost + b.cost,
  };
}

export type StopReason = "end" | "calls" | "length" | "refusal" | "unknown";

/** The one truthful end of an agent run. */
export const agentOutcomes = [
  "done",
  "max_turns",
  "budget",
  "timeout",
  "denied",
  "invalid_output",
  "check",
  "stuck",
  "refused",
  "overflow",
  "rate_limit",
  "provider_error",
  "tool_error",
  "cancelled",
] as const;
export type AgentOutcome = (typeof agentOutcomes)[number];

/** The text of blocks, one behind the other. */
export function textOf(blocks: readonly Block[]): string {
  return blocks.map((block) => (block.type === "text" ? block.text : "")).join("");
}
