import type { Event } from "./event.ts";
import type { Json, JsonObject } from "./json.ts";
import type { Block, Message, StopReason, Usage } from "./message.ts";
import type { Failure, FailureKind, StepResult } from "./outcome.ts";
import type { Step } from "./plan.ts";
import type { Result } from "./result.ts";

/** The only way a layer reports. Never throws, never waits. */
export type Emit = (event: Event) => void;

/** Time, so that tests can own it. */
export interface Clock {
  /** Wall clock, milliseconds since 1970; for stamps only. */
  now(): number;
  /** Monotonic milliseconds; for every duration and deadline. */
  monotonic(): number;
  /** Calls back once after `ms`; the returned function cancels it. */
  after(ms: number, callback: () => void): () => void;
}

/** Whole milliseconds since `start`, a {@link Clock.monotonic} time: what events carry as `duration`. */
export function elapsed(clock: Clock, start: number): number {
  return Math.round(clock.monotonic() - start);
}

/** One attempt of one step, as the engine hands it to its kind. */
export interface Attempt {
  readonly step: Step;
  readonly path: string;
  /** From 1. */
  readonly attempt: number;
  /** The step's `inputs` template, resolved. */
  readonly inputs: JsonObject;
  readonly signal: AbortSignal;
  /** An attempt of the same definition and inputs was cut off before this resume: what is left of it may be gone on with. */
  readonly resumes?: boolean;
  /** The limits on tokens and money around it; absent where none is in force. */
  readonly budget?: Budget;
}

/** Tokens and US dollars; the cost is null where the price is unknown. */
export interface Spend {
  readonly tokens: number;
  readonly cost: number | null;
}

/** The limits on tokens and money around somebody who spends, from the nearest outward to the run's. */
export interface Budget {
  /**
   * Sets the worst case aside in every limit around before anything is spent. While calls in flight hold what would be
   * enough it waits; the error, of kind `budget`, is a limit that cannot pay it any more.
   */
  reserve(worst: Spend, signal: AbortSignal): Promise<Result<Reservation, Failure>>;
}

/** Money set aside for one call. It has to be settled, once, however the call ends. */
export interface Reservation {
  settle(actual: Spend): void;
}

/** Runs one attempt. A kind that needs no waiting may answer at once. Never throws for an expected failure. */
export type Execute = (attempt: Attempt) => StepResult | Promise<StepResult>;

/** One model call, complete and deterministic: equal requests have equal text. */
export interface ModelRequest {
  readonly model: string;
  /** The name of the agent and the path of the step that ask; `scripted` finds its lines by them. */
  readonly agent: string;
  readonly step: string;
  readonly messages: readonly Message[];
  readonly tools: readonly ToolSpec[];
  /** `required`: the model must call some tool. */
  readonly toolChoice?: "auto" | "required";
  readonly temperature?: number;
  readonly topP?: number;
  readonly maxOutput?: number;
  readonly effort?: string;
  /** JSON Schema of the whole answer, root `type: object`; only where {@link ModelFacts.jsonSchema} holds and no tool is open. */
  readonly answerSchema?: JsonObject;
  /** Fields of the provider's own, added to the wire request as they are. */
  readonly options?: JsonObject;
}

export interface ToolSpec {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments, root `type: object`. */
  readonly parameters: JsonObject;
}

export type ModelDelta =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "thinking"; readonly text: string; readonly field?: string; readonly signature?: string }
  /** A call begins; `index` is its place in the message. */
  | { readonly type: "call"; readonly index: number; readonly id: string; readonly name: string }
  | { readonly type: "args"; readonly index: number; readonly text: string }
  /** Always the last, unless `failed` is. */
  | { readonly type: "done"; readonly stop: StopReason; readonly usage: Usage }
  | { readonly type: "failed"; readonly failure: ModelFailure };

export interface ModelFailure {
  readonly kind:
    | Extract<
        FailureKind,
        "rate_limit" | "provider_error" | "unavailable" | "timeout" | "overflow" | "refused" | "internal"
      >
    | "cancelled";
  readonly message: string;
  readonly status?: number;
  /** Milliseconds the server asked us to wait. */
  readonly retryAfter?: number;
}

/** What is known of a model. Absent: unknown. */
export interface ModelFacts {
  /** Tokens of its context window, input and output together. */
  readonly window?: number;
  /** Tokens of its longest reply. */
  readonly maxOutput?: number;
  /** Whether the provider itself holds an answer to a JSON schema. */
  readonly jsonSchema: boolean;
  /** US dollars of these tokens; null when the price is unknown. */
  readonly cost: (usage: Omit<Usage, "cost" | "estimated">) => number | null;
}

export const unknownFacts: ModelFacts = { jsonSchema: false, cost: () => null };

/** One model behind one wire protocol. The stream ends in `done` or `failed` and never throws. */
export interface ModelClient {
  /** `openai`, `scripted`, …: written to the log. */
  readonly provider: string;
  readonly facts: ModelFacts;
  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelDelta>;
}

/** A tool a model may call. */
export interface Tool extends ToolSpec {
  /** Read-only calls of one message run together. */
  readonly readOnly: boolean;
  /** Arguments are checked against `parameters` before this is called. An error is text the model can read. */
  run(args: JsonObject, call: ToolCall): Promise<Result<ToolOutput, string>>;
}

export interface ToolCall {
  /** Absolute path of the folder the agent works in; nothing outside is reachable. */
  readonly workspace: string;
  readonly signal: AbortSignal;
}

/** What the rules say of one tool call. */
export interface Verdict {
  readonly decision: "allow" | "deny" | "ask";
  /** The rule that decided, as it was written, with its layer (`default`, `user`, `project`, `workflow`, …) and file. */
  readonly rule: { readonly text: string; readonly layer: string; readonly file?: string };
  /** The narrowest rule that would allow the call, in the words of a `permissions:` block. */
  readonly toAllow: string;
}

/** Judges a tool call before it runs. Never throws. */
export type Judge = (call: { readonly tool: string; readonly args: JsonObject }) => Promise<Verdict>;

export interface ToolOutput {
  readonly blocks: readonly Block[];
  readonly structured?: Json;
}
