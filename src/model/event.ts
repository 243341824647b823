import type { Diagnostic } from "./diagnostic.ts";
import type { Json, JsonObject } from "./json.ts";
import type { AgentOutcome, Message, StopReason, Usage } from "./message.ts";
import type { Failure, RunOutcome, SkipReason, StepOutcome } from "./outcome.ts";
import type { Plan, StepKind } from "./plan.ts";

/**
 * The whole observable behaviour of a run. Every layer reports by `emit(event)`; the log line is the event plus
 * {@link Stamp}; the terminal, the reports and the tests only read events. Times are milliseconds.
 */
export type Event =
  | RunEvent
  | StepEvent
  | AgentEvent
  | { readonly type: "diagnostic"; readonly diagnostic: Diagnostic };

/** What the log adds to an event: `seq` counts from 1 without gaps, `time` is RFC 3339 with milliseconds. */
export interface Stamp {
  readonly seq: number;
  readonly time: string;
}
export type LogLine = Event & Stamp;

/** A value kept beside the log because it is large: the file's name is its sha256 (hex). */
export interface Blob {
  readonly blob: string;
  /** Bytes of its JSON text. */
  readonly size: number;
}

export type RunEvent =
  | {
      readonly type: "run.started";
      /** Version of the log format. */
      readonly log: 1;
      /** Version of flow. */
      readonly flow: string;
      readonly run: string;
      /** Path of the workflow file, relative to the workspace; `-` for standard input. */
      readonly workflow: string;
      readonly name: string;
      readonly workspace: string;
      /** The git commit of the workspace; null outside a repository. */
      readonly commit: string | null;
      readonly digest: string;
      readonly inputs: JsonObject;
      readonly plan: Plan | Blob;
    }
  | {
      readonly type: "run.finished";
      readonly outcome: RunOutcome;
      readonly outputs: JsonObject;
      readonly error?: Failure;
      readonly usage: Usage;
      readonly duration: number;
      readonly exitCode: number;
    };

/** `step` is the step path: ids joined by `/`, with `[item]` and `#iteration` (`group[2]/ok#3`). */
export type StepEvent =
  /** The step is ready and waits for a free slot; not sent when it starts at once. */
  | { readonly type: "step.ready"; readonly step: string }
  | { readonly type: "step.started"; readonly step: string; readonly kind: StepKind }
  /** `attempt` counts from 1; only kinds that can be retried send attempt events. */
  | { readonly type: "step.attempt.started"; readonly step: string; readonly attempt: number }
  | {
      readonly type: "step.attempt.finished";
      readonly step: string;
      readonly attempt: number;
      readonly outcome: Exclude<StepOutcome, "skipped">;
      readonly error?: Failure;
      readonly duration: number;
    }
  /** Attempt `attempt` follows after `delay`, because the one before failed with `error`. */
  | {
      readonly type: "step.retrying";
      readonly step: string;
      readonly attempt: number;
      readonly delay: number;
      readonly error: Failure;
    }
  /** The `undo` of an execution ran, because the scope around it failed or was cancelled. */
  | {
      readonly type: "step.undone";
      readonly step: string;
      readonly outcome: Exclude<StepOutcome, "skipped">;
      readonly error?: Failure;
      readonly duration: number;
    }
  | { readonly type: "step.skipped"; readonly step: string; readonly reason: SkipReason }
  | {
      readonly type: "step.finished";
      readonly step: string;
      readonly outcome: Exclude<StepOutcome, "skipped">;
      /** Differs from `outcome` only by `continue-on-error`. */
      readonly conclusion: Exclude<StepOutcome, "skipped">;
      /** Absent when the step produced none. */
      readonly outputs?: Json;
      readonly error?: Failure;
      readonly duration: number;
    };

/** Where an agent's event belongs: its step, its own id, the agent run that spawned it, the turn (from 1). */
export interface AgentRunIds {
  readonly step: string;
  readonly agent: string;
  readonly parent: string | null;
}
export interface TurnIds extends AgentRunIds {
  readonly turn: number;
}

export type AgentEvent =
  | (AgentRunIds & {
      readonly type: "agent.started";
      readonly name: string;
      readonly model: string;
      readonly provider: string;
      readonly tools: readonly string[];
    })
  | (AgentRunIds & {
      readonly type: "agent.finished";
      readonly outcome: AgentOutcome;
      readonly reason: string;
      readonly turns: number;
      readonly usage: Usage;
      readonly text: string;
      readonly output?: Json;
      readonly duration: number;
    })
  /** `request` is the sha256 of the request, the key for replay and resume. */
  | (TurnIds & {
      readonly type: "turn.started";
      readonly model: string;
      readonly provider: string;
      readonly request: string;
    })
  /** A whole message, logged before anything acts on it. `turn` 0 holds what the agent was given. */
  | (TurnIds & { readonly type: "message"; readonly message: Message })
  /** A piece of a message while it streams. Not logged unless asked for. */
  | (TurnIds & { readonly type: "message.delta"; readonly delta: Delta })
  | (TurnIds & {
      readonly type: "turn.finished";
      readonly stop: StopReason;
      readonly usage: Usage;
      readonly duration: number;
    })
  | (TurnIds & { readonly type: "tool.started"; readonly id: string; readonly name: string; readonly args: Json })
  | (TurnIds & {
      readonly type: "tool.finished";
      readonly id: string;
      readonly name: string;
      readonly status: "completed" | "error";
      /** The result as the model sees it, capped; the whole is in `file` when it was longer. */
      readonly text: string;
      readonly file?: string;
      readonly duration: number;
    });

export type Delta =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "thinking"; readonly text: string }
  | { readonly type: "call.started"; readonly id: string; readonly name: string }
  | { readonly type: "call.args"; readonly id: string; readonly text: string };
