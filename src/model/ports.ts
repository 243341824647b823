import type { Event } from "./event.ts";
import type { Json, JsonObject } from "./json.ts";
import type { Block, Message, StopReason, Usage } from "./message.ts";
import type { FailureKind, StepResult } from "./outcome.ts";
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

/** One model behind one wire protocol. The stream ends in `done` or `failed` and never throws. */
export interface ModelClient {
  /** `openai`, `scripted`, …: written to the log. */
  readonly provider: string;
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

export interface ToolOutput {
  readonly blocks: readonly Block[];
  readonly structured?: Json;
}
