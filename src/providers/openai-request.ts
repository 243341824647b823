import type { JsonObject } from "../model/json.ts";
import { type Block, type Message, textOf } from "../model/message.ts";
import type { ModelRequest } from "../model/ports.ts";
import { unreachable } from "../model/result.ts";
import type { Quirks } from "./endpoints.ts";
import { WireIds } from "./wire-ids.ts";

export interface Dialect {
  /** The model's name on the wire. */
  readonly model: string;
  readonly quirks: Quirks;
}

export interface WireRequest {
  readonly body: JsonObject;
  /** What the request asks for and this server cannot be asked. */
  readonly warnings: readonly string[];
}

/** The longest id of a call that OpenAI takes. */
const longestId = 40;

/** The body of a streaming Chat Completions call. Equal requests give equal bodies. */
export function requestBody(request: ModelRequest, { model, quirks }: Dialect): WireRequest {
  const warnings: string[] = [];
  const tools = request.tools.map(({ name, description, parameters }): JsonObject => ({
    type: "function",
    function: { name, description, parameters },
  }));
  const hasTools = tools.length > 0;
  const isRequired = hasTools && request.toolChoice === "required" && quirks.requiredCalls;
  const writer = new MessageWriter(request.model, quirks, warnings);
  const most = request.payableOutput ?? request.maxOutput;
  const body: JsonObject = {
    model,
    messages: request.messages.flatMap((message) => writer.write(message)),
    ...(hasTools && { tools }),
    ...(hasTools && quirks.toolStream === true && { tool_stream: true }),
    ...(isRequired && { tool_choice: "required" }),
    ...(request.temperature !== undefined && { temperature: request.temperature }),
    ...(request.topP !== undefined && { top_p: request.topP }),
    ...(most !== undefined && { [quirks.maxTokens]: most }),
    ...effortFields(request.effort, quirks, warnings),
    // Beside open tools several servers would make the model answer at once instead of calling any.
    ...(request.answerSchema !== undefined && !hasTools && responseFormat(request.answerSchema)),
    stream: true,
    ...(quirks.usageOption && { stream_options: { include_usage: true } }),
    ...request.options,
  };
  return { body, warnings };
}

function responseFormat(schema: JsonObject): JsonObject {
  return { response_format: { type: "json_schema", json_schema: { name: "answer", schema } } };
}

function effortFields(effort: string | undefined, quirks: Quirks, warnings: string[]): JsonObject {
  if (effort === undefined) return {};
  const isOn = effort !== "none";
  const thinking = { thinking: { type: isOn ? "enabled" : "disabled" } };
  switch (quirks.effort) {
    case "reasoning_effort":
      return { reasoning_effort: effort };
    case "reasoning":
      return { reasoning: { effort } };
    case "thinking":
      return thinking;
    case "thinking+effort":
      return isOn ? { ...thinking, reasoning_effort: isLow(effort) ? "high" : "max" } : thinking;
    case "enable_thinking":
      return { enable_thinking: isOn };
    case "none":
      warnings.push(`\`effort: ${effort}\` cannot be asked of this provider and is ignored`);
      return {};
    default:
      return unreachable(quirks.effort);
  }
}

/** A server that knows only two degrees gets the lower one for what is not the most. */
function isLow(effort: string): boolean {
  return effort !== "max" && effort !== "xhigh";
}

class MessageWriter {
  readonly #model: string;
  readonly #quirks: Quirks;
  readonly #warnings: string[];
  readonly #ids = new WireIds(longestId);

  /** `model` as the conversation names it: only its own thinking is sent back. */
  constructor(model: string, quirks: Quirks, warnings: string[]) {
    this.#model = model;
    this.#quirks = quirks;
    this.#warnings = warnings;
  }

  write({ role, blocks }: Message): JsonObject[] {
    switch (role) {
      case "system":
        return [{ role: this.#quirks.system, content: textOf(blocks) }];
      case "user":
        return this.#user(blocks);
      case "assistant":
        return [this.#assistant(blocks)];
      default:
        return unreachable(role);
    }
  }

  /**
   * Results are messages of their own here and must follow the calls at once; everything else of the same message comes
   * after them, and so do images, which a result of this protocol cannot hold.
   */
  #user(blocks: readonly Block[]): JsonObject[] {
    const messages: JsonObject[] = [];
    const images: JsonObject[] = [];
    for (const block of blocks) {
      if (block.type === "image") images.push(...this.#image(block));
      if (block.type !== "result") continue;
      const text = textOf(block.blocks);
      const inside = block.blocks.flatMap((inner) => (inner.type === "image" ? this.#image(inner) : []));
      images.push(...inside);
      const shown = text === "" && inside.length > 0 ? "(the image follows)" : text;
      messages.push({
        role: "tool",
        tool_call_id: this.#ids.result(block),
        content: block.error === true ? `Error: ${shown}` : shown,
      });
    }
    const text = textOf(blocks);
    if (images.length > 0)
      messages.push({ role: "user", content: [...(text === "" ? [] : [{ type: "text", text }]), ...images] });
    else if (text !== "" || messages.length === 0) messages.push({ role: "user", content: text });
    return messages;
  }

  #image({ mediaType, data }: Extract<Block, { type: "image" }>): JsonObject[] {
    if (this.#quirks.images) return [{ type: "image_url", image_url: { url: `data:${mediaType};base64,${data}` } }];
    const warning = "this provider takes no images: they are left out";
    if (!this.#warnings.includes(warning)) this.#warnings.push(warning);
    return [{ type: "text", text: "(an image that this model cannot be shown)" }];
  }

  #assistant(blocks: readonly Block[]): JsonObject {
    const calls = blocks.flatMap((block): JsonObject[] => {
      if (block.type !== "call") return [];
      // Several servers parse the arguments of earlier calls and refuse a request whose history does not parse.
      const args = block.args === null ? "{}" : block.raw;
      return [{ id: this.#ids.call(block), type: "function", function: { name: block.name, arguments: args } }];
    });
    const reasoning: JsonObject = {};
    for (const block of blocks) {
      if (block.type !== "thinking" || block.field === undefined) continue;
      if ((block.model ?? this.#model) !== this.#model) continue;
      const before = reasoning[block.field];
      reasoning[block.field] = typeof before === "string" ? before + block.text : block.text;
    }
    const text = textOf(blocks);
    const content = text === "" && calls.length > 0 ? null : text;
    return { role: "assistant", content, ...reasoning, ...(calls.length > 0 && { tool_calls: calls }) };
  }
}
