import type { Json, JsonObject } from "../../model/json.ts";
import type { Plan, Scope, Step } from "../../model/plan.ts";
import { summary } from "./describe.ts";
import { wavesOf } from "./layers.ts";

/**
 * The graph for programs, pretty-printed: `{ schemaVersion: 1, name, steps, edges, workflows }`. Steps and edges are in
 * the order written; a group holds its own `steps` and `edges`; a sub-workflow is named by its key in `workflows`,
 * where every workflow but the root stands once.
 */
export function jsonGraph(plan: Plan): string {
  const root = plan.workflows[plan.root];
  if (root === undefined) return "";
  const others = Object.keys(plan.workflows).filter((key) => key !== plan.root);
  const workflows = others.sort().map((key): JsonObject => {
    const workflow = plan.workflows[key];
    return workflow === undefined ? {} : { key, name: workflow.name, ...scopeJson(plan, workflow.scope) };
  });
  return `${JSON.stringify({ schemaVersion: 1, name: root.name, ...scopeJson(plan, root.scope), workflows }, null, 2)}\n`;
}

function scopeJson(plan: Plan, scope: Scope): JsonObject {
  const waves = wavesOf(scope);
  const ids = scope.steps.map((step) => step.id);
  return {
    steps: scope.steps.map((step, index) => stepJson(plan, step, waves[index] ?? 1)),
    edges: scope.edges.map((edge): Json => ({
      from: ids[edge.from] ?? null,
      to: ids[edge.to] ?? null,
      hard: edge.hard,
      origin: edge.origin,
      ...(edge.if !== undefined && { if: edge.if.source }),
    })),
  };
}

function stepJson(plan: Plan, step: Step, wave: number): JsonObject {
  const { foreach, repeat, retry } = step;
  return {
    id: step.id,
    kind: step.kind,
    wave,
    ...(step.name !== undefined && { name: step.name }),
    ...(step.description !== undefined && { description: step.description }),
    summary: summary(plan, step),
    ...(step.if !== undefined && { if: step.if.source }),
    ...(step.join === "any" && { join: step.join }),
    ...(foreach !== undefined && {
      foreach: {
        matrix: foreach.matrix,
        failFast: foreach.failFast,
        ...(foreach.parallel !== undefined && { parallel: foreach.parallel }),
      },
    }),
    ...(repeat !== undefined && { repeat: { until: repeat.until.source, max: repeat.max, onMax: repeat.onMax } }),
    ...(retry !== undefined && { retry: { max: retry.max, on: [...retry.on] } }),
    ...(typeof step.timeout === "number" && { timeout: step.timeout }),
    ...(step.continueOnError && { continueOnError: true }),
    ...(step.scope !== undefined &&
      ("inline" in step.scope ? scopeJson(plan, step.scope.inline) : { workflow: step.scope.workflow })),
  };
}
