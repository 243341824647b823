import type { Json, JsonObject } from "../model/json.ts";
import { isJsonObject, own } from "../model/json.ts";
import type { Failure } from "../model/outcome.ts";
import type { Named, Template, Workflow } from "../model/plan.ts";
import type { Attempt } from "../model/ports.ts";
import type { Result } from "../model/result.ts";
import { err, ok } from "../model/result.ts";
import { deadline } from "./deadline.ts";
import type { BodyResult, Engine, Place, Sight } from "./engine.ts";
import { fillInputs } from "./inputs.ts";
import { narrowed, overDuration } from "./limits.ts";
import { expressionFailure, whyNoSuccess } from "./reasons.ts";
import type { ScopeEnd, ScopeOptions } from "./scope.ts";
import { runScope } from "./scope.ts";

export interface WorkflowRun {
  readonly workflow: Workflow;
  /** As given; defaults are filled in here. */
  readonly inputs: JsonObject;
  /** Path of the step that calls it; empty for the run's own. */
  readonly path: string;
  readonly signal: AbortSignal;
  readonly around: Place["around"];
}

/** Runs a whole workflow, the run's own or one that a step calls. Rejects only on a bug. */
export async function runWorkflow(engine: Engine, run: WorkflowRun): Promise<End> {
  const { workflow, path, signal } = run;
  const contexts = contextsOf(engine, workflow, run.inputs);
  if (!contexts.ok) return failed([contexts.error]);
  const visible = { contexts: contexts.value, ...(engine.hashFiles !== undefined && { hashFiles: engine.hashFiles }) };
  const { duration } = workflow.limits;
  const limit = duration === undefined ? undefined : deadline(engine.clock, duration, signal);
  const end = await runScope({
    engine,
    workflow,
    scope: workflow.scope,
    path,
    visible,
    signal: limit?.signal ?? signal,
    around: limit === undefined ? run.around : limit.around(run.around),
    conclude: (sight, outcome) => concludeWorkflow(engine, workflow, sight, outcome),
  });
  limit?.close();
  return duration !== undefined && limit?.passed() ? failed([overDuration(duration), ...end.failures]) : end;
}

/** How a workflow ended. */
export type End = Omit<ScopeEnd, "sight">;

/** Runs the steps inside a step: a group's own, which see the steps around it, or those of another workflow. */
export async function runInner({ engine, sight, around }: Place, attempt: Attempt): Promise<BodyResult> {
  const { step, path, signal, inputs } = attempt;
  if (step.scope === undefined) throw new Error(`${path} has no steps inside`);
  if ("workflow" in step.scope) {
    const workflow = engine.plan.workflows[step.scope.workflow];
    if (workflow === undefined) throw new Error(`the plan has no workflow ${step.scope.workflow}`);
    return callWorkflow(engine, { workflow, inputs: own(inputs, "with") ?? {}, path, signal, around });
  }
  const { workflow, visible } = sight;
  const scope = step.scope.inline;
  const conclude = (inside: Sight, outcome: Concluding): Concluded =>
    outcome === "empty" ? ok({}) : evaluateOutputs(engine, scope.outputs, inside);
  const ended = await runScope({ engine, workflow, scope, path, visible, outer: sight, signal, around, conclude });
  return bodyResult(ended, ended.sight);
}

async function callWorkflow(engine: Engine, call: Omit<WorkflowRun, "inputs"> & { inputs: Json }): Promise<BodyResult> {
  const { workflow } = call;
  if (!isJsonObject(call.inputs)) throw new Error(`the \`with\` of ${call.path} is not a map`);
  const inputs = fillInputs(workflow, call.inputs);
  if (!inputs.ok) return { outcome: "failure", error: inputs.error };
  const error = await engine.checkInputs(workflow, inputs.value);
  if (error !== undefined) return { outcome: "failure", error };
  const inside = narrowed(engine, workflow.limits, { of: `workflow \`${workflow.name}\``, path: call.path });
  return bodyResult(await runWorkflow(inside, { ...call, inputs: inputs.value }));
}

function bodyResult({ outcome, outputs, failures, done }: End, sight?: Sight): BodyResult {
  if (outcome === "success") return { outcome, result: outputs, outputs, done, ...(sight !== undefined && { sight }) };
  if (outcome !== "failure") return { outcome };
  const [error] = failures;
  if (error === undefined) throw new Error("a scope failed without a failure");
  return { outcome, error, failures };
}

function failed(failures: readonly Failure[]): End {
  return { outcome: "failure", outputs: {}, failures, done: [] };
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

type Concluding = Parameters<ScopeOptions["conclude"]>[1];
type Concluded = ReturnType<ScopeOptions["conclude"]>;

/** The outputs of a workflow, unless something it expects is not there. */
function concludeWorkflow(engine: Engine, workflow: Workflow, sight: Sight, outcome: Concluding): Concluded {
  const outputs = outcome === "empty" ? ok({}) : evaluateOutputs(engine, workflow.scope.outputs, sight);
  if (!outputs.ok) return outputs;
  const failures = unmetExpectations(workflow, sight, outputs.value);
  return failures.length === 0 ? outputs : err(failures);
}

function evaluateOutputs(engine: Engine, outputs: readonly Named<Template>[], sight: Sight): Concluded {
  const values: [string, Json][] = [];
  for (const { name, value } of outputs) {
    const resolved = engine.evaluator.resolve(value, sight.visible);
    if (resolved.ok) {
      values.push([name, resolved.value]);
      continue;
    }
    const failure = expressionFailure(resolved.error);
    if (resolved.error.kind !== "missing") return err([failure]);
    return err([{ ...failure, kind: "output", message: `the output \`${name}\` has no value: ${failure.message}` }]);
  }
  return ok(Object.fromEntries(values));
}

function unmetExpectations({ expect }: Workflow, sight: Sight, outputs: JsonObject): Failure[] {
  const failures: Failure[] = [];
  for (const id of expect.steps) {
    const settled = sight.settled(id);
    if (settled?.conclusion === "success") continue;
    const message = `the step \`${id}\` was expected to succeed: ${whyNoSuccess(id, settled)}`;
    failures.push({ kind: "expect", message });
  }
  for (const name of expect.outputs) {
    const value = own(outputs, name);
    if (value !== undefined && value !== null) continue;
    const found = value === undefined ? "has no value" : "is null";
    failures.push({ kind: "expect", message: `the output \`${name}\` was expected, but it ${found}` });
  }
  return failures;
}
