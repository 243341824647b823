import type { AgentEvent, AgentRunIds, TurnIds } from "../model/event.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import type { AgentOutcome, Block, Message, Usage } from "../model/message.ts";
import { addUsage, noUsage } from "../model/message.ts";
import type { Clock, ModelClient, ModelFailure, Tool } from "../model/ports.ts";
import { elapsed } from "../model/ports.ts";
import { unreachable } from "../model/result.ts";
import { allowedRepairs, finishName, structuredOutput } from "./output.ts";
import type { StructuredOutput } from "./output.ts";
import { recordedResult } from "./recorded.ts";
import type { Recorded } from "./recorded.ts";
import { buildRequest, requestHash } from "./request.ts";
import type { Sampling } from "./request.ts";
import { runCalls } from "./tool-call.ts";
import type { CallSetting } from "./tool-call.ts";
import { streamTurn } from "./turn.ts";
import type { CallBlock, Reply } from "./turn.ts";

/** Everything one agent run works with. */
export interface AgentRun {
  readonly ids: AgentRunIds;
  /** The agent's name. */
  readonly name: string;
  /** The id of the model, as the log shows it. */
  readonly model: string;
  readonly client: ModelClient;
  /** What the agent is given: its instructions and its prompt. */
  readonly messages: readonly Message[];
  /** Its conversation before the run was resumed: it goes on there. */
  readonly recorded?: Recorded;
  readonly tools: readonly Tool[];
  /** JSON Schema of the structured answer, root `type: object`. */
  readonly output?: JsonObject;
  /** 50 when absent; 0 is unlimited. */
  readonly maxTurns?: number;
  readonly sampling?: Sampling;
  readonly workspace: string;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /** Keeps a text too long for the model and gives the path to read it at. */
  readonly spill: (text: string) => string;
}

export interface AgentResult {
  readonly outcome: AgentOutcome;
  /** One sentence: why it ended like this. */
  readonly reason: string;
  /** Turns that began, the last text-only one at the turn cap included. */
  readonly turns: number;
  readonly usage: Usage;
  /** The last text of the model; of a failed turn, what had arrived. */
  readonly text: string;
  /** Present only when the outcome is `done` and there is an `output` schema. */
  readonly output?: JsonObject;
}

const defaultMaxTurns = 50;
const lastTurnNote = "You have no turns left. Answer now, in text; tools are no longer available.";

/** Runs one agent until it has exactly one outcome. Yields its events, of which a message always precedes its effects. */
export async function* runAgent(run: AgentRun): AsyncGenerator<AgentEvent, AgentResult> {
  const state: State = {
    messages: [],
    tools: run.tools,
    validators: new Map(),
    turns: run.recorded?.turns ?? 0,
    usage: run.recorded?.usage ?? noUsage,
    text: "",
    badFinishes: 0,
  };
  const prepared = (yield* begin(run, state)) ?? (yield* resume(run, state));
  if (prepared !== undefined) return result(state, prepared);
  for (;;) {
    const ending = yield* takeTurn(run, state);
    if (ending !== undefined) return result(state, ending);
  }
}

interface State {
  readonly messages: Message[];
  tools: readonly Tool[];
  readonly validators: CallSetting["validators"];
  output?: StructuredOutput;
  turns: number;
  usage: Usage;
  text: string;
  badFinishes: number;
}

type Ending = Pick<AgentResult, "outcome" | "reason" | "output">;

function result({ turns, usage, text }: State, ending: Ending): AgentResult {
  return { ...ending, turns, usage, text };
}

async function* begin(run: AgentRun, state: State): AsyncGenerator<AgentEvent, Ending | undefined> {
  if (run.recorded !== undefined) state.messages.push(...run.recorded.messages);
  else for (const message of run.messages) yield* say(state, { ...run.ids, turn: 0 }, message);
  if (run.output === undefined) return undefined;
  const output = await structuredOutput(run.output);
  if (!output.ok) return { outcome: "invalid_output", reason: output.error };
  state.output = output.value;
  state.tools = [...run.tools, output.value.finish];
  return undefined;
}

/** A message enters the conversation only here, and its event goes out before anything can act on it. */
async function* say(state: State, ids: TurnIds, message: Message, reply?: Whole): AsyncGenerator<AgentEvent, void> {
  state.messages.push(message);
  yield { ...ids, type: "message", message, ...(reply && { stop: reply.stop, usage: reply.usage }) };
}

/** Ends the turn that was cut off behind its reply, if there is one: the model is not asked a second time. */
async function* resume(run: AgentRun, state: State): AsyncGenerator<AgentEvent, Ending | undefined> {
  const { recorded } = run;
  if (recorded === undefined) return undefined;
  state.badFinishes = badFinishesIn(recorded.messages);
  const last = recorded.messages.at(-1);
  for (const { role, blocks } of recorded.messages) if (role === "assistant") state.text = textOf(blocks) || state.text;
  if (last?.role !== "assistant") return endBefore(state);
  const calls = last.blocks.filter((block) => block.type === "call");
  const { stop = "unknown", lastUsage: usage, turns } = recorded;
  const reply: Whole = { type: "message", message: last, text: textOf(last.blocks), calls, stop, usage };
  const ids: TurnIds = { ...run.ids, turn: turns };
  return yield* conclude(run, { state, ids, reply, known: knownResults(recorded), start: run.clock.monotonic() });
}

/** The answer was accepted, or refused for the last time, and only the end itself is not in the log. */
function endBefore({ output, messages, badFinishes }: State): Ending | undefined {
  if (output === undefined) return undefined;
  if (badFinishes > allowedRepairs)
    return { outcome: "invalid_output", reason: "no answer fitted the `output` schema" };
  const results = messages.at(-1)?.blocks.filter((block) => block.type === "result" && block.error !== true) ?? [];
  const accepted = new Set(results.map((block) => (block.type === "result" ? block.id : "")));
  const answer = messages.at(-2)?.blocks.find((block) => isFinish(block) && accepted.has(block.id));
  if (answer?.type !== "call" || !isJsonObject(answer.args)) return undefined;
  return { outcome: "done", reason: "the model finished", output: answer.args };
}

function badFinishesIn(messages: readonly Message[]): number {
  const blocks = messages.flatMap((message) => message.blocks);
  const finishes = new Set(blocks.flatMap((block) => (isFinish(block) ? [block.id] : [])));
  return blocks.filter((block) => block.type === "result" && block.error === true && finishes.has(block.id)).length;
}

function isFinish(block: Block): block is CallBlock {
  return block.type === "call" && block.name === finishName;
}

function textOf(blocks: readonly Block[]): string {
  return blocks.map((block) => (block.type === "text" ? block.text : "")).join("");
}

async function* takeTurn(run: AgentRun, state: State): AsyncGenerator<AgentEvent, Ending | undefined> {
  if (run.signal.aborted) return cancelled;
  const ids: TurnIds = { ...run.ids, turn: ++state.turns };
  const start = run.clock.monotonic();
  const reply = yield* ask(run, state, ids);
  if (reply.text !== "") state.text = reply.text;
  if (reply.type === "failed") return run.signal.aborted ? cancelled : (overCap(run, ids) ?? failed(reply.failure));
  state.usage = addUsage(state.usage, reply.usage);
  yield* say(state, ids, reply.message, reply);
  return yield* conclude(run, { state, ids, reply, known: new Map(), start });
}

interface Turn extends Calls {
  readonly start: number;
}

/** What follows a reply: its calls are answered, or it is the end. */
async function* conclude(run: AgentRun, turn: Turn): AsyncGenerator<AgentEvent, Ending | undefined> {
  const { state, ids, reply, start } = turn;
  let ending = overCap(run, ids);
  if (ending === undefined && reply.calls.length === 0) ending = endOfAnswer(state, reply);
  else if (ending === undefined) ending = yield* answerCalls(run, turn);
  const { stop, usage } = reply;
  yield { ...ids, type: "turn.finished", stop, usage, duration: elapsed(run.clock, start) };
  return ending;
}

async function* ask(run: AgentRun, state: State, ids: TurnIds): AsyncGenerator<AgentEvent, Reply> {
  const { client, model, signal } = run;
  const request = buildRequest({
    model,
    agent: run.name,
    step: run.ids.step,
    messages: state.messages,
    tools: overCap(run, ids) === undefined ? state.tools : [],
    sampling: run.sampling ?? {},
  });
  yield { ...ids, type: "turn.started", model, provider: client.provider, request: requestHash(request) };
  return yield* streamTurn({ ids, client, request, signal });
}

/** The end of the one text-only turn offered after the last: whatever it says, the turns are used up. */
function overCap({ maxTurns = defaultMaxTurns }: AgentRun, { turn }: TurnIds): Ending | undefined {
  if (maxTurns === 0 || turn <= maxTurns) return undefined;
  return { outcome: "max_turns", reason: `stopped after ${maxTurns} turns (\`limits.turns\`)` };
}

const cancelled: Ending = { outcome: "cancelled", reason: "the run was cancelled" };

function failed({ kind, message }: ModelFailure): Ending {
  switch (kind) {
    case "rate_limit":
    case "provider_error":
    case "timeout":
    case "overflow":
    case "refused":
    case "cancelled":
      return { outcome: kind, reason: message };
    case "unavailable":
    case "internal":
      return { outcome: "provider_error", reason: message };
    default:
      return unreachable(kind);
  }
}

type Whole = Extract<Reply, { type: "message" }>;

/** A reply without calls. Only an answer that is there, whole and of the shape asked for is `done`. */
function endOfAnswer({ output }: State, { text, stop }: Whole): Ending {
  if (stop === "refusal") return { outcome: "refused", reason: text.trim() || "the model refused to answer" };
  const structured = output?.read(text);
  if (structured?.ok) return { outcome: "done", reason: "the model answered", output: structured.value };
  if (stop === "length") return { outcome: "overflow", reason: "the answer was cut off at the model's output limit" };
  if (text.trim() === "") return { outcome: "invalid_output", reason: "the model ended without an answer" };
  if (structured !== undefined) return { outcome: "invalid_output", reason: structured.error };
  return { outcome: "done", reason: "the model answered" };
}

interface Calls {
  readonly state: State;
  readonly ids: TurnIds;
  readonly reply: Whole;
  /** Results that are there already, by the id of their call. */
  readonly known: ReadonlyMap<string, Block>;
}

async function* answerCalls(
  run: AgentRun,
  { state, ids, reply, known }: Calls,
): AsyncGenerator<AgentEvent, Ending | undefined> {
  const { workspace, signal, clock, spill } = run;
  const results = yield* runCalls(reply.calls, {
    known,
    ids,
    tools: state.tools,
    validators: state.validators,
    workspace,
    signal,
    clock,
    spill,
  });
  const output = state.output?.accepted();
  const ended: Ending | undefined =
    output === undefined
      ? finishTooOften(state, reply, results)
      : { outcome: "done", reason: "the model finished", output };
  const lastTurn = overCap(run, { ...ids, turn: ids.turn + 1 }) !== undefined;
  const note: Block[] = lastTurn && ended === undefined ? [{ type: "text", text: lastTurnNote }] : [];
  yield* say(state, ids, { ...results, blocks: [...results.blocks, ...note] });
  return ended;
}

/** Results that the log has. An answer is always given anew: to read it changes nothing. */
function knownResults({ calls }: Recorded): ReadonlyMap<string, Block> {
  const others = [...calls].filter(([, { name }]) => name !== finishName);
  return new Map(others.map(([id, call]) => [id, recordedResult(id, call)]));
}

function finishTooOften(state: State, { calls }: Whole, results: Message): Ending | undefined {
  if (state.output === undefined) return undefined;
  const finishes = new Set(calls.filter(({ name }) => name === finishName).map(({ id }) => id));
  let lastError = "";
  for (const block of results.blocks) {
    if (block.type !== "result" || !finishes.has(block.id) || block.error !== true) continue;
    state.badFinishes++;
    lastError = block.blocks.map((inner) => (inner.type === "text" ? inner.text : "")).join("");
  }
  if (state.badFinishes <= allowedRepairs) return undefined;
  return { outcome: "invalid_output", reason: lastError };
}
