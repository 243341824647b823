import type { Scope as Visible } from "../expr/evaluate.ts";
import { isJsonObject, type Json, type JsonObject } from "../model/json.ts";
import type { Failure, SeenValue } from "../model/outcome.ts";
import type { Expression } from "../model/plan.ts";
import type { Cache, CacheAnswer, CacheQuestion } from "../model/ports.ts";
import { err, ok, type Result } from "../model/result.ts";
import type { BodyResult, RunOne, StepRun } from "./engine.ts";
import { expressionFailure } from "./reasons.ts";

/** Runs a step or item unless an identical one was run before; then its outputs are those, and nothing in it runs. */
export async function runCached(run: StepRun, cache: Cache, runOne: RunOne): Promise<BodyResult> {
  const question = questionOf(run);
  if (!question.ok) return { outcome: "failure", error: question.error };
  if (question.value === undefined) return runOne(run);
  const answer = await cache.ask(question.value);
  if (!answer.ok) return { outcome: "failure", error: { kind: "input", message: answer.error } };
  return reuseOrRun(run, answer.value, runOne);
}

async function reuseOrRun(run: StepRun, answer: CacheAnswer, runOne: RunOne): Promise<BodyResult> {
  const { engine, step, path } = run;
  const { key, found } = answer;
  const recalled = engine.past?.recallCached({ path, step, key }) ?? { kind: "ask" };
  if (recalled.kind === "reuse") {
    engine.emit({ type: "step.reused", step: path, end: recalled.seq });
    return succeeded(recalled.end.outputs ?? null);
  }
  if (recalled.kind === "ask" && "hit" in found) {
    const { run: from, stored, outputs } = found.hit;
    engine.past?.ran(path);
    engine.emit({ type: "step.cached", step: path, key, run: from, stored });
    return succeeded(outputs);
  }
  if (recalled.kind === "ask" && "miss" in found)
    engine.emit({ type: "step.uncached", step: path, key, ...found.miss });
  const watched = watchPast(run);
  const result = await runOne(watched.run);
  if (result.outcome === "success" && !watched.isOld()) answer.keep(result.outputs);
  return result;
}

function succeeded(outputs: Json): BodyResult {
  return { outcome: "success", result: outputs, outputs };
}

/** What a resume reuses or goes on with began before its files were hashed: it stands for nothing new. */
function watchPast(run: StepRun): { readonly run: StepRun; readonly isOld: () => boolean } {
  const { engine } = run;
  if (engine.past === undefined) return { run, isOld: () => false };
  let isOld = false;
  const emit: typeof engine.emit = (event) => {
    if (event.type === "step.reused") isOld = true;
    if (event.type === "step.attempt.started" && goesOn.has(event.again ?? "")) isOld = true;
    engine.emit(event);
  };
  return { run: { ...run, engine: { ...engine, emit } }, isOld: () => isOld };
}

const goesOn: ReadonlySet<string> = new Set(["uncertain", "cancelled", "failed"]);

/** Nothing where the inputs have no value: the step itself fails with the same reason. */
function questionOf(run: StepRun): Result<CacheQuestion | undefined, Failure> {
  const { engine, step, path, sight } = run;
  const visible = withoutSecrets(run);
  const isKnown = step.repeat === undefined && !(step.scope !== undefined && "inline" in step.scope);
  const inputs = isKnown ? engine.evaluator.resolve(step.inputs, visible) : ok(undefined);
  if (!inputs.ok) return ok(undefined);
  const key = step.cache?.key === undefined ? ok(undefined) : engine.evaluator.resolve(step.cache.key, visible);
  if (!key.ok) return err(expressionFailure(key.error));
  const files = filesOf(run, visible);
  if (!files.ok) return files;
  const item = step.foreach === undefined ? undefined : (visible.contexts["item"] as Json | undefined);
  return ok({
    step,
    workflow: sight.workflow,
    path,
    ...(item !== undefined && { item }),
    ...(key.value !== undefined && { key: key.value }),
    files: files.value,
    ...(inputs.value !== undefined && { inputs: inputs.value as JsonObject }),
    reads: readsOf(run, visible, isKnown),
  });
}

function filesOf({ engine, step }: StepRun, visible: Visible): Result<readonly string[], Failure> {
  const files = step.cache === undefined ? ok([]) : engine.evaluator.resolve(step.cache.files, visible);
  if (!files.ok) return err(expressionFailure(files.error));
  const globs: readonly Json[] = Array.isArray(files.value) ? files.value : [files.value];
  const texts = globs.filter((glob) => typeof glob === "string");
  if (texts.length === globs.length) return ok(texts);
  const shown = JSON.stringify(files.value).slice(0, 80);
  return err({ kind: "input", message: `\`cache.files\` needs a list of globs, and this is ${shown}` });
}

/**
 * Each secret is its name here, so that its value can be in no key. The loop inside is not there yet: what it gives
 * differs in every iteration and comes from nowhere else.
 */
function withoutSecrets({ engine, step, sight }: StepRun): Visible {
  const { workflow, visible } = sight;
  const { iteration, previous, ...around } = visible.contexts;
  const loops = step.repeat === undefined ? { ...(iteration !== undefined && { iteration, previous }) } : {};
  const secrets = Object.fromEntries(workflow.secrets.map((name) => [name, `secrets.${name}`]));
  const contexts = { ...around, ...loops, secrets };
  const env = engine.evaluator.resolve({ type: "map", entries: workflow.env }, { contexts });
  const failed = (id?: string): boolean => id !== undefined && sight.settled(id)?.conclusion === "failure";
  const status = { success: () => true, always: () => true, cancelled: () => false, failure: failed };
  return { ...visible, contexts: env.ok ? { ...contexts, env: env.value } : contexts, status };
}

/** The values of everything its expressions refer to; of the output mapping alone where the inputs are known. */
function readsOf({ engine, step }: StepRun, visible: Visible, isKnown: boolean): readonly SeenValue[] {
  const { inputs, repeat, scope, outputs } = step;
  const found = new Map<string, SeenValue>();
  for (const expression of expressionsIn(isKnown ? outputs : { inputs, repeat, scope, outputs }))
    for (const read of engine.evaluator.read(expression, visible)) found.set(read.expression, read);
  return [...found.values()];
}

/** Every expression in a part of a plan; what a user wrote as data lies below `json` and holds none. */
function* expressionsIn(value: unknown): Generator<Expression> {
  if (Array.isArray(value)) for (const item of value) yield* expressionsIn(item);
  else if (isJsonObject(value)) {
    const { source, at } = value;
    if (typeof source === "string" && isJsonObject(at)) yield { source, at: at as unknown as Expression["at"] };
    for (const [key, inner] of Object.entries(value)) if (key !== "json" && key !== "at") yield* expressionsIn(inner);
  }
}
