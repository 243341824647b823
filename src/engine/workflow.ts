import type { JsonObject } from "../model/json.ts";
import { isJsonObject } from "../model/json.ts";
import type { Failure } from "../model/outcome.ts";
import type { Named, Template, Workflow } from "../model/plan.ts";
import type { Attempt } from "../model/ports.ts";
import type { Result } from "../model/result.ts";
import { err, ok } from "../model/result.ts";
import { deadline } from "./deadline.ts";
import type { BodyResult, Done, Engine, Sight } from "./engine.ts";
import { expressionFailure, whyNoSuccess } from "./reasons.ts";
import type { ScopeEnd } from "./scope.ts";
import { runScope } from "./scope.ts";

export interface WorkflowRun {
  readonly workflow: Workflow;
  /** As given; defaults are filled in here. */
  readonly inputs: JsonObject;
  /** Path of the step that calls it; empty for the run's own. */
  readonly path: string;
  readonly signal: AbortSignal;
}

/** How a workflow or group ended. */
export interface End {
  readonly outcome: ScopeEnd["outcome"];
  /** Empty unless it succeeded. */
  readonly outputs: JsonObject;
  /** At least one if it failed. `step` is absent in what is not the failure of a step. */
  readonly failures: readonly Failure[];
  readonly done: readonly Done[];
}

/** Runs a whole workflow, the run's own or one that a step calls. Rejects only on a bug. */
export async function runWorkflow(engine: Engine, run: WorkflowRun): Promise<End> {
  const { workflow, path, signal } = run;
  const contexts = contextsOf(engine, workflow, run.inputs);
  if (!contexts.ok) return failed(contexts.error);
  const visible = { contexts: contexts.value, ...(engine.hashFiles !== undefined && { hashFiles: engine.hashFiles }) };
  const { duration } = workflow.limits;
  const limit = duration === undefined ? undefined : deadline(engine.clock, duration, signal);
  const options = { engine, workflow, scope: workflow.scope, path, visible, signal: limit?.signal ?? signal };
  const ended = await runScope(options);
  limit?.close();
  if (duration !== undefined && limit?.passed()) {
    const message = `the limit of ${duration / 1000} s (\`limits.duration\`) was reached`;
    return { outcome: "failure", outputs: {}, failures: [{ kind: "budget", message }, ...ended.failures], done: [] };
  }
  return checkExpected(workflow, ended.sight, endOf(engine, ended, workflow.scope.outputs));
}

/** Runs the steps inside a step: a group's own, which see the steps around it, or those of another workflow. */
export async function runInner(engine: Engine, attempt: Attempt, sight: Sight): Promise<BodyResult> {
  const { step, path, signal, inputs } = attempt;
  if (step.scope === undefined) throw new Error(`${path} has no steps inside`);
  if ("workflow" in step.scope) {
    const workflow = engine.plan.workflows[step.scope.workflow];
    if (workflow === undefined) throw new Error(`the plan has no workflow ${step.scope.workflow}`);
    const given = inputs["with"];
    return bodyResult(await runWorkflow(engine, { workflow, inputs: isJsonObject(given) ? given : {}, path, signal }));
  }
  const { workflow, visible } = sight;
  const scope = step.scope.inline;
  const ended = await runScope({ engine, workflow, scope, path, visible, outer: sight, signal });
  return bodyResult(endOf(engine, ended, scope.outputs), ended.sight);
}

function bodyResult({ outcome, outputs, failures, done }: End, sight?: Sight): BodyResult {
  if (outcome === "success") return { outcome, result: outputs, outputs, done, ...(sight !== undefined && { sight }) };
  if (outcome !== "failure") return { outcome };
  const [error] = failures;
  if (error === undefined) throw new Error("a scope failed without a failure");
  return { outcome, error, failures };
}

function failed(...failures: readonly Failure[]): End {
  return { outcome: "failure", outputs: {}, failures, done: [] };
}

function fillInputs(workflow: Workflow, given: JsonObject): Result<JsonObject, Failure> {
  const inputs: JsonObject = {};
  for (const input of workflow.inputs) {
    const value = Object.hasOwn(given, input.name) ? given[input.name] : input.default?.json;
    if (value === undefined) {
      const message = `\`${workflow.name}\` needs the input \`${input.name}\`, which was not given`;
      return err({ kind: "input", message, position: input.at });
    }
    inputs[input.name] = value;
  }
  return ok(inputs);
}

/** All but `steps`. */
function contextsOf(engine: Engine, workflow: Workflow, given: JsonObject): Result<Contexts, Failure> {
  const inputs = fillInputs(workflow, given);
  if (!inputs.ok) return inputs;
  const declared = Object.entries(engine.secrets).filter(([name]) => workflow.secrets.includes(name));
  const known = { inputs: inputs.value, secrets: Object.fromEntries(declared), run: engine.run };
  const vars = engine.evaluator.resolve({ type: "map", entries: workflow.vars }, { contexts: known });
  if (!vars.ok) return err(expressionFailure(vars.error));
  const contexts = { ...known, vars: vars.value };
  const env = engine.evaluator.resolve({ type: "map", entries: workflow.env }, { contexts });
  return env.ok ? ok({ ...contexts, env: env.value }) : err(expressionFailure(env.error));
}

type Contexts = Sight["visible"]["contexts"];

/** The outputs of a scope are evaluated only when it succeeded. */
function endOf(engine: Engine, { outcome, failures, sight, done }: ScopeEnd, outputs: readonly Named<Template>[]): End {
  if (outcome !== "success") return { outcome, outputs: {}, failures, done };
  const values: JsonObject = {};
  for (const { name, value } of outputs) {
    const resolved = engine.evaluator.resolve(value, sight.visible);
    if (resolved.ok) {
      values[name] = resolved.value;
      continue;
    }
    const failure = expressionFailure(resolved.error);
    if (resolved.error.kind !== "missing") return failed(failure);
    return failed({ ...failure, kind: "output", message: `the output \`${name}\` has no value: ${failure.message}` });
  }
  return { outcome, outputs: values, failures, done };
}

/** What a workflow expects is asked of a run that has not failed anyway. */
function checkExpected({ expect }: Workflow, sight: Sight, end: End): End {
  if (end.outcome === "failure" || end.outcome === "cancelled") return end;
  const failures: Failure[] = [];
  for (const id of expect.steps) {
    const settled = sight.settled(id);
    if (settled?.conclusion === "success") continue;
    const message = `the step \`${id}\` was expected to succeed: ${whyNoSuccess(id, settled)}`;
    failures.push({ kind: "expect", message });
  }
  for (const name of expect.outputs) {
    const value = Object.hasOwn(end.outputs, name) ? end.outputs[name] : undefined;
    if (value !== undefined && value !== null) continue;
    const found = value === undefined ? "has no value" : "is null";
    failures.push({ kind: "expect", message: `the output \`${name}\` was expected, but it ${found}` });
  }
  return failures.length === 0 ? end : failed(...failures);
}
