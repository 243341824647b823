import type { JsonObject } from "../model/json.ts";
import { own } from "../model/json.ts";
import type { StopReason } from "../model/message.ts";
import type { ModelDelta } from "../model/ports.ts";
import { countAt, objectAt, objectsAt, textAt } from "./fields.ts";
import { CallPieces } from "./openai-calls.ts";
import type { Tokens } from "./usage.ts";

/** Fields in which servers of this protocol send reasoning; the first that is not empty is taken. */
const reasoningFields: readonly string[] = ["reasoning_content", "reasoning", "reasoning_text"];

/**
 * Reads the chunks of one reply. What a server of this protocol may leave out or spell differently is settled here, and
 * nothing in a chunk is trusted to have the type it should have.
 */
export class ChunkReader {
  readonly #calls: CallPieces;
  #finish = "";
  #refused = false;
  #usage: Tokens | undefined;
  #text: string[] = [];

  /** `idPrefix` makes ids for calls that came without one. */
  constructor(idPrefix: string) {
    this.#calls = new CallPieces(idPrefix);
  }

  /** How the reply ended; undefined while no finish reason came. Whether there are calls is decided by the calls. */
  get stop(): StopReason | undefined {
    if (this.#finish === "") return undefined;
    if (this.#refused || this.#finish === "content_filter") return "refusal";
    if (this.#finish === "length") return "length";
    if (this.#calls.count > 0) return "calls";
    return ["stop", "tool_calls", "function_call"].includes(this.#finish) ? "end" : "unknown";
  }

  /** Undefined when the server reported none that can be true. */
  get usage(): Tokens | undefined {
    return this.#usage;
  }

  /** The finish reason as it came. */
  get finish(): string {
    return this.#finish;
  }

  /** Everything received, for an estimate. */
  get text(): string {
    return this.#text.join("");
  }

  /** The deltas of one chunk. Only the first choice counts; more are never asked for. */
  read(chunk: JsonObject): ModelDelta[] {
    const choice = objectsAt(chunk, "choices").find((each) => (own(each, "index") ?? 0) === 0) ?? {};
    this.#finish = textAt(choice, "finish_reason") || this.#finish;
    for (const place of [chunk, choice, objectAt(chunk, "x_groq")])
      this.#usage = usageOf(objectAt(place, "usage")) ?? this.#usage;
    const delta = objectAt(choice, "delta");
    const deltas = [...thinkingIn(delta), ...this.#textsIn(delta)];
    for (const part of objectsAt(delta, "tool_calls")) deltas.push(...this.#calls.read(part));
    return this.#counted(deltas);
  }

  /** The deltas still owed when the stream has ended: calls whose name never came. */
  flush(): ModelDelta[] {
    return this.#counted(this.#calls.flush());
  }

  #textsIn(delta: JsonObject): ModelDelta[] {
    const content = textAt(delta, "content");
    const refusal = textAt(delta, "refusal");
    this.#refused ||= refusal !== "";
    return [content, refusal].filter((text) => text !== "").map((text) => ({ type: "text", text }));
  }

  #counted(deltas: ModelDelta[]): ModelDelta[] {
    for (const delta of deltas) if ("text" in delta) this.#text.push(delta.text);
    return deltas;
  }
}

function thinkingIn(delta: JsonObject): ModelDelta[] {
  const field = reasoningFields.find((name) => textAt(delta, name) !== "");
  return field === undefined ? [] : [{ type: "thinking", text: textAt(delta, field), field }];
}

/** The parts of {@link Tokens} are disjoint, the server's are not. Numbers that cannot be true make it undefined. */
function usageOf(usage: JsonObject): Tokens | undefined {
  const prompt = countAt(usage, "prompt_tokens");
  const output = countAt(usage, "completion_tokens");
  if (prompt === undefined || output === undefined || prompt + output === 0) return undefined;
  const details = objectAt(usage, "prompt_tokens_details");
  const cached = countAt(details, "cached_tokens") ?? countAt(usage, "prompt_cache_hit_tokens") ?? 0;
  const cacheRead = Math.min(cached, prompt);
  const thought = countAt(objectAt(usage, "completion_tokens_details"), "reasoning_tokens") ?? 0;
  const reasoning = Math.min(thought, output);
  return { input: prompt - cacheRead, output, cacheRead, cacheWrite: 0, reasoning };
}
