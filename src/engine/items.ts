import { itemPath } from "../model/ids.ts";
import type { Json, JsonObject } from "../model/json.ts";
import { isJsonObject } from "../model/json.ts";
import { expandMatrix, itemLimit, matrixProblem } from "../model/matrix.ts";
import type { Failure } from "../model/outcome.ts";
import type { Foreach } from "../model/plan.ts";
import type { Result } from "../model/result.ts";
import { err, ok } from "../model/result.ts";
import { whenAborted } from "./deadline.ts";
import type { BodyResult, Done, RunOne, StepRun } from "./engine.ts";
import type { Owner } from "./loop.ts";
import { expressionFailure } from "./reasons.ts";
import { seeMore } from "./sight.ts";

/** Runs a step once per item: side by side as far as `parallel` and the slots allow, results in the order of the items. */
export function runItems(run: StepRun, foreach: Foreach, runOne: RunOne): BodyResult | Promise<BodyResult> {
  const items = itemsOf(run, foreach);
  if (!items.ok) return { outcome: "failure", error: items.error };
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
    const atOnce = Math.min(foreach.parallel ?? items.length, items.length);
    while (this.#next < atOnce) run.engine.loop.decideLater(this, this.#next++);
    run.engine.loop.turn();
  }

  decide(index: number): void {
    const { engine, step, path } = this.#options.run;
    if (this.#stop.signal.aborted) this.#leaveOut(index);
    else if (step.scope !== undefined) this.#begin(index);
    else if (engine.lane.line(this, index)) engine.emit({ type: "step.ready", step: itemPath(path, index) });
  }

  start(index: number): void {
    if (!this.#stop.signal.aborted) {
      this.#begin(index);
      return;
    }
    this.#options.run.engine.lane.release();
    this.#leaveOut(index);
  }

  #begin(index: number): void {
    const { run, items, runOne, foreach } = this.#options;
    const { lane, loop } = run.engine;
    const item = items[index] ?? null;
    const own = { item, index, ...(foreach.matrix && { matrix: item }) };
    const sight = seeMore(run.sight, own);
    const ended = (result: BodyResult): void => {
      if (run.step.scope === undefined) lane.release();
      this.#settle(index, result);
    };
    const result = runOne({ ...run, path: itemPath(run.path, index), sight, signal: this.#stop.signal });
    if (result instanceof Promise) loop.after(result, ended);
    else ended(result);
  }

  #leaveOut(index: number): void {
    const { engine, path } = this.#options.run;
    engine.emit({ type: "step.skipped", step: itemPath(path, index), reason: { kind: "cancelled" } });
    this.#settle(index, { outcome: "cancelled" });
  }

  #settle(index: number, result: BodyResult): void {
    const { run, foreach, items } = this.#options;
    this.#results[index] = result;
    for (const execution of result.done ?? []) this.#done.push(execution);
    if (result.outcome === "failure" && foreach.failFast) this.#stop.abort();
    this.#left -= 1;
    if (this.#next < items.length) run.engine.loop.decideLater(this, this.#next++);
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
