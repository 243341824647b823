import type { Json, JsonObject } from "../model/json.ts";
import { isJsonObject, own } from "../model/json.ts";
import type { StopReason } from "../model/message.ts";
import type { ModelDelta } from "../model/ports.ts";
import { redactedField } from "./anthropic-request.ts";
import { countAt, objectAt, textAt } from "./fields.ts";
import type { Tokens } from "./usage.ts";

interface OpenBlock {
  /** As the server will get it back if it pauses. */
  readonly content: JsonObject;
  /** Place of a call in the message. */
  readonly call: number | undefined;
  input: string;
}

/** Reads the events of one reply, which after a pause may go on in a second stream. */
export class EventReader {
  readonly #done: JsonObject[] = [];
  readonly #text: string[] = [];
  readonly #idPrefix: string;
  #open = new Map<number, OpenBlock>();
  #calls = 0;
  #stop = "";
  #stopped = false;
  #before: Tokens | undefined;
  #usage: Tokens | undefined;

  /** `idPrefix` makes ids for calls that came without one. */
  constructor(idPrefix: string) {
    this.#idPrefix = idPrefix;
  }

  /** True once the server has said that the message is complete. */
  get isWhole(): boolean {
    return this.#stopped && this.#stop !== "" && this.#open.size === 0;
  }

  /** The stop reason as it came; empty while none has. */
  get finish(): string {
    return this.#stop;
  }

  /** Whether there are calls is decided by the calls. */
  get stop(): StopReason | "paused" | "overflow" {
    switch (this.#stop) {
      case "refusal":
        return "refusal";
      case "max_tokens":
        return "length";
      case "model_context_window_exceeded":
        return "overflow";
      case "pause_turn":
        return this.#calls > 0 ? "calls" : "paused";
      case "end_turn":
      case "stop_sequence":
      case "tool_use":
        return this.#calls > 0 ? "calls" : "end";
      default:
        return this.#calls > 0 ? "calls" : "unknown";
    }
  }

  /** Of the reply that is read, without those before its pauses. */
  get latest(): Tokens | undefined {
    return this.#usage;
  }

  get usage(): Tokens | undefined {
    return this.#before === undefined || this.#usage === undefined ? this.#usage : sum(this.#before, this.#usage);
  }

  /** Everything received, for an estimate. */
  get text(): string {
    return this.#text.join("");
  }

  /** The content so far; the next events go on with the same message. */
  pause(): readonly JsonObject[] {
    this.#before = this.usage;
    this.#usage = undefined;
    this.#stop = "";
    this.#stopped = false;
    return this.#done;
  }

  read(event: JsonObject): ModelDelta[] {
    switch (textAt(event, "type")) {
      case "message_start":
        this.#count(objectAt(objectAt(event, "message"), "usage"));
        return [];
      case "content_block_start":
        return this.#begin(countAt(event, "index") ?? 0, objectAt(event, "content_block"));
      case "content_block_delta":
        return this.#grow(this.#open.get(countAt(event, "index") ?? 0), objectAt(event, "delta"));
      case "content_block_stop":
        return this.#end(countAt(event, "index") ?? 0);
      case "message_delta":
        this.#stop = textAt(objectAt(event, "delta"), "stop_reason") || this.#stop;
        this.#count(objectAt(event, "usage"));
        return [];
      case "message_stop":
        this.#stopped = true;
        return [];
      default:
        return [];
    }
  }

  #begin(index: number, block: JsonObject): ModelDelta[] {
    const isCall = textAt(block, "type") === "tool_use";
    const call = isCall ? this.#calls++ : undefined;
    this.#open.set(index, { content: { ...block }, call, input: "" });
    switch (textAt(block, "type")) {
      case "tool_use": {
        const id = textAt(block, "id") || `${this.#idPrefix}_${call ?? 0}`;
        return [{ type: "call", index: call ?? 0, id, name: textAt(block, "name") }];
      }
      case "redacted_thinking":
        return [{ type: "thinking", text: "", field: redactedField, signature: textAt(block, "data") }];
      case "text":
      case "thinking":
        return this.#said(textAt(block, "type"), textAt(block, "text") || textAt(block, "thinking"));
      default:
        return [];
    }
  }

  #grow(block: OpenBlock | undefined, delta: JsonObject): ModelDelta[] {
    if (block === undefined) return [];
    switch (textAt(delta, "type")) {
      case "text_delta":
        append(block.content, "text", textAt(delta, "text"));
        return this.#said("text", textAt(delta, "text"));
      case "thinking_delta":
        append(block.content, "thinking", textAt(delta, "thinking"));
        return this.#said("thinking", textAt(delta, "thinking"));
      case "signature_delta":
        block.content["signature"] = textAt(delta, "signature");
        return [{ type: "thinking", text: "", signature: textAt(delta, "signature") }];
      case "input_json_delta": {
        const text = textAt(delta, "partial_json");
        block.input += text;
        this.#text.push(text);
        return block.call === undefined || text === "" ? [] : [{ type: "args", index: block.call, text }];
      }
      default:
        return [];
    }
  }

  #said(type: string, text: string): ModelDelta[] {
    if (text === "") return [];
    this.#text.push(text);
    return [type === "thinking" ? { type, text } : { type: "text", text }];
  }

  #end(index: number): ModelDelta[] {
    const block = this.#open.get(index);
    if (block === undefined) return [];
    this.#open.delete(index);
    this.#done.push(block.content);
    if (block.input !== "") {
      block.content["input"] = parsed(block.input);
      return [];
    }
    // Without any piece the arguments are those of the beginning: none, most of the time.
    if (block.call === undefined) return [];
    const args = JSON.stringify(objectAt(block.content, "input"));
    return [{ type: "args", index: block.call, text: args }];
  }

  /** Counts come twice, the later ones complete. */
  #count(usage: JsonObject): void {
    const before = this.#usage;
    const input = countAt(usage, "input_tokens") ?? before?.input;
    const output = countAt(usage, "output_tokens") ?? before?.output;
    if (input === undefined || output === undefined) return;
    this.#usage = {
      input,
      output,
      cacheRead: countAt(usage, "cache_read_input_tokens") ?? before?.cacheRead ?? 0,
      cacheWrite: countAt(usage, "cache_creation_input_tokens") ?? before?.cacheWrite ?? 0,
      reasoning: Math.min(
        output,
        countAt(objectAt(usage, "output_tokens_details"), "thinking_tokens") ?? before?.reasoning ?? 0,
      ),
    };
  }
}

function append(content: JsonObject, key: string, text: string): void {
  const before = own(content, key);
  content[key] = typeof before === "string" ? before + text : text;
}

/** Only to be sent back as it came; what does not parse was not whole. */
function parsed(text: string): Json {
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}

function sum(a: Tokens, b: Tokens): Tokens {
  return {
    input: a.input + b.input,
    output: a.output + b.output,
    cacheRead: a.cacheRead + b.cacheRead,
    cacheWrite: a.cacheWrite + b.cacheWrite,
    reasoning: a.reasoning + b.reasoning,
  };
}
