import { stepPath } from "../model/ids.ts";
import type { JsonObject } from "../model/json.ts";
import type { Failure } from "../model/outcome.ts";
import type { Edge, Scope, Step, Workflow } from "../model/plan.ts";
import type { Result } from "../model/result.ts";
import { unreachable } from "../model/result.ts";
import { deadline } from "./deadline.ts";
import type { Deadline } from "./deadline.ts";
import type { Verdict } from "./decide.ts";
import { decide, skipCancelled } from "./decide.ts";
import { type Done, type Engine, isEntered, reentering, type Sight, type StepRun } from "./engine.ts";
import type { Owner } from "./loop.ts";
import { skipped } from "./reasons.ts";
import { Activity, type Around, givingBack, type Waiting } from "./rest.ts";
import type { Settled } from "./reasons.ts";
import { Schedule } from "./schedule.ts";
import { seeSteps } from "./sight.ts";
import type { StepEnd } from "./step.ts";
import { failStep, runStep } from "./step.ts";
import { undoAll } from "./undo.ts";

/** What a scope runs with. */
export interface ScopeOptions {
  readonly engine: Engine;
  readonly workflow: Workflow;
  readonly scope: Scope;
  /** Path of the step that contains it; empty for the run's own. */
  readonly path: string;
  /** What its expressions see beside its `steps`. */
  readonly visible: Sight["visible"];
  /** The scope around it whose steps are seen here; none for a workflow's own. */
  readonly outer?: Sight;
  /** Aborted: what runs is told to end, what has not started is decided again under `cancelled()`. */
  readonly signal: AbortSignal;
  /** Undefined where nothing may wait. */
  readonly around: Around | undefined;
  /** Its outputs, or why it has failed after all; asked when all its steps have settled and none of them failed. */
  readonly conclude: (sight: Sight, outcome: "success" | "empty") => Result<JsonObject, readonly Failure[]>;
}

export interface ScopeEnd {
  readonly outcome: "success" | "failure" | "cancelled" | "empty";
  /** Empty unless it succeeded. */
  readonly outputs: JsonObject;
  /** At least one if it failed, with the paths of the steps that did; none is there in a failure of the scope itself. */
  readonly failures: readonly Failure[];
  /** What can be undone and was not: a scope that succeeded hands it outward. */
  readonly done: readonly Done[];
  readonly sight: Sight;
}

/** Milliseconds that steps which start after a cancel have. */
export const timeAfterCancel = 30_000;

/** Runs the steps of one scope until all have settled. */
export function runScope(options: ScopeOptions): Promise<ScopeEnd> {
  return new RunningScope(options).ended;
}

class RunningScope implements Owner {
  readonly ended: Promise<ScopeEnd>;
  readonly #end: (end: ScopeEnd) => void;
  readonly #options: ScopeOptions;
  readonly #schedule: Schedule;
  readonly #settled: (Settled | undefined)[];
  readonly #sight: Sight;
  readonly #failures: Failure[] = [];
  readonly #done: Done[] = [];
  readonly #activity: Activity;
  #ran = false;
  /** Written edges by their target; made when a resume asks. */
  #needs: Map<number, Edge[]> | undefined;
  /** What steps run under that start after the cancel. */
  #cleanup: Deadline | undefined;
  /** It is only entered, and something in it had not come to its end: the cancel came there. */
  #isCut = false;

  constructor(options: ScopeOptions) {
    const { scope, workflow, visible, outer, engine } = options;
    const { promise, resolve } = Promise.withResolvers<ScopeEnd>();
    this.ended = promise;
    this.#end = resolve;
    this.#options = options;
    const joinAny = (step: number): boolean => scope.steps[step]?.join === "any";
    this.#schedule = new Schedule({ steps: scope.steps.length, edges: scope.edges, joinAny });
    this.#settled = scope.steps.map(() => undefined);
    const seen = seeSteps(scope, this.#settled, outer);
    const contexts = { ...visible.contexts, steps: seen.steps };
    this.#sight = { ...seen, workflow, visible: { ...visible, contexts } };
    this.#activity = new Activity(options.around, (waiting) => this.#judge(waiting));
    for (const step of this.#schedule.initial()) this.#decideLater(step);
    this.#endIfFinished();
    engine.loop.turn();
  }

  #decideLater(index: number): void {
    this.#activity.begin();
    this.#options.engine.loop.decideLater(this, index);
  }

  decide(index: number): void {
    const { engine } = this.#options;
    const run = this.#stepRun(index);
    if (!this.#mayRun(index, run)) return;
    if (!needsSlot(run.step)) this.#begin(index, run, false);
    else if (engine.lane.line(this, index)) engine.emit({ type: "step.ready", step: run.path });
  }

  start(index: number): void {
    const run = this.#stepRun(index);
    // A cancel may have come while it stood in line.
    if (!this.#cancelled || this.#mayRun(index, run)) this.#begin(index, run, true);
    else this.#options.engine.lane.release();
  }

  /** Settles the step if it may not, or enters it for what it has done. */
  #mayRun(index: number, run: StepRun): boolean {
    const verdict = this.#verdict(index, run);
    switch (verdict.kind) {
      case "run":
        return true;
      case "skip":
        run.engine.emit({ type: "step.skipped", step: run.path, reason: verdict.reason });
        this.#settle(index, run, { settled: skipped(verdict.reason) });
        return false;
      case "fail":
        this.#settle(index, run, failStep(run, verdict.error));
        return false;
      case "enter":
        this.#begin(index, reentering(run), false);
        return false;
      default:
        return unreachable(verdict);
    }
  }

  /** `enter`: a cancel starts nothing, but what a resume finds done has to be known to be taken back. */
  #verdict(index: number, { engine, step, path, signal }: StepRun): Verdict | { readonly kind: "enter" } {
    // The time after the cancel is over, too.
    if (signal.aborted) return skipCancelled;
    const { scope } = this.#options;
    const asked = { engine, scope, schedule: this.#schedule, sight: this.#sight };
    if ((this.#cancelled || this.#isReentered) && isEntered({ engine, step, path })) {
      const before = decide({ ...asked, cancelled: false }, index, step);
      if (before.kind === "run") return { kind: "enter" };
    }
    const verdict = decide({ ...asked, cancelled: this.#cancelled }, index, step);
    if (verdict.kind !== "run" || !this.#isReentered || this.#cancelled) return verdict;
    this.#isCut = true;
    return decide({ ...asked, cancelled: true }, index, step);
  }

  #begin(index: number, run: StepRun, hasSlot: boolean): void {
    const { lane, loop, past } = run.engine;
    past?.follow(run.path, this.#needed(index));
    const ended = (end: StepEnd): void => {
      if (hasSlot) lane.release();
      this.#settle(index, run, end);
    };
    const around = hasSlot ? givingBack(run.engine, run.around) : run.around;
    const end = runStep({ ...run, around });
    if (end instanceof Promise) loop.after(end, ended);
    else ended(end);
  }

  /** Paths of the steps that `needs` and `edges` name; what a mere reference brings is seen in the inputs. */
  #needed(index: number): string[] {
    const { scope, path } = this.#options;
    this.#needs ??= Map.groupBy(
      scope.edges.filter((edge) => edge.origin === "written"),
      (edge) => edge.to,
    );
    return (this.#needs.get(index) ?? []).map((edge) => stepPath(path, scope.steps[edge.from]?.id ?? ""));
  }

  #settle(index: number, { path }: StepRun, { settled, failures, done }: StepEnd): void {
    this.#settled[index] = settled;
    for (const execution of done ?? []) this.#done.push(execution);
    if (settled.outcome !== "skipped") this.#ran = true;
    if (this.#isReentered && settled.outcome === "cancelled") this.#isCut = true;
    if (settled.conclusion === "failure" && settled.error !== undefined)
      for (const failure of failures ?? [settled.error]) this.#failures.push({ step: path, ...failure });
    for (const next of this.#schedule.settle(index, settled.conclusion)) this.#decideLater(next);
    this.#endIfFinished();
    this.#activity.end(index);
  }

  #endIfFinished(): void {
    if (!this.#schedule.finished) return;
    this.#cleanup?.close();
    const end = this.#concluded();
    if (end.outcome === "success" || this.#done.length === 0) this.#end({ ...end, done: this.#done });
    else this.#undo(end);
  }

  /** Nobody is asked after a cancel, nor where it changes nothing: the scope has failed and no step comes after. */
  #judge(waiting: ReadonlyMap<number, Waiting>): { releases: boolean; isMoot: boolean } {
    const { steps } = this.#options.scope;
    const releases =
      [...waiting.values()].some((one) => one.releases) ||
      this.#schedule.mayRelease(waiting, (step) => steps[step]?.if?.status === true);
    return { releases, isMoot: this.#cancelled || (this.#failures.length > 0 && !releases) };
  }

  #concluded(): ScopeEnd {
    const outcome = this.#ran ? "success" : "empty";
    const end = { outputs: {}, failures: this.#failures, done: [], sight: this.#sight };
    if (this.#cancelled) return { ...end, outcome: "cancelled" };
    if (this.#failures.length > 0) return { ...end, outcome: "failure" };
    const concluded = this.#options.conclude(this.#sight, outcome);
    if (concluded.ok) return { ...end, outcome, outputs: concluded.value };
    return { ...end, outcome: "failure", failures: concluded.error };
  }

  /** Takes back what succeeded here before the scope settles; after a cancel there is only so much time for it. */
  #undo(end: ScopeEnd): void {
    const { engine } = this.#options;
    const time = this.#cancelled ? deadline(engine.clock, timeAfterCancel, engine.ending) : undefined;
    engine.loop.after(undoAll(engine, this.#done, time?.signal ?? engine.ending), () => {
      time?.close();
      this.#end(end);
    });
  }

  get #cancelled(): boolean {
    return this.#isCut || this.#options.signal.aborted;
  }

  get #isReentered(): boolean {
    return this.#options.engine.reenters;
  }

  #stepRun(index: number): StepRun {
    const { engine, scope, path } = this.#options;
    const step = scope.steps[index];
    if (step === undefined) throw new Error(`no step ${index}`);
    const around = this.#activity.of(index);
    const own = engine.reenters ? { ...engine, reenters: false } : engine;
    return { engine: own, step, path: stepPath(path, step.id), sight: this.#sight, signal: this.#signal(), around };
  }

  /** What a step that starts now runs under. */
  #signal(): AbortSignal {
    const { engine, signal } = this.#options;
    if (!this.#cancelled) return signal;
    this.#cleanup ??= deadline(engine.clock, timeAfterCancel, engine.ending);
    return this.#cleanup.signal;
  }
}

/** A step that contains executions takes no slot: each execution inside lines up for its own. */
function needsSlot(step: Step): boolean {
  return step.scope === undefined && step.foreach === undefined;
}
