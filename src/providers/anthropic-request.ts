import type { JsonObject } from "../model/json.ts";
import { isJsonObject } from "../model/json.ts";
import type { Block, Message } from "../model/message.ts";
import type { ModelFacts, ModelRequest } from "../model/ports.ts";
import type { WireRequest } from "./openai-request.ts";
import type { KnownModel } from "./known-models.ts";
import { WireIds } from "./wire-ids.ts";

export interface AnthropicDialect {
  /** The model's name on the wire. */
  readonly model: string;
  readonly facts: ModelFacts;
  readonly thinking?: KnownModel["thinking"];
}

/** The longest id of a call that the server takes. */
const longestId = 64;
/** The protocol wants a number; without one of the agent's own a reply may be this long, if the model can. */
const defaultMaxTokens = 32_000;
const cautiousMaxTokens = 8_192;
/** Marks of what may be cached: the instructions with the tools before them, and the last two messages. Four are allowed. */
const cache: JsonObject = { cache_control: { type: "ephemeral" } };
const markedMessages = 2;

/** Tokens of thinking where a model takes only a number. */
const thinkingBudgets: { readonly [effort: string]: number } = {
  minimal: 1_024,
  low: 2_048,
  medium: 8_192,
  high: 16_384,
  xhigh: 24_576,
  max: 32_768,
};

/** The body of a streaming Messages call. Equal requests give equal bodies. `paused`: content of a turn to go on with. */
export function messagesBody(
  request: ModelRequest,
  { model, facts, thinking }: AnthropicDialect,
  paused: readonly JsonObject[] = [],
): WireRequest {
  const warnings: string[] = [];
  const { maxOutput = cautiousMaxTokens } = facts;
  const maxTokens = request.payableOutput ?? request.maxOutput ?? Math.min(maxOutput, defaultMaxTokens);
  const effort = effortFields(request.effort, { maxTokens, thinking });
  const isThinking = Object.hasOwn(effort, "thinking");
  const tools = request.tools.map(({ name, description, parameters }): JsonObject => ({
    name,
    description,
    input_schema: parameters,
  }));
  const system = request.messages.flatMap((message) => (message.role === "system" ? textBlocks(message.blocks) : []));
  const markedTools = system.length === 0 ? markLast(tools) : tools;
  const body: JsonObject = {
    model,
    max_tokens: maxTokens,
    ...(system.length > 0 && { system: markLast(system) }),
    messages: wireMessages(request, paused),
    ...(tools.length > 0 && { tools: markedTools }),
    ...(tools.length > 0 && toolChoice(request, isThinking, warnings)),
    ...sampling(request, isThinking, warnings),
    ...effort,
    ...outputConfig(request, { thinking }),
    stream: true,
    ...request.options,
  };
  return { body, warnings };
}

function toolChoice({ toolChoice: choice }: ModelRequest, isThinking: boolean, warnings: string[]): JsonObject {
  if (choice !== "required") return {};
  if (!isThinking) return { tool_choice: { type: "any" } };
  warnings.push("a model that thinks cannot be made to call a tool: it is asked to in words only");
  return {};
}

function sampling({ temperature, topP }: ModelRequest, isThinking: boolean, warnings: string[]): JsonObject {
  if (isThinking && (temperature ?? 1) !== 1)
    warnings.push("`temperature` cannot be set for a model that thinks and is ignored");
  return {
    ...(temperature !== undefined && !isThinking && { temperature: Math.min(temperature, 1) }),
    ...(topP !== undefined && { top_p: topP }),
  };
}

interface EffortSetting {
  readonly maxTokens: number;
  readonly thinking: KnownModel["thinking"];
}

/** How thinking is turned on; how much of it, where the model takes a word, is a field of `output_config`. */
function effortFields(effort: string | undefined, { maxTokens, thinking }: EffortSetting): JsonObject {
  if (effort === undefined || effort === "none") return {};
  if (thinking !== "budget") return { thinking: { type: "adaptive" } };
  // The thinking is part of what `max_tokens` allows, and the answer needs room too.
  const budget = Math.min(thinkingBudgets[effort] ?? 8_192, Math.floor(maxTokens / 2));
  return budget < 1_024 ? {} : { thinking: { type: "enabled", budget_tokens: budget } };
}

function outputConfig(
  { effort, answerSchema, tools }: ModelRequest,
  { thinking }: Pick<EffortSetting, "thinking">,
): JsonObject {
  const word = effort === "minimal" ? "low" : effort;
  const config: JsonObject = {
    ...(word !== undefined && word !== "none" && thinking !== "budget" && { effort: word }),
    ...(answerSchema !== undefined && tools.length === 0 && { format: { type: "json_schema", schema: answerSchema } }),
  };
  return Object.keys(config).length === 0 ? {} : { output_config: config };
}

/** The turns, by turns: neighbours of one role are one message, so that all results of a turn stand together. */
function wireMessages(request: ModelRequest, paused: readonly JsonObject[]): JsonObject[] {
  const ids = new WireIds(longestId);
  const turns: { role: Exclude<Message["role"], "system">; content: JsonObject[] }[] = [];
  const add = (role: Exclude<Message["role"], "system">, content: readonly JsonObject[]): void => {
    if (content.length === 0) return;
    const last = turns.at(-1);
    if (last?.role === role) last.content.push(...content);
    else turns.push({ role, content: [...content] });
  };
  for (const { role, blocks } of request.messages) {
    if (role === "user") add(role, userContent(blocks, ids));
    if (role === "assistant") add(role, assistantContent(blocks, request.model, ids));
  }
  const marked = new Set(turns.filter(({ role }) => role === "user").slice(-markedMessages));
  const messages = turns.map((turn): JsonObject => {
    const { role, content } = turn;
    return { role, content: marked.has(turn) ? markLast(content) : content };
  });
  return paused.length === 0 ? messages : [...messages, { role: "assistant", content: [...paused] }];
}

/** Results first: the protocol wants them at the beginning of the message after their calls. */
function userContent(blocks: readonly Block[], ids: WireIds): JsonObject[] {
  const results = blocks.flatMap((block): JsonObject[] => {
    if (block.type !== "result") return [];
    const content = [...textBlocks(block.blocks), ...imageBlocks(block.blocks)];
    return [
      {
        type: "tool_result",
        tool_use_id: ids.result(block),
        ...(content.length > 0 && { content }),
        ...(block.error === true && { is_error: true }),
      },
    ];
  });
  return [...results, ...imageBlocks(blocks), ...textBlocks(blocks)];
}

/** Thinking goes back exactly as it came, and only to the model it is of; without a signature it is not the protocol's. */
function assistantContent(blocks: readonly Block[], model: string, ids: WireIds): JsonObject[] {
  return blocks.flatMap((block): JsonObject[] => {
    switch (block.type) {
      case "text":
        return textBlocks([block]);
      case "thinking": {
        const { text, signature, field } = block;
        if (signature === undefined || (block.model ?? model) !== model) return [];
        if (field === redactedField) return [{ type: "redacted_thinking", data: signature }];
        return [{ type: "thinking", thinking: text, signature }];
      }
      case "call": {
        const input = isJsonObject(block.args) ? block.args : {};
        return [{ type: "tool_use", id: ids.call(block), name: block.name, input }];
      }
      default:
        return [];
    }
  });
}

/** Marks thinking that the server sent encrypted: its data stands where a signature does. */
export const redactedField = "redacted_thinking";

/** Text that is only blank is refused by the server. */
function textBlocks(blocks: readonly Block[]): JsonObject[] {
  return blocks.flatMap((block) =>
    block.type === "text" && block.text.trim() !== "" ? [{ type: "text", text: block.text }] : [],
  );
}

function imageBlocks(blocks: readonly Block[]): JsonObject[] {
  return blocks.flatMap((block): JsonObject[] =>
    block.type === "image"
      ? [{ type: "image", source: { type: "base64", media_type: block.mediaType, data: block.data } }]
      : [],
  );
}

function markLast(blocks: readonly JsonObject[]): JsonObject[] {
  return blocks.map((block, index) => (index === blocks.length - 1 ? { ...block, ...cache } : block));
}
