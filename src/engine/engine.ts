import type { Scope as Visible } from "../expr/evaluate.ts";
import type { Evaluator } from "../expr/template.ts";
import type { Lookup } from "../expr/value.ts";
import type { Json, JsonObject } from "../model/json.ts";
import type { Failure, StepResult } from "../model/outcome.ts";
import type { Plan, Step, Workflow } from "../model/plan.ts";
import type { Attempt, Budget, Cache, Clock, Emit, Execute, Spend } from "../model/ports.ts";
import type { Lane, Loop } from "./loop.ts";
import type { CheckInputs } from "./inputs.ts";
import type { Settled } from "./reasons.ts";
import type { Around, Hopes } from "./rest.ts";
import type { FingerprintOf, Past } from "./resume.ts";

/** What all parts of one run share. */
export interface Engine {
  readonly plan: Plan;
  /** The `run` context. */
  readonly run: JsonObject;
  /** The declared secrets of every workflow in the plan. */
  readonly secrets: { readonly [name: string]: string };
  readonly execute: Execute;
  /** Runs a step that contains steps; the first says where it stands. */
  readonly inner: (place: Place, attempt: Attempt) => Promise<BodyResult>;
  /** Whether a step of this kind can be tried again or gone on with: only those report their attempts. */
  readonly retriable: (step: Step) => boolean;
  /** Absent where nobody will ever resume the run. */
  readonly fingerprint: FingerprintOf | undefined;
  /** What the run left before it was resumed; absent in a new run. */
  readonly past: Past | undefined;
  /** After a cancel what a resume finds done is entered, to be taken back: no execution starts here. */
  readonly reenters: boolean;
  /** Outputs of earlier executions; absent where nothing is kept. */
  readonly cache: Cache | undefined;
  readonly emit: Emit;
  readonly clock: Clock;
  /** In [0, 1), for the jitter of retries. */
  readonly random: () => number;
  readonly evaluator: Evaluator;
  readonly hashFiles: Visible["hashFiles"];
  readonly loop: Loop;
  /** Where executions line up: the run's slots, or fewer of them inside a step or workflow with a limit of its own. */
  readonly lane: Lane;
  /** The limits on what is spent, and on the turns of agents, here; undefined where none is in force. */
  readonly budget: Budget | undefined;
  readonly turns: number | undefined;
  /** What was spent in the execution at a path, by the whole run when it is empty; asked when a limit on it begins. */
  readonly spent: (path: string) => Spend;
  readonly hopes: Hopes;
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

/** Where an execution stands. */
export interface Place {
  readonly engine: Engine;
  readonly sight: Sight;
  /** Undefined where nothing may wait. */
  readonly around: Around | undefined;
}

/** One execution of a step that was decided to run: the whole step, an item or an iteration of it. */
export interface StepRun extends Place {
  readonly step: Step;
  readonly path: string;
  readonly signal: AbortSignal;
}

/** Whether there is something to enter after a cancel; in a step that contains steps all of them may have been skipped. */
export function isEntered({ engine: { past }, step, path }: Pick<StepRun, "engine" | "step" | "path">): boolean {
  return past !== undefined && (past.holds(path) || (step.scope !== undefined && past.began(path)));
}

/** The same where nothing starts, for as long as there is time after the cancel. */
export function reentering(run: StepRun): StepRun {
  const { engine } = run;
  return { ...run, engine: { ...engine, reenters: true }, signal: engine.ending };
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
