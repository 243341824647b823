import type { JsonObject } from "../model/json.ts";
import type { Usage } from "../model/message.ts";
import type { Failure, RunOutcome } from "../model/outcome.ts";
import type { OpenApproval } from "../model/ports.ts";
import type { LimitSpent } from "../model/spending.ts";

/** How a run ended. Paths are absolute. */
export interface RunEnd {
  readonly run: string;
  readonly outcome: RunOutcome;
  /** Secrets in them are masked. */
  readonly outputs: JsonObject;
  readonly error?: Failure;
  /** Of every step that concluded `failure`, in the order they ended, each with its path in `step`; `error` is the first. */
  readonly failures: readonly Failure[];
  /** Of every `undo` that failed, with the path it was for in `step`: what that execution did is still there. */
  readonly notUndone?: readonly Failure[];
  readonly usage: Usage;
  /** What was spent of the run's own limits on cost and tokens, if it has any. */
  readonly budget?: readonly LimitSpent[];
  /** Milliseconds. */
  readonly duration: number;
  readonly exitCode: number;
  readonly log: string;
  /** The approvals a run with the outcome `waiting` waits for, in the order they were asked. */
  readonly waiting?: readonly OpenApproval[];
}
