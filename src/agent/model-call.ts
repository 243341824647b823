import { pause } from "../model/abort.ts";
import type { AgentEvent, TurnIds } from "../model/agent-event.ts";
import { addUsage, noUsage, type Usage } from "../model/message.ts";
import type { Failure } from "../model/outcome.ts";
import type { Clock, ModelFailure, ModelRequest } from "../model/ports.ts";
import type { Payer } from "./budget.ts";
import type { AskedModel, ModelChain } from "./model-chain.ts";
import { requestHash } from "./request.ts";
import { type Reply, streamReply } from "./turn.ts";

export interface ModelCall {
  readonly ids: TurnIds;
  readonly models: ModelChain;
  /** To the current model of the chain. */
  readonly request: ModelRequest;
  readonly signal: AbortSignal;
  /** Whether the pieces of the reply go out as they come; they do when absent. */
  readonly pieces?: boolean | undefined;
  /** Pays for each call, retries included. */
  readonly payer: Payer;
  readonly clock: Clock;
  /** A request as its hash knows it. */
  readonly masked?: ((request: ModelRequest) => ModelRequest) | undefined;
  /** From 0 to 1; for the jitter. */
  readonly random?: () => number;
}

/** The reply that counts. `lost` is what the calls before it used, and a failed one itself. */
export type Answer = Reply & { readonly lost: Usage };

/** Asks the model, again where that may help, and then the next of its list. Never throws. */
export async function* askModel(call: ModelCall): AsyncGenerator<AgentEvent, Answer> {
  const { ids, models, masked } = call;
  let { request } = call;
  let lost = noUsage;
  for (;;) {
    const asked = models.current;
    const answer = yield* insist({ ...call, request }, asked);
    lost = addUsage(lost, answer.lost);
    if (answer.type === "message" || !fallsBack.has(answer.failure.kind)) return { ...answer, lost };
    const next = models.fallBack();
    if (next === undefined) return { ...answer, lost };
    const { model, client } = next;
    request = { ...request, model };
    const { provider } = client;
    yield { ...ids, type: "model.fallback", from: asked.model, model, provider, request: requestHash(request, masked) };
  }
}

/** Failures that are the provider's: another one may do better. */
const fallsBack: ReadonlySet<ModelFailure["kind"]> = new Set([
  "provider_error",
  "rate_limit",
  "unavailable",
  "timeout",
]);

/** Asks one model, at most four times. */
async function* insist(call: ModelCall, { model, client }: AskedModel): AsyncGenerator<AgentEvent, Answer> {
  const { ids, request, signal, pieces, payer, clock, random = Math.random } = call;
  const { provider } = client;
  let lost = noUsage;
  for (let attempt = 1; ; attempt++) {
    const reply = yield* payer.pay({ ids, client, request, signal }, (paid) =>
      streamReply({ ids, client, request: paid, signal, pieces }),
    );
    if (reply.type === "message") return { ...reply, lost };
    const usage = reply.usage && { usage: reply.usage };
    lost = addUsage(lost, reply.usage ?? noUsage);
    const next = again(reply.failure, { attempt, begun: usage !== undefined, random });
    const error = errorOf(next.failure);
    if (error === undefined || next.delay === undefined) {
      if (error !== undefined) yield { ...ids, type: "model.failed", model, provider, attempt, error, ...usage };
      return { ...reply, failure: next.failure, lost };
    }
    const { delay } = next;
    yield { ...ids, type: "model.retry", model, provider, attempt: attempt + 1, delay, error, ...usage };
    await pause(clock, delay, signal);
    if (signal.aborted) return { type: "failed", text: reply.text, failure: cancelled, lost };
  }
}

const cancelled: ModelFailure = { kind: "cancelled", message: "the model call was cancelled", transient: false };

/** A call that was cancelled or could not be paid says nothing about the model. */
function errorOf({ kind, message }: ModelFailure): Failure | undefined {
  return kind === "cancelled" || kind === "budget" ? undefined : { kind, message };
}

/** Milliseconds before the second, third and fourth call. */
const afterRateLimit: readonly number[] = [3_000, 6_000, 12_000];
const afterTrouble: readonly number[] = [1_500, 3_000, 6_000];
/** A server that had begun to answer is there. */
const afterPart = 1_500;
/** Nobody waits longer than this for a server. */
const longestWait = 60_000;
/** Share of a wait that chance may add, so that those who failed together do not come back together. */
const jitter = 0.25;

interface Attempted {
  /** From 1. */
  readonly attempt: number;
  /** Whether a part of a reply had come. */
  readonly begun: boolean;
  readonly random: () => number;
}

interface Next {
  /** Absent: it is not asked again. */
  readonly delay?: number;
  readonly failure: ModelFailure;
}

/** When to ask again. The server's own delay is a floor; one that is too long is said in the failure. */
export function again(failure: ModelFailure, { attempt, begun, random }: Attempted): Next {
  const { kind, transient, retryAfter = 0 } = failure;
  const planned = (kind === "rate_limit" ? afterRateLimit : afterTrouble)[attempt - 1];
  if (!transient || planned === undefined) return { failure };
  if (retryAfter > longestWait) {
    const seconds = Math.ceil(retryAfter / 1_000);
    const message = `${failure.message} (the server asks to wait ${seconds} s; more than ${longestWait / 1_000} s are not waited for)`;
    return { failure: { ...failure, message, transient: false } };
  }
  const least = Math.max(begun && kind !== "rate_limit" ? afterPart : planned, retryAfter);
  return { delay: Math.round(least * (1 + jitter * random())), failure };
}
