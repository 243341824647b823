import type { Scope as Visible } from "../expr/evaluate.ts";
import { createEvaluator } from "../expr/template.ts";
import { whenAborted } from "../model/abort.ts";
import type { JsonObject } from "../model/json.ts";
import type { Failure, RunOutcome } from "../model/outcome.ts";
import type { Plan, Step } from "../model/plan.ts";
import type { Cache, Clock, Emit, Execute, Spend } from "../model/ports.ts";
import { noSpend } from "../model/spending.ts";
import type { Engine } from "./engine.ts";
import { createInputCheck } from "./inputs.ts";
import { withSpending } from "./limits.ts";
import { Loop } from "./loop.ts";
import type { Around } from "./rest.ts";
import type { FingerprintOf, Past } from "./resume.ts";
import { timeAfterCancel } from "./scope.ts";
import { runInner, runWorkflow } from "./workflow.ts";

export interface RunOptions {
  readonly plan: Plan;
  /** Values of the root workflow's inputs, checked; defaults are filled in here. */
  readonly inputs: JsonObject;
  /** The declared secrets of every workflow in the plan. */
  readonly secrets: { readonly [name: string]: string };
  /** The `run` context beside `workflow`; `started` is RFC 3339. */
  readonly run: { readonly id: string; readonly started: string };
  /** Runs one attempt of a step that contains no steps. */
  readonly execute: Execute;
  /** Whether a step can be tried again; only then its attempts are reported. */
  readonly retriable: (step: Step) => boolean;
  /** Stands for a step and the values it was given; absent where nobody will ever resume the run. */
  readonly fingerprint?: FingerprintOf;
  /** What the run left before it was resumed. */
  readonly past?: Past;
  /** Outputs of earlier executions, for the steps that ask for them. */
  readonly cache?: Cache;
  /** Gets every `step.…` event; `run.…` events are the caller's. */
  readonly emit: Emit;
  readonly clock: Clock;
  /** In [0, 1), for the jitter of retries; `Math.random` when absent. */
  readonly random?: () => number;
  /** Aborted: the run is cancelled; steps whose condition asks for it still run, for 30 s. */
  readonly signal: AbortSignal;
  /** Aborted: every step settles at once as cancelled, whatever it is doing. */
  readonly kill?: AbortSignal;
  /** What was spent so far in the execution at a path, by the whole run when it is empty; nothing when absent. */
  readonly spent?: (path: string) => Spend;
  /** How many steps run at once where the workflow does not say. */
  readonly parallel: number;
  readonly hashFiles?: Visible["hashFiles"];
}

export interface RunResult {
  readonly outcome: RunOutcome;
  /** Empty unless the outcome is `success`. */
  readonly outputs: JsonObject;
  /** Why it failed: the first of `failures`. */
  readonly error?: Failure;
  /** Of the steps that concluded `failure`, with their paths in `step`, and of the run itself; for the exit code. */
  readonly failures: readonly Failure[];
}

/** Runs a plan to its end. Rejects only on a bug. */
export async function runPlan(options: RunOptions): Promise<RunResult> {
  const { plan, inputs, clock } = options;
  const workflow = plan.workflows[plan.root];
  if (workflow === undefined) throw new Error(`the plan has no workflow ${plan.root}`);
  const crashed = Promise.withResolvers<never>();
  const stops = linkStops(options);
  const hopes = { count: 0 };
  const waiting = Promise.withResolvers<Pick<RunResult, "outcome" | "outputs" | "failures">>();
  // Whoever could answer is not here: everything is left as it is, and the log tells a resume how that was.
  const rest = (): void => {
    if (hopes.count === 0) waiting.resolve({ outcome: "waiting", outputs: {}, failures: [] });
  };
  const around: Around = { rest, wake: (then) => then() };
  const loop = new Loop(workflow.limits.parallel ?? options.parallel, crashed.reject);
  const engine: Engine = {
    plan,
    run: { ...options.run, workflow: workflow.name },
    secrets: options.secrets,
    execute: options.execute,
    inner: runInner,
    retriable: options.retriable,
    fingerprint: options.fingerprint,
    past: options.past,
    reenters: false,
    cache: options.cache,
    emit: options.emit,
    clock,
    random: options.random ?? Math.random,
    evaluator: createEvaluator(),
    hashFiles: options.hashFiles,
    loop,
    lane: loop,
    budget: undefined,
    turns: undefined,
    spent: options.spent ?? (() => noSpend),
    hopes,
    checkInputs: createInputCheck(),
    ending: stops.ending,
    kill: stops.kill,
  };
  try {
    const inside = withSpending(engine, workflow.limits, { of: "the run", path: "" });
    const run = runWorkflow(inside, { workflow, inputs, path: "", signal: stops.signal, around });
    const { outcome, outputs, failures } = await Promise.race([run, crashed.promise, waiting.promise]);
    const [error] = failures;
    return { outcome, outputs, failures, ...(outcome === "failure" && error !== undefined && { error }) };
  } finally {
    stops.close();
  }
}

interface Stops {
  readonly signal: AbortSignal;
  readonly ending: AbortSignal;
  readonly kill: AbortSignal;
  readonly close: () => void;
}

/** A cancel, the end of the time after it, and the kill: each of them brings the ones before it. */
function linkStops({ signal, kill, clock }: RunOptions): Stops {
  const cancel = new AbortController();
  const ending = new AbortController();
  const killed = kill ?? new AbortController().signal;
  let stop = (): void => undefined;
  const unlinkKill = whenAborted(killed, () => {
    ending.abort();
    cancel.abort();
  });
  const unlink = whenAborted(signal, () => {
    stop = clock.after(timeAfterCancel, () => ending.abort());
    cancel.abort(signal.reason);
  });
  const close = (): void => {
    unlinkKill();
    unlink();
    stop();
  };
  return { signal: cancel.signal, ending: ending.signal, kill: killed, close };
}
