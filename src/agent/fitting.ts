import type { AgentEvent, TurnIds } from "../model/agent-event.ts";
import { askedAs } from "../model/ids.ts";
import type { Block, Message } from "../model/message.ts";
import { addUsage } from "../model/message.ts";
import type { ModelRequest } from "../model/ports.ts";
import type { Ending } from "./agent-result.ts";
import { haltedBy } from "./answer.ts";
import { type AgentRun, failed, noted, type Place, type State } from "./agent-run.ts";
import {
  findingsIn,
  inputLimit,
  middle,
  type Stretch,
  summarised,
  summaryShare,
  tokensOf,
  transcript,
  trimmed,
  trimShare,
  untouched,
} from "./context.ts";
import { hints, todoLines } from "./hints.ts";
import { askModel } from "./model-call.ts";
import { ModelChain } from "./model-chain.ts";
import { requestHash } from "./request.ts";

/** The name of the agent that summarises, by which a script gives its replies. */
export const compactAgent: string = "compact";
/** Share of what fits that a summary may take. */
const summaryRoom = 0.1;
const longestSummary = 4_096;
/** An estimate has to be this much over before a request is not even tried: the provider knows better. */
const surelyTooMuch = 1.25;

interface Fitting extends Place {
  readonly limit: number | null;
}

/** Makes the conversation shorter where it nears the model's window. An ending: it cannot be made to fit. */
export async function* fitContext(
  run: AgentRun,
  state: State,
  ids: TurnIds,
): AsyncGenerator<AgentEvent, Ending | undefined> {
  const limit = inputLimit(state.models.facts, run.sampling?.maxOutput);
  if (limit === undefined || sizeOf(state) < limit * trimShare) return undefined;
  const fitting: Fitting = { state, ids, limit };
  yield* trim(fitting, state.messages.length - untouched);
  if (sizeOf(state) >= limit * summaryShare) {
    const unfit = yield* summarise(run, fitting, limit * trimShare);
    if (unfit !== undefined) return unfit;
    if (sizeOf(state) >= limit * summaryShare) yield* trim(fitting, state.messages.length - 2);
  }
  const size = sizeOf(state);
  if (size <= limit * surelyTooMuch) return undefined;
  const reason = `the conversation has about ${size.toLocaleString("en-US")} tokens and ${limit.toLocaleString("en-US")} fit into the model's window; it cannot be made shorter`;
  return { outcome: "overflow", reason };
}

/** The provider found the conversation too long: it is made shorter by half, once; then its word counts. */
export async function* shortenAfterOverflow(
  run: AgentRun,
  { state, ids, why }: Place & { readonly why: string },
): AsyncGenerator<AgentEvent, Ending | undefined> {
  const limit = inputLimit(state.models.facts, run.sampling?.maxOutput) ?? null;
  const before = state.messages;
  state.shortened = true;
  const fitting: Fitting = { state, ids, limit };
  yield* trim(fitting, before.length - 2);
  const unfit = yield* summarise(run, fitting, Math.min(limit ?? Infinity, sizeOf(state)) / 2);
  if (unfit !== undefined) return unfit;
  return state.messages === before ? { outcome: "overflow", reason: why } : undefined;
}

/** Input tokens of the conversation: as they were measured last, and an estimate of what came since. */
function sizeOf({ messages, measured }: State): number {
  if (measured === undefined) return tokensOf(messages);
  return measured.tokens + tokensOf(messages.slice(measured.upTo));
}

/** Puts the shorter messages in place; their size follows from how much shorter they are by the same measure. */
function replace(state: State, messages: Message[]): { readonly before: number; readonly after: number } {
  const before = sizeOf(state);
  const after = Math.ceil((before * tokensOf(messages)) / Math.max(1, tokensOf(state.messages)));
  state.messages = messages;
  state.measured = { tokens: after, upTo: messages.length };
  return { before, after };
}

async function* trim({ state, ids, limit }: Fitting, upTo: number): AsyncGenerator<AgentEvent, void> {
  const messages = trimmed(state.messages, upTo);
  if (messages.every((message, index) => message === state.messages[index])) return;
  const tokens = { ...replace(state, messages), limit };
  yield { ...ids, type: "context.compressed", how: "trimmed", tokens, upTo };
}

/** Lets a model write one message for the middle of the conversation, so that all of it has about `target` tokens. */
async function* summarise(
  run: AgentRun,
  { state, ids, limit }: Fitting,
  target: number,
): AsyncGenerator<AgentEvent, Ending | undefined> {
  const { messages } = state;
  // Estimates are brought to the measure of the last reply.
  const scale = tokensOf(messages) / Math.max(1, sizeOf(state));
  const summaryTokens = Math.ceil(Math.min(longestSummary, Math.max(256, target * summaryRoom * 1.5)));
  const head = tokensOf(messages.slice(0, messages.findIndex(({ role }) => role === "user") + 1));
  const stretch = middle(messages, target * scale - head - summaryTokens);
  if (stretch === undefined) return undefined;
  const word = await run.hooks?.fire({ event: "PreCompact", subject: "auto", fields: { trigger: "auto" } }, run.signal);
  if (word?.stop !== undefined) return haltedBy(word.stop);
  const part = messages.slice(stretch.from, stretch.to);
  const compact = await run.compact();
  if (!compact.ok) return { outcome: "provider_error", reason: compact.error.message };
  const [first = state.models.current, ...others] = compact.value.models;
  const isOwn = compact.value.models.length > 0;
  const models = isOwn ? new ModelChain(first, others) : state.models;
  const request: ModelRequest = {
    model: first.model,
    agent: compactAgent,
    step: `${askedAs({ ...run.ids, name: run.name })}/${compactAgent}`,
    messages: [
      { role: "system", blocks: [{ type: "text", text: compact.value.instructions }] },
      { role: "user", blocks: [{ type: "text", text: transcript(part, target) }] },
    ],
    tools: [],
    maxOutput: summaryTokens,
    ...(!isOwn && run.sampling?.options && { options: run.sampling.options }),
  };
  const { signal, clock } = run;
  const { payer } = state;
  const reply = yield* quietly(askModel({ ids, models, request, signal, payer, clock, masked: run.masked }));
  state.usage = addUsage(state.usage, reply.lost);
  if (reply.type === "failed") {
    const { outcome, reason } = failed(reply.failure);
    return { outcome, reason: `the conversation could not be summarised: ${reason}` };
  }
  if (reply.text.trim() === "") return { outcome: "overflow", reason: "the model gave no summary of the conversation" };
  state.usage = addUsage(state.usage, reply.usage);
  yield* putSummary({ state, ids, limit }, stretch, {
    message: summaryMessage(reply.text, { part, state, characters: summaryTokens * 6, pinned: target * 2 }),
    request: requestHash(request, run.masked),
    usage: reply.usage,
  });
  return undefined;
}

/** The words of a summary are no words of the agent's: they do not go out while they stream. */
async function* quietly<T>(events: AsyncGenerator<AgentEvent, T>): AsyncGenerator<AgentEvent, T> {
  let next = await events.next();
  for (; next.done !== true; next = await events.next()) if (next.value.type !== "message.delta") yield next.value;
  return next.value;
}

interface SummaryParts {
  readonly part: readonly Message[];
  readonly state: State;
  /** Of the summary, at most; and of what stands behind it word for word. */
  readonly characters: number;
  readonly pinned: number;
}

/** The summary; in a block of its own what has to survive word for word. */
function summaryMessage(text: string, { part, state, characters, pinned }: SummaryParts): Message {
  const summary = text.trim().slice(0, characters);
  const blocks: Block[] = [{ type: "text", text: `[Summary of what happened before]\n${summary}` }];
  const pins = newest(findingsIn(part), pinned);
  if (state.history.todos.length > 0) pins.push(`Your list:\n${todoLines(state.history.todos)}`);
  if (pins.length > 0) blocks.push({ type: "text", text: `${hints.pins}\n${pins.join("\n")}` });
  return { role: "user", blocks };
}

/** Findings without end would leave no room for the work: then the oldest are left out. */
function newest(findings: readonly string[], characters: number): string[] {
  let left = characters;
  const from = findings.findLastIndex((finding) => (left -= finding.length + 1) < 0) + 1;
  return from === 0 ? [...findings] : [hints.olderFindings(from), ...findings.slice(from)];
}

async function* putSummary(
  { state, ids, limit }: Fitting,
  stretch: Stretch,
  made: Pick<Extract<AgentEvent, { how: "summarised" }>, "message" | "request" | "usage">,
): AsyncGenerator<AgentEvent, void> {
  state.dropped += state.messages.slice(stretch.from, stretch.to).filter(({ role }) => role === "assistant").length;
  const tokens = { ...replace(state, summarised(state.messages, stretch, made.message)), limit };
  yield* noted(state, { ...ids, type: "context.compressed", how: "summarised", tokens, ...stretch, ...made });
}
