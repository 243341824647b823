import type { AgentEvent } from "./agent-event.ts";
import type { HookEvent as HookMomentName } from "./hooks.ts";
import type { Diagnostic } from "./diagnostic.ts";
import type { Json, JsonObject } from "./json.ts";
import type { Usage } from "./message.ts";
import type { Failure, RunOutcome, SkipReason, StepOutcome } from "./outcome.ts";
import type { Plan, StepKind } from "./plan.ts";
import type { TeamEvent } from "./team.ts";

/**
 * The whole observable behaviour of a run. Every layer reports by `emit(event)`; the log line is the event plus
 * {@link Stamp}; the terminal, the reports and the tests only read events. Times are milliseconds.
 */
export type Event =
  | RunEvent
  | StepEvent
  | ApprovalEvent
  | ServerEvent
  | WorktreeEvent
  | AgentEvent
  | TeamEvent
  | HookFinished
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
      /** The log whose replies stood for every model, relative to the workspace. */
      readonly replay?: string;
      /** The git commit of the workspace; null outside a repository. */
      readonly commit: string | null;
      /** What keeps its processes together; absent in logs of older versions. */
      readonly supervision?: "group" | "namespace";
      readonly digest: string;
      readonly inputs: JsonObject;
      readonly plan: Plan | Blob;
      /** Approvals given before anything asked for them. */
      readonly answers?: readonly GivenAnswer[];
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
      readonly supervision?: "group" | "namespace";
      /** The plan from here on; present when it is not the one before, and then `changes` says how it differs. */
      readonly plan?: Plan | Blob;
      readonly changes?: readonly string[];
      readonly script?: string;
      readonly replay?: string;
      /** The path from which on everything runs again. */
      readonly from?: string;
      /** Outputs of finished steps that were replaced. */
      readonly set?: readonly SetOutput[];
      /** Of approvals that were open. */
      readonly answers?: readonly GivenAnswer[];
      /** Bytes of a line cut off by the crash, which were taken away. */
      readonly torn?: number;
    }
  /** Nothing can go on before somebody answers: `steps` are the paths of the open approvals. `run.finished` follows. */
  | { readonly type: "run.waiting"; readonly steps: readonly string[] }
  /** What the permission rules that somebody wrote decided; one without hits was not needed, or never holds. */
  | { readonly type: "permissions.counted"; readonly rules: readonly CountedRule[] }
  | {
      readonly type: "run.finished";
      readonly outcome: RunOutcome;
      readonly outputs: JsonObject;
      readonly error?: Failure;
      readonly usage: Usage;
      readonly duration: number;
      readonly exitCode: number;
    };

/** A permission rule as it was written, and the number of verdicts it decided. */
export interface CountedRule {
  readonly rule: string;
  readonly decision: "allow" | "ask" | "deny";
  readonly layer: string;
  readonly file?: string;
  readonly line?: number;
  readonly hits: number;
}

/** The output `output` of the execution `step`, as a person replaced it. */
export interface SetOutput {
  readonly step: string;
  readonly output: string;
  readonly value: Json;
}

/** A question to a person. */
export interface ApprovalRequest {
  /** Path of the step that asks. */
  readonly step: string;
  readonly question: string;
  /** JSON Schema of the values that go with a yes. */
  readonly form?: Json;
  /** RFC 3339; without an answer until then the step fails. */
  readonly deadline?: string;
}

export interface ApprovalAnswer {
  readonly decision: "approved" | "denied";
  readonly by: string;
  /** Empty when nothing was said. */
  readonly comment: string;
  /** Fits the form of the request; empty in a denial. */
  readonly form: JsonObject;
}

export interface GivenAnswer extends ApprovalAnswer {
  readonly step: string;
}

export type ApprovalEvent =
  | (ApprovalRequest & {
      readonly type: "approval.requested";
      /** The answer of this resume was to another question, and does not count. */
      readonly dropped?: true;
    })
  | (GivenAnswer & { readonly type: "approval.given" });

/**
 * What decides whether the recorded end of an execution still holds: 16 hex digits each. `definition` stands for what
 * the step is, `given` for the values it was given, secrets masked.
 */
export interface Fingerprint {
  readonly definition: string;
  readonly given: string;
}

/** Why an execution that is in the log runs again. `uncertain`: it was running when the run died; `waiting`: it waited for an answer. */
export type Again =
  | "from"
  | "uncertain"
  | "waiting"
  | "undone"
  | "failed"
  | "cancelled"
  | "definition"
  | "given"
  | "needs";

/** Why there are no outputs to reuse; `changed` names what differs from the last execution that was kept, `than`. */
export interface CacheMiss {
  readonly why: "first" | "changed" | "damaged" | "refresh";
  readonly changed?: readonly string[];
  readonly than?: { readonly run: string; readonly stored: string };
}

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
  /** Its outputs are those of an earlier execution that was the same by `key`: of the run `run`, kept at `stored`. */
  | {
      readonly type: "step.cached";
      readonly step: string;
      readonly key: string;
      readonly run: string;
      /** RFC 3339. */
      readonly stored: string;
    }
  /** It runs, because nothing was kept under its `key`. */
  | ({ readonly type: "step.uncached"; readonly step: string; readonly key: string } & CacheMiss)
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

/** `step` is the one that needed the server first. */
export type ServerEvent =
  /** An MCP server has answered and offers so many tools; `pinned`: they are those of `flow.lock`. */
  | {
      readonly type: "mcp.started";
      readonly step: string;
      readonly server: string;
      readonly offers: number;
      readonly pinned: boolean;
      readonly duration: number;
    }
  /** Something about an MCP server that a person should know. */
  | { readonly type: "mcp.warning"; readonly step: string; readonly server: string; readonly note: string };

/** `worktree` is its name, which no other of the run has. Files are named from the top of the repository. */
export type WorktreeEvent =
  /** An execution has a worktree of its own, made from the workspace as it was: the commit `base`. */
  | {
      readonly type: "worktree.opened";
      readonly step: string;
      /** The agent run it is for, where that is not the whole step. */
      readonly agentRun?: string;
      readonly worktree: string;
      readonly folder: string;
      /** The worktree it was made from and goes into, where that is not the workspace. */
      readonly into?: string;
      readonly base: string;
      /** It holds what the execution had done before it was cut off. */
      readonly restored?: true;
      readonly duration: number;
    }
  /** Its changes are written to the workspace from here on: `from` and `to` are the trees before and after. */
  | {
      readonly type: "worktree.applying";
      readonly step: string;
      readonly worktree: string;
      readonly patch: string;
      readonly from: string;
      readonly to: string;
      /** What the execution gave: it succeeded, and a resume does not run it again. */
      readonly result?: Json;
      readonly outputs?: Json;
    }
  | {
      readonly type: "worktree.closed";
      readonly step: string;
      readonly worktree: string;
      /** `conflict`: nothing of it was applied. `kept`: the execution did not succeed. `lost`: it could not be read any more. */
      readonly status: "applied" | "empty" | "conflict" | "kept" | "lost";
      /** The patch file, absolute; absent where nothing was changed. */
      readonly patch?: string;
      /** The files that were changed, the first thousand of them. */
      readonly files: readonly string[];
      /** A commit of what was in it. */
      readonly left?: string;
      /** Of a conflict: the files that do not go together. */
      readonly conflicts?: readonly string[];
      /** Why nothing of it is in the workspace. */
      readonly why?: string;
      readonly duration: number;
    }
  /** A run that died had left a worktree, which was removed; `patch` holds what was in it. */
  | {
      readonly type: "worktree.removed";
      readonly run: string;
      readonly worktree: string;
      readonly patch?: string;
    };

/** A command that was told of a moment has ended; `agentRun` is null where none is the matter. */
export interface HookFinished {
  readonly type: "hook.finished";
  readonly step: string;
  readonly agentRun: string | null;
  readonly event: HookMomentName;
  readonly command: string;
  /** Where it is written. */
  readonly from: string;
  /** `broken`: it could not be asked. `failed`: an exit code that blocks nothing. */
  readonly status: "passed" | "blocked" | "failed" | "broken";
  /** Its reason, or what it printed. */
  readonly text: string;
  readonly duration: number;
}
