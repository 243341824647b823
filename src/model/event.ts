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
      /** Where flow was started, relative to the workspace; absent when it was the workspace itself. */
      readonly cwd?: string;
      /** The file of replies that stood for every model, relative to the workspace. */
      readonly script?: string;
      /** The git commit of the workspace; null outside a repository. */
      readonly commit: string | null;
      readonly digest: string;
      readonly inputs: JsonObject;
      readonly plan: Plan | Blob;
    }
  /** The run goes on in the same log, after a crash, a cancel or a failure. What was in force before still is, if absent here. */
  | {
      readonly type: "run.resumed";
      /** Version of flow. */
      readonly flow: string;
      readonly run: string;
      readonly workflow: string;
      readonly name: string;
      readonly digest: string;
      /** The plan from here on; present when it is not the one before, and then `changes` says how it differs. */
      readonly plan?: Plan | Blob;
      readonly changes?: readonly string[];
      readonly script?: string;
      /** The path from which on everything runs again. */
      readonly from?: string;
      /** Outputs of finished steps that were replaced. */
      readonly set?: readonly SetOutput[];
      /** Bytes of a line cut off by the crash, which were taken away. */
      readonly torn?: number;
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

/** The output `output` of the execution `step`, as a person replaced it. */
export interface SetOutput {
  readonly step: string;
  readonly output: string;
  readonly value: Json;
}

/**
 * What decides whether the recorded end of an execution still holds: 16 hex digits each. `definition` stands for what
 * the step is, `given` for the values it was given, secrets masked.
 */
export interface Fingerprint {
  readonly definition: string;
  readonly given: string;
}

/** Why an execution that is in the log runs again. `uncertain`: it was running when the run died. */
export type Again = "from" | "uncertain" | "undone" | "failed" | "cancelled" | "definition" | "given" | "needs";

/** `step` is the step path: ids joined by `/`, with `[item]` and `#iteration` (`group[2]/ok#3`). */
export type StepEvent =
  /** The step is ready and waits for a free slot; not sent when it starts at once. */
  | { readonly type: "step.ready"; readonly step: string }
  | { readonly type: "step.started"; readonly step: string; readonly kind: StepKind }
  /** `attempt` counts from 1; only kinds that can be retried send attempt events. */
  | {
      readonly type: "step.attempt.started";
      readonly step: string;
      readonly attempt: number;
      /** Absent on a step that contains steps: each of those has its own. */
      readonly fingerprint?: Fingerprint;
      /** Present when a run before this resume had begun the same execution. */
      readonly again?: Again;
    }
  | {
      readonly type: "step.attempt.finished";
      readonly step: string;
      readonly attempt: number;
      readonly outcome: Exclude<StepOutcome, "skipped">;
      /** Of a success: what its kind gave, before the step's own `outputs`; absent when only `result` is used. */
      readonly outputs?: Json;
      /** Of a success, where the step's `outputs` or `until` look at it. */
      readonly result?: Json;
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
  /** The execution had ended before this resume and did not run again; `end` is the `seq` of its end. */
  | { readonly type: "step.reused"; readonly step: string; readonly end: number }
  /** The `undo` of an execution begins: from here on its end does not count any more. */
  | { readonly type: "step.undo.started"; readonly step: string }
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
      /** The agent run, cut off before this resume, whose conversation it goes on with. */
      readonly continues?: string;
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
  | (TurnIds & {
      readonly type: "message";
      readonly message: Message;
      /** Of a model's reply. */
      readonly stop?: StopReason;
      readonly usage?: Usage;
    })
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
