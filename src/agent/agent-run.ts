import type { AgentEvent, TurnIds } from "../model/agent-event.ts";
import { defaultTurns } from "../model/defaults.ts";
import type { Hooks } from "../model/hooks.ts";
import type { AgentRunIds } from "../model/ids.ts";
import type { JsonObject } from "../model/json.ts";
import type { Block, Message, StopReason, Usage } from "../model/message.ts";
import { addUsage, noUsage } from "../model/message.ts";
import type { Failure } from "../model/outcome.ts";
import type { Budget, Clock, ModelClient, ModelFailure, ModelRequest, Tool } from "../model/ports.ts";
import { type Result, unreachable } from "../model/result.ts";
import type { Ending } from "./agent-result.ts";
import { createPayer, type Payer } from "./budget.ts";
import { type Guards, guardsOf } from "./guard.ts";
import { hints } from "./hints.ts";
import { type CheckFact, emptyHistory, type History, remember } from "./history.ts";
import type { Mail } from "./mail.ts";
import { type AskedModel, ModelChain } from "./model-chain.ts";
import type { StructuredOutput } from "./output.ts";
import type { RunRights } from "./permission.ts";
import type { Recorded } from "./recorded.ts";
import { RequestHashes, type Sampling } from "./request.ts";
import type { Validators } from "./tool-call.ts";
import type { Reply } from "./turn.ts";

/** Everything one agent run works with. */
export interface AgentRun {
  readonly ids: AgentRunIds;
  /** The agent's name. */
  readonly name: string;
  /** The id of the model, as the log shows it. */
  readonly model: string;
  readonly client: ModelClient;
  /** The models that are asked, in this order, once the one before has failed. */
  readonly fallbacks?: readonly AskedModel[];
  /** What the agent is given: its instructions and its prompt. */
  readonly messages: readonly Message[];
  /** Its conversation before the run was resumed: it goes on there. */
  readonly recorded?: Recorded;
  readonly tools: readonly Tool[];
  /** Tools that are not offered because the rules deny every call: who calls one all the same is told the rule. */
  readonly withheld?: readonly Tool[];
  /** What agents of the same tools share. */
  readonly validators?: Validators;
  /** JSON Schema of the structured answer, root `type: object`. */
  readonly output?: JsonObject;
  /** The command that has to succeed before the agent may be done. */
  readonly check?: AgentCheck;
  /** The default ones when absent. */
  readonly guards?: Guards;
  /** What it is asked after `recorded`, which had come to an end. */
  readonly more?: Message;
  /** Who summarises its conversation when that becomes too long. */
  readonly compact: () => Promise<Result<Compact, Failure>>;
  /** What others tell it, read at the border of a turn and nowhere else. */
  readonly mail?: Mail;
  /** In a replay, whose reports an agent run read before a turn of it; undefined where the log does not say. */
  readonly readings?: (agent: string, turn: number) => readonly string[] | undefined;
  /** Asked before each turn: an end that others have brought about. */
  readonly border?: () => Ending | undefined;
  /** 50 when absent; 0 is unlimited. */
  readonly maxTurns?: number;
  /** The limits on what its model calls spend. */
  readonly budget?: Budget;
  readonly sampling?: Sampling;
  /** Who is told of its moments. */
  readonly hooks?: Hooks;
  /** Absent: all its tools are allowed. */
  readonly rights?: RunRights;
  readonly workspace: string;
  readonly signal: AbortSignal;
  /** False: the pieces of replies do not go out as events. */
  readonly pieces?: boolean;
  readonly clock: Clock;
  /** Keeps a text too long for the model and gives the path to read it at. */
  readonly spill: (text: string) => string;
  /** A request with its secrets masked, as its hash and the log know it. */
  readonly masked?: (request: ModelRequest) => ModelRequest;
}

/** The agent that summarises. */
export interface Compact {
  readonly instructions: string;
  /** The models it asks; none: those of the agent whose conversation it is. */
  readonly models: readonly AskedModel[];
}

/** The command that judges an agent's work. */
export interface AgentCheck {
  readonly script: string;
  /** Extra tries after the first. */
  readonly max: number;
  /** Runs it once. Undefined: it was cancelled. */
  readonly run: (signal: AbortSignal) => Promise<CheckFact | undefined>;
}

/** One agent run as far as it has come. */
export interface State {
  messages: Message[];
  output: StructuredOutput | undefined;
  readonly validators: Validators;
  readonly hashes: RequestHashes;
  readonly guards: Guards;
  readonly history: History;
  /** The models it asks, and which of them is asked now. */
  readonly models: ModelChain;
  /** Pays for every model call of the run. */
  readonly payer: Payer;
  turns: number;
  /** The last turn in which the model was asked: what cannot be paid, or does not fit, is not. */
  asked: number;
  usage: Usage;
  text: string;
  /** Input tokens of the first `upTo` messages, once they are known. */
  measured: { readonly tokens: number; readonly upTo: number } | undefined;
  /** Replies that a summary stands for. */
  dropped: number;
  /** A `Stop` hook has sent it back before. */
  stopRefused: boolean;
  /** The context was made shorter because the provider refused it, and no reply came since. */
  shortened: boolean;
}

export function stateOf(run: AgentRun): State {
  const { recorded } = run;
  return {
    messages: [],
    output: undefined,
    validators: run.validators ?? new WeakMap(),
    hashes: new RequestHashes(run.masked),
    guards: run.guards ?? guardsOf(undefined),
    history: recorded?.history ?? emptyHistory(),
    models: new ModelChain({ model: run.model, client: run.client }, run.fallbacks),
    payer: createPayer(run.budget),
    turns: recorded?.turns ?? 0,
    asked: recorded?.turns ?? 0,
    usage: recorded?.usage ?? noUsage,
    text: "",
    measured: recorded?.measured,
    dropped: 0,
    shortened: false,
    stopRefused: false,
  };
}

/** Where in an agent run something happens. */
export interface Place {
  readonly state: State;
  readonly ids: TurnIds;
}

/** A turn whose reply is there. */
export interface Turn extends Place {
  readonly reply: Whole;
  /** Results that are there already, by the id of their call. */
  readonly known: ReadonlyMap<string, Block>;
  readonly start: number;
}

export type Whole = Extract<Reply, { type: "message" }>;

/** What a reply brought beside its message. */
export interface ReplyEnd {
  readonly stop: StopReason;
  readonly usage: Usage;
}

/** A message enters the conversation only here, and its event goes out before anything can act on it. */
export async function* say(
  state: State,
  ids: TurnIds,
  message: Message,
  reply?: ReplyEnd | { readonly from: readonly string[] },
): AsyncGenerator<AgentEvent, void> {
  if (reply !== undefined && "usage" in reply) {
    const { input, cacheRead, cacheWrite } = reply.usage;
    const tokens = input + cacheRead + cacheWrite;
    if (tokens > 0) state.measured = { tokens, upTo: state.messages.length };
    state.usage = addUsage(state.usage, reply.usage);
    state.shortened = false;
  }
  const said = reply && ("from" in reply ? { from: reply.from } : { stop: reply.stop, usage: reply.usage });
  state.messages.push(message);
  yield* noted(state, { ...ids, type: "message", message, ...said });
}

/** Says something of our own to the model, and that its turns are used up where they are. */
export function tell(run: AgentRun, { state, ids }: Place, text: string): AsyncGenerator<AgentEvent, void> {
  const blocks: Block[] = [{ type: "text", text }];
  if (overCap(run, ids.turn + 1) !== undefined) blocks.push({ type: "text", text: hints.lastTurn });
  return say(state, ids, { role: "user", blocks });
}

/** Sends an event that the history has to know. */
export async function* noted(state: State, event: AgentEvent): AsyncGenerator<AgentEvent, void> {
  remember(state.history, event);
  yield event;
}

/** The end of the one text-only turn offered after the last: whatever it says, the turns are used up. */
export function overCap({ maxTurns = defaultTurns }: Pick<AgentRun, "maxTurns">, turn: number): Ending | undefined {
  if (maxTurns === 0 || turn <= maxTurns) return undefined;
  return { outcome: "max_turns", reason: `stopped after ${maxTurns} turns (\`limits.turns\`)` };
}

/** Why a run whose signal was aborted ended: to run out of time is no cancel. */
export function aborted({ reason }: AbortSignal): Ending {
  if (reason === "timeout") return { outcome: "timeout", reason: "it did not end within the step's `timeout`" };
  if (reason === "duration") return { outcome: "budget", reason: "a `limits.duration` around it was reached" };
  if (reason === "agent") return { outcome: "cancelled", reason: "it was cancelled by itself, or with one above it" };
  if (reason === "ended") return { outcome: "cancelled", reason: "whoever spawned it has ended" };
  return { outcome: "cancelled", reason: "the run was cancelled" };
}

/** What a failed model call means for the agent. */
export function failed({ kind, message }: ModelFailure): Ending {
  switch (kind) {
    case "rate_limit":
    case "provider_error":
    case "timeout":
    case "overflow":
    case "refused":
    case "budget":
    case "cancelled":
      return { outcome: kind, reason: message };
    case "unavailable":
    case "internal":
      return { outcome: "provider_error", reason: message };
    default:
      return unreachable(kind);
  }
}
