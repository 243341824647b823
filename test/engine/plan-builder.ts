import type { Span } from "../../src/model/diagnostic.ts";
import type { Json } from "../../src/model/json.ts";
import type {
  Condition,
  Edge,
  Expression,
  Named,
  Plan,
  Scope,
  Step,
  Template,
  Workflow,
} from "../../src/model/plan.ts";

/** Plans as the compiler would make them, written by hand: the engine is tested without it. */

export const at: Span = { file: "test.yaml", line: 1, column: 1, endLine: 1, endColumn: 2 };

/** What a test says of a step; all else is the plainest. `set` are its values; a string with `${{ }}` is a template. */
export interface StepSpec extends Partial<Omit<Step, "id" | "if" | "inputs" | "outputs" | "timeout">> {
  readonly id: string;
  /** A status function in it is recognised by its brackets. */
  readonly if?: string;
  /** `a`; `a?cond` for a conditional edge; `~a` for a soft one. */
  readonly needs?: readonly string[];
  readonly set?: { readonly [name: string]: Json };
  readonly outputs?: { readonly [name: string]: Json };
  readonly timeout?: number | string;
  /** The steps of a group, and its outputs. */
  readonly group?: readonly StepSpec[];
  readonly groupOutputs?: { readonly [name: string]: Json };
  /** Calls the workflow of this key. */
  readonly calls?: string;
}

export interface WorkflowSpec extends Partial<Omit<Workflow, "scope" | "vars" | "env">> {
  readonly steps: readonly StepSpec[];
  readonly outputs?: { readonly [name: string]: Json };
  readonly vars?: { readonly [name: string]: Json };
  readonly env?: { readonly [name: string]: Json };
}

export function plan(root: WorkflowSpec, others: { readonly [key: string]: WorkflowSpec } = {}): Plan {
  const workflows: { [key: string]: Workflow } = { "test.yaml": workflow(root) };
  for (const [key, spec] of Object.entries(others)) workflows[key] = workflow(spec);
  return { version: 1, digest: "", root: "test.yaml", workflows, agents: {}, files: [] };
}

export function scope(steps: readonly StepSpec[], outputs: { readonly [name: string]: Json } = {}): Scope {
  const index = new Map(steps.map(({ id }, position) => [id, position]));
  const edges: Edge[] = [];
  for (const [to, { needs = [] }] of steps.entries()) {
    for (const need of needs) {
      const [, soft, id = "", condition] = /^(~?)([^?]+)(?:\?(.*))?$/.exec(need) ?? [];
      const from = index.get(id);
      if (from === undefined) throw new Error(`no step ${id}`);
      const edge = { from, to, hard: soft === "", origin: "written", at } as const;
      edges.push(condition === undefined ? edge : { ...edge, if: { source: condition, at } });
    }
  }
  return { steps: steps.map(step), edges, outputs: named(outputs) };
}

export function template(value: Json): Template {
  if (typeof value === "string") return text(value);
  if (Array.isArray(value)) return { type: "list", items: value.map(template) };
  if (typeof value === "object" && value !== null) return { type: "map", entries: named(value) };
  return { type: "data", json: value };
}

function workflow({ steps, outputs, vars = {}, env = {}, ...rest }: WorkflowSpec): Workflow {
  return {
    path: "test.yaml",
    name: "test",
    inputs: [],
    secrets: [],
    limits: {},
    expect: { steps: [], outputs: [] },
    ...rest,
    vars: named(vars),
    env: named(env),
    scope: scope(steps, outputs),
  };
}

function step(spec: StepSpec): Step {
  const { needs: _, if: condition, set = {}, outputs, timeout, group, groupOutputs, calls, ...rest } = spec;
  const kind = group !== undefined ? "steps" : calls !== undefined ? "workflow" : "set";
  return {
    kind,
    at,
    join: "all",
    body: { kind },
    continueOnError: false,
    limits: {},
    ...rest,
    inputs: template(calls === undefined ? set : { with: set }),
    ...(condition !== undefined && { if: conditionOf(condition) }),
    ...(outputs !== undefined && { outputs: named(outputs) }),
    ...(timeout !== undefined && { timeout: typeof timeout === "number" ? timeout : text(timeout) }),
    ...(group !== undefined && { scope: { inline: scope(group, groupOutputs) } }),
    ...(calls !== undefined && { scope: { workflow: calls } }),
  };
}

function conditionOf(source: string): Condition {
  return { source, at, status: /\b(success|failure|always|cancelled)\(/.test(source) };
}

function named(values: { readonly [name: string]: Json }): Named<Template>[] {
  return Object.entries(values).map(([name, value]) => ({ name, value: template(value) }));
}

function text(value: string): Template {
  const parts: (string | Expression)[] = [];
  let end = 0;
  for (const match of value.matchAll(/\$\{\{(.*?)\}\}/g)) {
    if (match.index > end) parts.push(value.slice(end, match.index));
    parts.push({ source: (match[1] ?? "").trim(), at });
    end = match.index + match[0].length;
  }
  if (end < value.length) parts.push(value.slice(end));
  const [first] = parts;
  if (parts.every((part) => typeof part === "string")) return { type: "data", json: value };
  if (parts.length === 1 && typeof first === "object") return { type: "expression", ...first };
  return { type: "text", parts };
}
