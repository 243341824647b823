import type { Given } from "../compile/given-inputs.ts";
import type { Diagnostic, SourceTexts } from "../model/diagnostic.ts";
import type { LogLine } from "../model/event.ts";
import type { JsonObject } from "../model/json.ts";
import { exitCodes } from "../model/outcome.ts";
import type { Plan } from "../model/plan.ts";
import type { Asker } from "../model/ports.ts";
import type { Profile } from "../permissions/index.ts";
import type { RunEnd } from "./run-end.ts";

/** Which workflow, and where. */
export interface WorkflowSource {
  /** Path, relative to `cwd`; `-` for `stdin`. */
  readonly file: string;
  readonly stdin?: Uint8Array;
  /** Absolute; the process's working directory when absent. */
  readonly cwd?: string;
}

export interface RunRequest extends WorkflowSource, Conditions {
  readonly inputs?: Given;
}

/** What a run runs under, whether it begins or goes on. */
export interface Conditions {
  /** A file of replies that replaces every agent's model. */
  readonly script?: string;
  /** A run, or a log file, whose replies replace every agent's model. */
  readonly replay?: string;
  readonly env?: { readonly [name: string]: string | undefined };
  readonly runsDir?: string;
  /** Steps at once where the workflow does not say; 8 by default. */
  readonly parallel?: number;
  /** What agents may do where no rule says otherwise; reading the workspace when absent. */
  readonly profile?: Profile;
  /** Permission rules for this run: `Tool` or `Tool(pattern)`, each. */
  readonly allow?: readonly string[];
  /** False: steps with `cache` run whatever is kept; what they give is kept in its place. */
  readonly cache?: boolean;
  readonly logDeltas?: boolean;
  readonly fsync?: boolean;
  /** Paths of approvals that get a yes: before the run begins, or of those that are open in a resume. */
  readonly approve?: readonly string[];
  /** `field=value` or `PATH.field=value`, each: what goes into the forms of `approve`. */
  readonly form?: readonly string[];
  /** Goes with every answer. */
  readonly comment?: string;
  /** Who gives the answers; found out when absent. */
  readonly by?: string;
  /** Whom approvals ask while the run goes on; nobody when absent: then a run may end as `waiting`. */
  readonly asker?: Asker;
  /** Sees every event in the order of the log. */
  readonly onEvent?: (line: LogLine) => void;
  /** Aborted with `"SIGINT"` or `"SIGTERM"` as reason: the run is cancelled, and its `always()` steps run. */
  readonly signal?: AbortSignal;
  /** Aborted: everything ends at once. */
  readonly kill?: AbortSignal;
}

export interface ResumeRequest extends Conditions {
  /** `latest`, the id of a run, its beginning, or its folder. */
  readonly run: string;
  /** The workflow to go on with, when it is not the one the run was started with; relative to `cwd`. */
  readonly workflow?: string;
  /** Path of an execution: it and everything after it run again. */
  readonly from?: string;
  /** `PATH.output=value`, each: outputs of finished steps to replace. */
  readonly set?: readonly string[];
  /** Paths of open approvals that get a no. */
  readonly deny?: readonly string[];
  readonly cwd?: string;
}

/** A run that did not start, and why. Nothing has been executed or written. */
export type Refusal =
  | {
      readonly kind: "invalid";
      readonly exitCode: number;
      readonly diagnostics: readonly Diagnostic[];
      readonly sources: SourceTexts;
    }
  | { readonly kind: "unavailable" | "usage"; readonly exitCode: number; readonly message: string };

/** A workflow that could start now, with everything it would start with. */
export interface Prepared {
  readonly plan: Plan;
  readonly inputs: JsonObject;
  readonly warnings: readonly Diagnostic[];
  readonly sources: SourceTexts;
}

export type RunResult =
  | { readonly started: true; readonly end: RunEnd; readonly prepared: Prepared }
  | { readonly started: false; readonly refusal: Refusal };

/** A run that had succeeded already and that nothing was asked of has nothing left to do: it is `finished`. */
export type ResumeResult = RunResult | { readonly started: false; readonly finished: RunEnd };

/** Somebody has to ask for something else. */
export function usage(message: string): Refusal {
  return { kind: "usage", exitCode: exitCodes.usage, message };
}

/** Something that is needed is not there. */
export function unavailable(message: string): Refusal {
  return { kind: "unavailable", exitCode: exitCodes.unavailable, message };
}
