import type { JsonObject } from "../model/json.ts";
import type { Block, Message } from "../model/message.ts";
import type { ModelRequest } from "../model/ports.ts";
import { unreachable } from "../model/result.ts";

export interface Dialect {
  /** The model's name on the wire. */
  readonly model: string;
  /** OpenAI's own server renamed `max_tokens`; other servers know only the old name. */
  readonly maxTokensField: "max_completion_tokens" | "max_tokens";
}

/** The body of a streaming Chat Completions call. Equal requests give equal bodies. */
export function requestBody(request: ModelRequest, { model, maxTokensField }: Dialect): JsonObject {
  const tools = request.tools.map(({ name, description, parameters }): JsonObject => ({
    type: "function",
    function: { name, description, parameters },
  }));
  return {
    model,
    messages: request.messages.flatMap(wireMessages),
    ...(tools.length === 0 ? {} : { tools }),
    ...(request.toolChoice === "required" ? { tool_choice: "required" } : {}),
    ...(request.temperature === undefined ? {} : { temperature: request.temperature }),
    ...(request.topP === undefined ? {} : { top_p: request.topP }),
    ...(request.maxOutput === undefined ? {} : { [maxTokensField]: request.maxOutput }),
    ...(request.effort === undefined ? {} : { reasoning_effort: request.effort }),
    stream: true,
    stream_options: { include_usage: true },
  };
}

function wireMessages(message: Message): JsonObject[] {
  switch (message.role) {
    case "system":
      return [{ role: "system", content: textOf(message.blocks) }];
    case "user":
      return userMessages(message.blocks);
    case "assistant":
      return [assistantMessage(message.blocks)];
    default:
      return unreachable(message.role);
  }
}

/** Results are messages of their own here and must follow the calls at once; text of the same message comes after. */
function userMessages(blocks: readonly Block[]): JsonObject[] {
  const messages = blocks.flatMap((block): JsonObject[] => {
    if (block.type !== "result") return [];
    const text = textOf(block.blocks);
    return [{ role: "tool", tool_call_id: block.id, content: block.error === true ? `Error: ${text}` : text }];
  });
  const text = textOf(blocks);
  if (text !== "" || messages.length === 0) messages.push({ role: "user", content: text });
  return messages;
}

function assistantMessage(blocks: readonly Block[]): JsonObject {
  const calls = blocks.flatMap((block): JsonObject[] => {
    if (block.type !== "call") return [];
    // Several servers parse the arguments of earlier calls and refuse a request whose history does not parse.
    const args = block.args === null ? "{}" : block.raw;
    return [{ id: block.id, type: "function", function: { name: block.name, arguments: args } }];
  });
  const reasoning: JsonObject = {};
  for (const block of blocks) {
    if (block.type !== "thinking" || block.field === undefined) continue;
    const before = reasoning[block.field];
    reasoning[block.field] = typeof before === "string" ? before + block.text : block.text;
  }
  const text = textOf(blocks);
  const content = text === "" && calls.length > 0 ? null : text;
  return { role: "assistant", content, ...reasoning, ...(calls.length === 0 ? {} : { tool_calls: calls }) };
}

function textOf(blocks: readonly Block[]): string {
  return blocks.map((block) => (block.type === "text" ? block.text : "")).join("");
}
