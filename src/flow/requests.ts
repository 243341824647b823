import type { Given } from "../compile/given-inputs.ts";
import type { Diagnostic, SourceTexts } from "../model/diagnostic.ts";
import type { LogLine } from "../model/event.ts";
import type { JsonObject } from "../model/json.ts";
import { exitCodes } from "../model/outcome.ts";
import type { Plan } from "../model/plan.ts";
import type { Answer, Asker } from "../model/ports.ts";
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

export interface RunRequest extends WorkflowSource, Conditions, GivenInputs {}

export interface GivenInputs {
  readonly inputs?: JsonObject;
  /** Inputs as somebody typed them: each takes the declared type, and goes before the same one in `inputs`. */
  readonly inputTexts?: Given["texts"];
}

/** One agent, run once. Its answer is the output `answer`: a text, or an object where it has an `output` schema. */
export interface AgentRequest
  extends Omit<Conditions, "answers" | "approve" | "deny" | "form" | "comment" | "cache" | "parallel">, GivenInputs {
  /** Its name or file, as a workflow in `cwd` would name it; or its definition, as under a workflow's `agents`. */
  readonly agent: string | JsonObject;
  /** What it is asked, word for word; absent where it has a prompt of its own, which its inputs fill. */
  readonly prompt?: string;
  /** `provider/name`, or several to try in order, in place of the agent's own. */
  readonly model?: string | readonly string[];
  /** Environment variables that its MCP servers may name as `secrets.NAME`; they are masked. */
  readonly secrets?: readonly string[];
  /** Absolute; the process's working directory when absent. */
  readonly cwd?: string;
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
  /** Answers to approvals, by their paths: before the run begins, or to those that are open in a resume. */
  readonly answers?: { readonly [path: string]: Answer };
  /** Paths of approvals that get a yes, likewise; this and the three below are answers as somebody types them. */
  readonly approve?: readonly string[];
  /** Paths of approvals that get a no. */
  readonly deny?: readonly string[];
  /** `field=value` or `PATH.field=value`, each: what goes into the forms of `approve`. */
  readonly form?: readonly string[];
  /** Goes with `approve` and `deny`. */
  readonly comment?: string;
  /** Who gives the answers; found out when absent. */
  readonly by?: string;
  /** Whom approvals ask while the run goes on; nobody when absent: then a run may end as `waiting`. */
  readonly asker?: Asker;
  /** Sees every event in the order of the log, before the run goes on. What it throws is nobody's: an uncaught exception. */
  readonly onEvent?: (line: LogLine) => void;
  /** Aborted with `"SIGINT"` or `"SIGTERM"` as reason: the run is cancelled, and its `always()` steps run. */
  readonly signal?: AbortSignal;
  /** Aborted: everything ends at once. */
  readonly kill?: AbortSignal;
}

/**
 * Cancels one agent run by its id, with all that it spawned or alone: then what it spawned goes on, and reports to
 * whoever spawned it. False where none of that id is under way.
 */
export type CancelAgent = (agent: string, how: { readonly children: boolean }) => boolean;

/** Is told of a run's log while it is written. */
export interface LogWatch {
  /** Agents run from now on. */
  agents(cancel: CancelAgent): void;
  /** What the run writes begins at byte `start` of the file, whose path is absolute. */
  opened(log: { readonly file: string; readonly start: number }): void;
  grew(): void;
}

/** Goes with a request inside the house. */
export interface Watched {
  readonly watch?: LogWatch;
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
  | PlainRefusal;

/** One that a line says. */
export interface PlainRefusal {
  readonly kind: "unavailable" | "usage";
  readonly exitCode: number;
  readonly message: string;
}

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
export function usage(message: string): PlainRefusal {
  return { kind: "usage", exitCode: exitCodes.usage, message };
}

/** Something that is needed is not there. */
export function unavailable(message: string): PlainRefusal {
  return { kind: "unavailable", exitCode: exitCodes.unavailable, message };
}
