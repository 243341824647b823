import type { Scope as Visible } from "../expr/evaluate.ts";
import type { Evaluator } from "../expr/template.ts";
import type { Lookup } from "../expr/value.ts";
import type { Json, JsonObject } from "../model/json.ts";
import type { Failure, StepResult } from "../model/outcome.ts";
import type { Plan, Step, Workflow } from "../model/plan.ts";
import type { Attempt, Clock, Emit, Execute } from "../model/ports.ts";
import type { Lane, Loop } from "./loop.ts";
import type { CheckInputs } from "./inputs.ts";
import type { Settled } from "./reasons.ts";
import type { FingerprintOf, Past } from "./resume.ts";

/** What all parts of one run share. */
export interface Engine {
  readonly plan: Plan;
  /** The `run` context. */
  readonly run: JsonObject;
  /** The declared secrets of every workflow in the plan. */
  readonly secrets: { readonly [name: string]: string };
  readonly execute: Execute;
  /** Runs a step that contains steps; `sight` is what the step itself sees. */
  readonly inner: (engine: Engine, attempt: Attempt, sight: Sight) => Promise<BodyResult>;
  /** Whether a step of this kind can be tried again: only those report their attempts. */
  readonly retriable: (step: Step) => boolean;
  /** Absent where nobody will ever resume the run. */
  readonly fingerprint: FingerprintOf | undefined;
  /** What the run left before it was resumed; absent in a new run. */
  readonly past: Past | undefined;
  readonly emit: Emit;
  readonly clock: Clock;
  /** In [0, 1), for the jitter of retries. */
  readonly random: () => number;
  readonly evaluator: Evaluator;
  readonly hashFiles: Visible["hashFiles"];
  readonly loop: Loop;
  /** Where executions line up: the run's slots, or fewer of them inside a step or workflow with a limit of its own. */
  readonly lane: Lane;
  readonly checkInputs: CheckInputs;
  /** Everything ends as fast as it can: the time for steps that run after a cancel is over. */
  readonly ending: AbortSignal;
  /** Everything is left as it is, at once. */
  readonly kill: AbortSignal;
}

/** What the expressions of one scope see. Nothing in it is copied: a value is looked up when an expression asks. */
export interface Sight {
  readonly workflow: Workflow;
  readonly visible: Visible;
  readonly steps: Lookup;
  /** The step of that id here or in an enclosing scope; ignores case. Undefined while it has not settled. */
  readonly settled: (id: string) => Settled | undefined;
}

/** One execution of a step that was decided to run: the whole step, an item or an iteration of it. */
export interface StepRun {
  readonly engine: Engine;
  readonly step: Step;
  readonly path: string;
  readonly sight: Sight;
  readonly signal: AbortSignal;
}

/** Runs the body of one item or iteration. */
export type RunOne = (run: StepRun) => BodyResult | Promise<BodyResult>;

/** An execution that succeeded and has an `undo`. */
export interface Done {
  readonly step: Step;
  readonly path: string;
  readonly sight: Sight;
  readonly outputs: Json;
}

/** What the body of a step gave: one attempt of its kind, or its own steps. */
export type BodyResult =
  | (StepResult & {
      /** Those of all its own steps, so that none hides behind the first. */
      readonly failures?: readonly Failure[];
      /** What succeeded inside and can be undone, in order; the scope around decides about it. */
      readonly done?: readonly Done[];
      /** What expressions see inside a step that contains steps. */
      readonly sight?: Sight;
    })
  /** All its own steps were skipped. */
  | { readonly outcome: "empty"; readonly done?: readonly Done[] };
