import type { AgentEvent, TurnIds } from "../model/agent-event.ts";
import type { Message, StopReason, Usage } from "../model/message.ts";
import type { Budget, ModelFacts, ModelFailure, ModelRequest, Reservation, Spend } from "../model/ports.ts";
import { spendOf } from "../model/spending.ts";
import type { Measured } from "./estimate.ts";
import { measured, messageTokens, mostInput, textTokens } from "./estimate.ts";

/** One model call, as whoever makes it describes it. */
export interface Payable {
  readonly ids: TurnIds;
  readonly client: { readonly facts: ModelFacts };
  readonly request: ModelRequest;
  readonly signal: AbortSignal;
}

/** How a model call may end, as far as money goes. */
export type Paid =
  | {
      readonly type: "message";
      readonly message: Message;
      readonly stop: StopReason;
      readonly usage: Usage;
      readonly cutShort?: string;
    }
  | Unpaid;
export interface Unpaid {
  readonly type: "failed";
  readonly text: string;
  readonly failure: ModelFailure;
  readonly usage?: Usage | undefined;
}

/** Makes one model call with the request it is given. */
export type Call<R> = (request: ModelRequest) => AsyncGenerator<AgentEvent, R>;

/** Pays for the model calls of one agent run. */
export interface Payer {
  /**
   * Makes one model call, each attempt of a retry being one: the worst it could take is set aside before and given back
   * after. A call that cannot be paid is not made, and fails as `budget`; one that can be paid only with a shorter reply
   * gets no longer one, and says so in `cutShort` should the reply have needed more.
   */
  pay<R extends Paid>(payable: Payable, call: Call<R>): AsyncGenerator<AgentEvent, R | Unpaid>;
}

/** The longest reply under a limit of a model whose agent has no `max-output`, in tokens. */
export const defaultMaxOutput = 8192;
/** A reply is made shorter for want of money, but not shorter than this. */
export const leastOutput = 1024;

/** Without a budget, calls are made as they are. */
export function createPayer(budget: Budget | undefined): Payer {
  if (budget === undefined) return { pay: (payable, call) => call(payable.request) };
  let before: Measured | undefined;
  return {
    async *pay(payable, call) {
      const { ids, request, client } = payable;
      const asked = { input: mostInput(request, before), output: mostOutput(request, client.facts) };
      const paid = yield* reserve(budget, payable, asked);
      if ("failure" in paid) return paid;
      const { reservation, worst, output } = paid;
      yield { ...ids, type: "budget.reserved", ...worst };
      const held = { facts: client.facts, input: asked.input, output, worst };
      let actual: Settled = { ...worst, estimated: true };
      let reply;
      try {
        reply = yield* call({ ...request, payableOutput: output });
        actual = settled(reply, held);
      } finally {
        reservation.settle(actual);
      }
      yield { ...ids, type: "budget.settled", ...actual };
      if (reply.type !== "message") return reply;
      before = measured(request, reply.usage);
      return output < asked.output && reply.stop === "length" ? { ...reply, cutShort: cutShort(output) } : reply;
    },
  };
}

/** Without a `max-output` of the agent's: nobody sets the price of a book aside for what will be a page. */
function mostOutput({ maxOutput }: ModelRequest, facts: ModelFacts): number {
  return maxOutput ?? Math.min(facts.maxOutput ?? defaultMaxOutput, defaultMaxOutput);
}

interface Asked {
  readonly input: number;
  readonly output: number;
}

type Reserved = { readonly reservation: Reservation; readonly worst: Spend; readonly output: number } | Unpaid;

/** Sets aside what the call could take; with a shorter reply where nothing else can be paid any more. */
async function* reserve(
  budget: Budget,
  { ids, client, signal }: Payable,
  { input, output: wanted }: Asked,
): AsyncGenerator<AgentEvent, Reserved> {
  const worstOf = (output: number): Spend => ({ tokens: input + output, cost: worstCost(client.facts, input, output) });
  for (let output = wanted; ;) {
    const worst = worstOf(output);
    const reserved = await budget.reserve(worst, signal);
    if (reserved.ok) return { reservation: reserved.value, worst, output };
    if (reserved.error.kind === "cancelled") return unpaid("cancelled", "the model call was cancelled");
    const payable = longestPayable(worstOf, budget.left(), output - 1);
    if (payable >= Math.min(leastOutput, wanted)) {
      output = payable;
      continue;
    }
    const { kind, message, ...over } = reserved.error;
    const spent = Number.isFinite(over.spent) ? over.spent : null;
    yield { ...ids, type: "budget.exceeded", ...over, spent };
    return unpaid(kind, message);
  }
}

function unpaid(kind: ModelFailure["kind"], message: string): Unpaid {
  return { type: "failed", text: "", failure: { kind, message, transient: false } };
}

/** The dearer of reading the request anew and of writing it to a cache. */
function worstCost({ cost }: ModelFacts, input: number, output: number): number | null {
  const none = { input: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0, output };
  const [read, written] = [cost({ ...none, input }), cost({ ...none, cacheWrite: input })];
  return read === null || written === null ? null : Math.max(read, written);
}

/** The most output tokens, at most `most`, that what is left can pay; prices only rise with them. */
function longestPayable(worstOf: (output: number) => Spend, left: ReturnType<Budget["left"]>, most: number): number {
  const isPayable = (output: number): boolean => {
    const { tokens, cost } = worstOf(output);
    return tokens <= left.tokens && (cost ?? Infinity) <= left.cost;
  };
  if (most < 1 || !isPayable(1)) return 0;
  let [payable, tooMuch] = [1, most + 1];
  while (tooMuch - payable > 1) {
    const middle = Math.floor((payable + tooMuch) / 2);
    if (isPayable(middle)) payable = middle;
    else tooMuch = middle;
  }
  return payable;
}

interface Settled extends Spend {
  readonly estimated: boolean;
}

interface Held {
  readonly facts: ModelFacts;
  /** The most tokens its request may count. */
  readonly input: number;
  /** Of its reply, as it was asked for. */
  readonly output: number;
  readonly worst: Spend;
}

/** What the call took, as the server counted it; otherwise the most that was sent and came back can be. */
function settled(reply: Paid, held: Held): Settled {
  const { usage } = reply;
  if (usage?.estimated === false) {
    const cost = usage.cost ?? held.facts.cost(usage) ?? held.worst.cost;
    return { ...spendOf({ ...usage, cost }), estimated: false };
  }
  if (reply.type === "message") return guessed(messageTokens(reply.message), held);
  if (reply.text === "" && wasTurnedAway(reply.failure)) return { tokens: 0, cost: 0, estimated: false };
  return guessed(textTokens(reply.text), held);
}

function guessed(received: number, { facts, input, output }: Held): Settled {
  const written = Math.min(received, output);
  return { tokens: input + written, cost: worstCost(facts, input, written), estimated: true };
}

/** A server that refused, or was not reached, has billed nothing. */
function wasTurnedAway({ kind, status }: ModelFailure): boolean {
  return status !== undefined || kind === "unavailable" || kind === "rate_limit";
}

function cutShort(output: number): string {
  return `the reply was cut off after the ${output} tokens that the limits could still pay`;
}
