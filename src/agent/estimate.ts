import type { Block, Message, Usage } from "../model/message.ts";
import type { ModelRequest } from "../model/ports.ts";

/**
 * Bytes of a token at the least. Prose and code have three to five, hexadecimal digits two; a guess that is too high only
 * sets more aside for the time of a call, one that is too low would let the call overrun its limit.
 */
const bytesPerToken = 2;
const tokensPerImage = 2000;
/** What servers add around each message or tool, and to a request that has tools. */
const tokensPerPart = 16;
const tokensForTools = 512;

/** A request whose size the server told, to measure the next one by. */
export interface Measured {
  readonly model: string;
  readonly messages: readonly Message[];
  /** What the server counted for all that was sent. */
  readonly tokens: number;
}

/** The most tokens a request may count, by its size; exact for as much of it as the server counted before. */
export function mostInput(request: ModelRequest, before: Measured | undefined): number {
  const { model, messages, tools, answerSchema } = request;
  // Another model counts other tokens.
  const isLonger = before?.model === model && before.messages.every((message, index) => message === messages[index]);
  const added = isLonger ? messages.slice(before.messages.length) : messages;
  const sent = added.reduce((sum, message) => sum + messageTokens(message), 0);
  if (isLonger) return before.tokens + sent;
  const schemas = tools.reduce((sum, tool) => sum + tokensPerPart + textTokens(JSON.stringify(tool)), 0);
  const answer = answerSchema === undefined ? 0 : textTokens(JSON.stringify(answerSchema));
  return sent + schemas + answer + (tools.length > 0 ? tokensForTools : 0);
}

/** What the server counted for a request, once it has told; an estimate measures nothing. */
export function measured({ model, messages }: ModelRequest, usage: Usage): Measured | undefined {
  if (usage.estimated) return undefined;
  return { model, messages, tokens: usage.input + usage.cacheRead + usage.cacheWrite };
}

export function textTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / bytesPerToken);
}

/** The most tokens a message may count. */
export function messageTokens({ blocks }: Message): number {
  return tokensPerPart + blocks.reduce((sum, block) => sum + blockTokens(block), 0);
}

function blockTokens(block: Block): number {
  switch (block.type) {
    case "text":
      return textTokens(block.text);
    case "thinking":
      return textTokens(block.text) + textTokens(block.signature ?? "");
    case "image":
      return tokensPerImage;
    case "call":
      return tokensPerPart + textTokens(block.name) + textTokens(block.raw);
    case "result":
      return tokensPerPart + block.blocks.reduce((sum, inner) => sum + blockTokens(inner), 0);
  }
}
