import { whenAborted } from "../model/abort.ts";
import { itemPath } from "../model/ids.ts";
import type { Json, JsonObject } from "../model/json.ts";
import { isJsonObject } from "../model/json.ts";
import { expandMatrix, itemLimit, matrixProblem } from "../model/matrix.ts";
import type { Failure } from "../model/outcome.ts";
import type { Foreach } from "../model/plan.ts";
import type { Result } from "../model/result.ts";
import { err, ok } from "../model/result.ts";
import { type BodyResult, type Done, isEntered, reentering, type RunOne, type StepRun } from "./engine.ts";
import type { Owner } from "./loop.ts";
import { expressionFailure } from "./reasons.ts";
import { Activity, type Around, givingBack } from "./rest.ts";
import { seeMore } from "./sight.ts";

/** Runs a step once per item: side by side as far as `parallel` and the slots allow, results in the order of the items. */
export function runItems(run: StepRun, foreach: Foreach, runOne: RunOne): BodyResult | Promise<BodyResult> {
  const items = itemsOf(run, foreach);
  if (!items.ok) return run.engine.reenters ? { outcome: "cancelled" } : { outcome: "failure", error: items.error };
  if (items.value.length === 0) return succeeded([]);
  return new RunningItems({ run, foreach, items: items.value, runOne }).ended;
}

function itemsOf({ engine, sight }: StepRun, foreach: Foreach): Result<readonly Json[], Failure> {
  const resolved = engine.evaluator.resolve(foreach.items, sight.visible);
  if (!resolved.ok) return err(expressionFailure(resolved.error));
  const written = resolved.value;
  const isMatrix = foreach.matrix && isJsonObject(written);
  const problem = isMatrix ? matrixProblem(written) : undefined;
  if (problem !== undefined) return badInput(problem);
  const list = isMatrix ? expandMatrix(written) : written;
  const what = foreach.matrix ? "matrix" : "foreach";
  if (!Array.isArray(list))
    return badInput(`\`${what}\` needs a list, and this is ${JSON.stringify(list).slice(0, 80)}`);
  if (list.length <= itemLimit) return ok(list);
  const amount = isMatrix ? "has more" : `has ${list.length}`;
  return badInput(`\`${what}\` takes at most ${itemLimit} items, and this ${amount}`);
}

function badInput(message: string): Result<never, Failure> {
  return err({ kind: "input", message });
}

interface ItemsOptions {
  readonly run: StepRun;
  readonly foreach: Foreach;
  readonly items: readonly Json[];
  readonly runOne: RunOne;
}

class RunningItems implements Owner {
  readonly ended: Promise<BodyResult>;
  readonly #end: (result: BodyResult) => void;
  readonly #options: ItemsOptions;
  readonly #results: (BodyResult | undefined)[];
  readonly #done: Done[] = [];
  /** Aborted with the run, or by the first failure. */
  readonly #stop = new AbortController();
  readonly #unlink: () => void;
  readonly #activity: Activity;
  /** Items that can go on after a wait and have no place. */
  readonly #returning: (() => void)[] = [];
  /** Places for items; one that waits has none. */
  #free: number;
  #next = 0;
  #left: number;

  constructor(options: ItemsOptions) {
    const { run, foreach, items } = options;
    const { promise, resolve } = Promise.withResolvers<BodyResult>();
    this.ended = promise;
    this.#end = resolve;
    this.#options = options;
    this.#results = items.map(() => undefined);
    this.#left = items.length;
    this.#unlink = whenAborted(run.signal, () => this.#stop.abort(run.signal.reason));
    this.#activity = new Activity(run.around, (waiting) => ({
      releases: [...waiting.values()].some((one) => one.releases),
      // By the first failure, or with the run.
      isMoot: this.#stop.signal.aborted,
    }));
    this.#free = foreach.parallel ?? items.length;
    this.#fill();
    run.engine.loop.turn();
  }

  decide(index: number): void {
    const { engine, step, path } = this.#options.run;
    if (this.#stop.signal.aborted || engine.reenters) this.#leaveOut(index);
    else if (step.scope !== undefined) this.#begin(index, this.#options.run, false);
    else if (engine.lane.line(this, index)) engine.emit({ type: "step.ready", step: itemPath(path, index) });
  }

  start(index: number): void {
    if (!this.#stop.signal.aborted) {
      this.#begin(index, this.#options.run, true);
      return;
    }
    this.#options.run.engine.lane.release();
    this.#leaveOut(index);
  }

  /** Who was here before goes first. */
  #fill(): void {
    const { run, items } = this.#options;
    while (this.#free > 0) {
      const back = this.#returning.shift();
      if (back === undefined && this.#next === items.length) return;
      this.#free -= 1;
      if (back !== undefined) back();
      else {
        this.#activity.begin();
        run.engine.loop.decideLater(this, this.#next++);
      }
    }
  }

  /** Around an item: it gives its place away while it waits. */
  #around(index: number): Around | undefined {
    const inner = this.#activity.of(index);
    return (
      inner && {
        rest: (waiting) => {
          this.#free += 1;
          this.#fill();
          inner.rest(waiting);
        },
        wake: (then) => {
          this.#returning.push(() => inner.wake(then));
          this.#fill();
        },
      }
    );
  }

  #begin(index: number, run: StepRun, hasSlot: boolean): void {
    const { items, runOne, foreach } = this.#options;
    const { lane, loop } = run.engine;
    const item = items[index] ?? null;
    const own = { item, index, ...(foreach.matrix && { matrix: item }) };
    const sight = seeMore(run.sight, own);
    const ended = (result: BodyResult): void => {
      if (hasSlot) lane.release();
      this.#settle(index, result);
    };
    const place = this.#around(index);
    const around = hasSlot ? givingBack(run.engine, place) : place;
    const signal = run.engine.reenters ? run.signal : this.#stop.signal;
    const result = runOne({ ...run, path: itemPath(run.path, index), sight, signal, around });
    if (result instanceof Promise) loop.after(result, ended);
    else ended(result);
  }

  /** What a resume finds done is entered all the same, so that it can be taken back. */
  #leaveOut(index: number): void {
    const { run } = this.#options;
    const path = itemPath(run.path, index);
    if (isEntered({ ...run, path })) {
      this.#begin(index, reentering(run), false);
      return;
    }
    run.engine.emit({ type: "step.skipped", step: path, reason: { kind: "cancelled" } });
    this.#settle(index, { outcome: "cancelled" });
  }

  #settle(index: number, result: BodyResult): void {
    const { foreach } = this.#options;
    this.#results[index] = result;
    for (const execution of result.done ?? []) this.#done.push(execution);
    if (result.outcome === "failure" && foreach.failFast) this.#stop.abort();
    this.#left -= 1;
    this.#free += 1;
    this.#fill();
    this.#activity.end(index);
    if (this.#left > 0) return;
    this.#unlink();
    this.#end(this.#result());
  }

  #result(): BodyResult {
    const { run, items } = this.#options;
    const values = this.#results.map((result) => (result?.outcome === "success" ? result.outputs : null));
    const failed: JsonObject[] = [];
    const failures: Failure[] = [];
    this.#results.forEach((result, index) => {
      if (result?.outcome !== "failure") return;
      const { kind, message } = result.error;
      failed.push({ index, item: items[index] ?? null, error: { kind, message } });
      for (const failure of result.failures ?? [result.error])
        failures.push({ step: itemPath(run.path, index), ...failure });
    });
    const outputs = { items: values, failed };
    const done = this.#done;
    const [error] = failures;
    if (run.signal.aborted) return { outcome: "cancelled", outputs, done };
    if (error !== undefined) return { outcome: "failure", error, failures, outputs, done };
    if (this.#results.some((result) => result?.outcome === "cancelled")) return { outcome: "cancelled", outputs, done };
    // As a group none of whose steps ran.
    if (this.#results.every((result) => result?.outcome === "empty")) return { outcome: "empty", done };
    return { ...succeeded(values), done };
  }
}

function succeeded(items: Json[]): BodyResult & { readonly outcome: "success" } {
  const outputs = { items, failed: [] };
  return { outcome: "success", result: outputs, outputs };
}
