import type { Block, Message } from "../model/message.ts";
import type { ModelFacts } from "../model/ports.ts";
import { hints } from "./hints.ts";

/** Shares of what fits: from the first on old results go, from the second on the middle is summarised. */
export const trimShare: number = 0.65;
export const summaryShare: number = 0.8;
/** Messages at the end that keep their results whole. */
export const untouched: number = 6;
/** Characters of a result that is kept however old it is. */
const keptResult = 200;
/** Messages at the end that a summary never takes in, at least and at most. */
const fewestKept = 4;
const mostKept = 10;
/** How often the border of a summary is moved outward, so that no call is parted from its result. */
const tries = 20;
/** Bytes of a token on average: the middle of prose, code and other scripts. */
const bytesPerToken = 4;
const tokensPerImage = 1_500;
const tokensPerMessage = 4;

/**
 * Tokens the messages of a request may have: the window without the longest reply. Undefined where the model's window is
 * not known: then nothing is fitted before the provider says that it is too much.
 */
export function inputLimit({ window, maxOutput }: ModelFacts, asked: number | undefined): number | undefined {
  if (window === undefined) return undefined;
  // A reply as long as the whole window is said of models that share it freely.
  const reply = Math.min(asked ?? maxOutput ?? 0, Math.floor(window / 2));
  return window - reply;
}

/** What the messages have in tokens, about. */
export function tokensOf(messages: readonly Message[]): number {
  let sum = 0;
  for (const { blocks } of messages) sum += tokensPerMessage + tokensOfBlocks(blocks);
  return sum;
}

function tokensOfBlocks(blocks: readonly Block[]): number {
  let sum = 0;
  for (const block of blocks) {
    if (block.type === "image") sum += tokensPerImage;
    else if (block.type === "result") sum += tokensPerMessage + tokensOfBlocks(block.blocks);
    else {
      const text = block.type === "call" ? block.raw + block.name : block.text;
      sum += Math.ceil(Buffer.byteLength(text) / bytesPerToken);
    }
  }
  return sum;
}

/**
 * The messages with old results as placeholders and old thinking dropped, before the index `upTo`. The rest are the same
 * objects. Twice is as once.
 */
export function trimmed(messages: readonly Message[], upTo: number): Message[] {
  return messages.map((message, index) => (index < upTo ? trimmedMessage(message) : message));
}

function trimmedMessage(message: Message): Message {
  if (message.role === "system" || message.blocks.every(({ type }) => type === "text" || type === "call"))
    return message;
  const blocks = message.blocks.flatMap((block): readonly Block[] => {
    if (block.type === "thinking") return [];
    return [block.type === "result" ? trimmedResult(block) : block];
  });
  if (blocks.length === message.blocks.length && blocks.every((block, index) => block === message.blocks[index]))
    return message;
  return { ...message, blocks: blocks.length === 0 ? [{ type: "text", text: "(thinking)" }] : blocks };
}

function trimmedResult(result: Extract<Block, { type: "result" }>): Block {
  const text = result.blocks.map((block) => (block.type === "text" ? block.text : "")).join("\n");
  const hasImage = result.blocks.some(({ type }) => type === "image");
  if (text.length <= keptResult && !hasImage) return result;
  // Where a result was cut before, its last line says where the whole of it lies.
  const whole = text.lastIndexOf("\n[cut: ");
  const place = whole === -1 || text.length - whole > 400 ? "" : text.slice(whole);
  return { ...result, blocks: [{ type: "text", text: hints.leftOut(text.length) + place }] };
}

/** A stretch of a conversation: `from` is inside, `to` is not. */
export interface Stretch {
  readonly from: number;
  readonly to: number;
}

/**
 * What a summary may stand for: everything between the first real user message (with what was said before it) and the
 * last messages. Those are a fifth of all, four to ten of them, but not so many that `room` tokens do not hold them.
 * Undefined when there is nothing in between that would be shorter for it.
 */
export function middle(messages: readonly Message[], room: number): Stretch | undefined {
  const from = messages.findIndex(isRealUser) + 1;
  const last = Math.min(mostKept, Math.max(fewestKept, Math.floor(messages.length / 5)));
  let to = Math.max(from, messages.length - last);
  let tokens = tokensOf(messages.slice(to));
  while (tokens > room && messages.length - to > fewestKept) tokens -= tokensOf(messages.slice(to, ++to));
  for (let tried = 0; tried < tries && to > from && isParted(messages, to); tried++) to--;
  return to - from < 2 ? undefined : { from, to };
}

/** What a person or a workflow wrote, and no results of tools. */
export function isRealUser({ role, blocks }: Message): boolean {
  return role === "user" && blocks.some(({ type }) => type === "text") && !blocks.some(({ type }) => type === "result");
}

/** Whether a border before `index` has calls on one side and their results on the other. */
function isParted(messages: readonly Message[], index: number): boolean {
  return messages[index]?.blocks.some(({ type }) => type === "result") === true;
}

/** The conversation with `message` in the place of the stretch. */
export function summarised(messages: readonly Message[], { from, to }: Stretch, message: Message): Message[] {
  return withoutOrphans([...messages.slice(0, from), message, ...messages.slice(to)]);
}

/**
 * Calls without a result in the message behind them, and results without their call in the message before, become text:
 * no provider takes either. The calls of the last message may still be answered.
 */
export function withoutOrphans(messages: readonly Message[]): Message[] {
  return messages.map((message, index) => {
    const next = index === messages.length - 1 ? undefined : ids(messages[index + 1], "result");
    const before = ids(messages[index - 1], "call");
    const isOrphan = (block: Block): boolean =>
      (block.type === "call" && next?.has(block.id) === false) || (block.type === "result" && !before.has(block.id));
    return message.blocks.some(isOrphan)
      ? { ...message, blocks: message.blocks.map((block) => (isOrphan(block) ? asText(block) : block)) }
      : message;
  });
}

function ids(message: Message | undefined, type: "call" | "result"): ReadonlySet<string> {
  const found = new Set<string>();
  for (const block of message?.blocks ?? [])
    if ((block.type === "call" || block.type === "result") && block.type === type) found.add(block.id);
  return found;
}

function asText(block: Block): Block {
  if (block.type === "call") return { type: "text", text: hints.orphanCall(block.name, block.raw) };
  const inner = block.type === "result" ? block.blocks : [];
  const text = inner.map((one) => (one.type === "text" ? one.text : "")).join("\n");
  return { type: "text", text: hints.orphanResult(text) };
}

const findingMark = "Finding: ";

/** Lines in which the agent wrote down what it found, each once, in the order they were written first. */
export function findingsIn(messages: readonly Message[]): string[] {
  const found = new Set<string>();
  for (const { role, blocks } of messages) {
    for (const block of blocks) {
      if (block.type !== "text" || (role === "user" && !block.text.startsWith(hints.pins))) continue;
      for (const line of block.text.split("\n")) if (line.startsWith(findingMark)) found.add(line);
    }
  }
  return [...found];
}

const resultInTranscript = 2_000;

/** The messages as plain text for whoever summarises them, at most `limit` tokens: the middle is cut out of a longer one. */
export function transcript(messages: readonly Message[], limit: number): string {
  const text = messages.map(({ role, blocks }) => blocks.map((block) => line(role, block)).join("")).join("");
  const most = Math.max(1_000, limit * bytesPerToken);
  if (Buffer.byteLength(text) <= most) return text;
  // One unit is one byte at the least; where it is more, the half is always enough.
  const side = Math.floor((most * text.length) / Buffer.byteLength(text) / 2);
  return `${text.slice(0, side)}\n${hints.leftOut(text.length - 2 * side)}\n${text.slice(-side)}`;
}

function line(role: Message["role"], block: Block): string {
  switch (block.type) {
    case "text":
      return `${role}: ${block.text}\n`;
    case "thinking":
      return "";
    case "image":
      return `${role}: (an image)\n`;
    case "call":
      return `${role} calls ${block.name}: ${block.raw.slice(0, resultInTranscript)}\n`;
    case "result": {
      const text = block.blocks.map((inner) => (inner.type === "text" ? inner.text : "(an image)")).join("\n");
      return `${block.error === true ? "error" : "result"}: ${text.slice(0, resultInTranscript)}\n`;
    }
  }
}
