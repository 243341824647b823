import type {
  Condition,
  Edge,
  Expression,
  Named,
  Plan,
  Scope,
  Step,
  StepKind,
  Template,
} from "../../../src/model/plan.ts";
import type { Body } from "../../../src/model/plan.ts";
import type { Json } from "../../../src/model/json.ts";

const at = { file: "w.yaml", line: 1, column: 1, endLine: 1, endColumn: 2 };

/** What a test says about a step; edges are written as `needs` (`a`, `a? cond`), `uses` and `after`. */
export interface StepWords {
  readonly needs?: readonly (string | readonly [string, string])[];
  readonly uses?: readonly string[];
  readonly after?: readonly string[];
  readonly when?: string;
  readonly agent?: string;
  readonly run?: string | readonly string[];
  readonly tool?: string;
  readonly workflow?: string;
  readonly steps?: { readonly [id: string]: StepWords };
  readonly approve?: string;
  readonly set?: readonly string[];
  readonly until?: string;
  readonly max?: number;
  readonly name?: string;
  readonly more?: Partial<Step>;
}

function expression(source: string): Expression {
  return { source, at };
}

function data(json: Json): Template {
  return { type: "data", json };
}

/** A Plan by hand: `workflows[0]` is the root. */
export function planOf(
  name: string,
  steps: { readonly [id: string]: StepWords },
  others: { readonly [path: string]: { readonly [id: string]: StepWords } } = {},
): Plan {
  const workflow = (path: string, title: string, words: { readonly [id: string]: StepWords }) => ({
    path,
    name: title,
    inputs: [],
    vars: [],
    env: [],
    secrets: [],
    limits: {},
    expect: { steps: [], outputs: [] },
    scope: scopeOf(words),
  });
  return {
    version: 1,
    digest: "",
    root: "w.yaml",
    workflows: Object.fromEntries([
      ["w.yaml", workflow("w.yaml", name, steps)],
      ...Object.entries(others).map(([path, words]) => [path, workflow(path, path, words)]),
    ]),
    agents: {},
    files: [],
  };
}

function scopeOf(words: { readonly [id: string]: StepWords }): Scope {
  const ids = Object.keys(words);
  const places = new Map(ids.map((id, index) => [id, index]));
  const placeOf = (id: string) => places.get(id) ?? -1;
  const edges: Edge[] = [];
  for (const [id, step] of Object.entries(words)) {
    const to = placeOf(id);
    const add = (source: string, rest: Pick<Edge, "hard" | "origin"> & { if?: Expression }) =>
      edges.push({ from: placeOf(source), to, at, ...rest });
    for (const need of step.needs ?? []) {
      if (typeof need === "string") add(need, { hard: true, origin: "written" });
      else add(need[0], { hard: true, origin: "written", if: expression(need[1]) });
    }
    for (const source of step.uses ?? []) add(source, { hard: true, origin: "reference" });
    for (const source of step.after ?? []) add(source, { hard: false, origin: "reference" });
  }
  return { steps: ids.map((id) => stepOf(id, words[id] ?? {})), edges, outputs: [] };
}

function stepOf(id: string, words: StepWords): Step {
  const { name, when, run, workflow, steps, approve, set, until, max, more } = words;
  const condition: Condition | undefined = when === undefined ? undefined : { ...expression(when), status: false };
  const entries: Named<Template>[] = [
    ...(run !== undefined && typeof run !== "string" ? [{ name: "argv", value: data([...run]) }] : []),
    ...(approve === undefined ? [] : [{ name: "approve", value: data(approve) }]),
    ...(set === undefined ? [] : [{ name: "set", value: { type: "map" as const, entries: set.map(named) } }]),
  ];
  const body = bodyOf(words);
  const kind: StepKind = body.kind;
  return {
    id,
    kind,
    at,
    join: "all",
    inputs: { type: "map", entries },
    body,
    continueOnError: false,
    limits: {},
    ...(name !== undefined && { name }),
    ...more,
    ...(condition && { if: condition }),
    ...(steps && { scope: { inline: scopeOf(steps) } }),
    ...(workflow !== undefined && { scope: { workflow } }),
    ...(until !== undefined && { repeat: { until: expression(until), max: max ?? 3, onMax: "fail" as const } }),
  };
}

function named(name: string): Named<Template> {
  return { name, value: data(1) };
}

function bodyOf({ agent, run, tool, workflow, steps, approve, set }: StepWords): Body {
  if (agent !== undefined) return { kind: "agent", agent, models: [], overrides: { json: {} } };
  if (tool !== undefined) return { kind: "tool", tool };
  if (workflow !== undefined) return { kind: "workflow" };
  if (steps !== undefined) return { kind: "steps" };
  if (approve !== undefined) return { kind: "approve" };
  if (set !== undefined) return { kind: "set" };
  return { kind: "run", command: typeof run === "object" ? { argv: true } : { script: run ?? "true" }, shell: "bash" };
}

/** Twelve steps with everything a drawing knows. */
export const everything: Plan = planOf(
  "release",
  {
    diff: { run: 'git diff "$BASE"...HEAD' },
    topics: { set: ["list", "max"] },
    lint: { run: ["npm", "run", "lint"], more: { continueOnError: true, cache: { files: data(["src/**"]) } } },
    research: {
      agent: "researcher",
      name: "市场调研",
      uses: ["topics"],
      more: {
        foreach: {
          items: { type: "expression", ...expression("steps.topics.outputs.list") },
          parallel: 4,
          failFast: true,
          matrix: false,
        },
        retry: { max: 2, backoff: 1000, factor: 2, jitter: true, cap: 60_000, on: ["rate_limit", "timeout"] },
        timeout: 600_000,
      },
    },
    security: {
      agent: "security-reviewer",
      uses: ["diff"],
      when: "inputs.depth == 'deep'",
      more: { limits: { cost: 0.5 } },
    },
    style: { agent: "style-reviewer", uses: ["diff"] },
    polish: {
      uses: ["research"],
      until: "steps.judge.outputs.score >= 8",
      max: 3,
      steps: {
        draft: { agent: "writer" },
        facts: { tool: "WebFetch" },
        judge: { agent: "editor", uses: ["draft", "facts"] },
      },
    },
    verdict: { agent: "editor", uses: ["style"], after: ["security"], needs: [["lint", "inputs.strict"]] },
    ask: { approve: "Ship it?", uses: ["verdict", "polish"] },
    publish: { workflow: "publish.yaml", needs: ["ask"], when: "inputs.publish" },
    matrix: {
      run: "npm test",
      needs: ["ask"],
      more: { foreach: { items: data([1, 2, 3, 4]), failFast: true, matrix: true }, isolation: "worktree" },
    },
    notify: {
      run: "# tell\ncurl -d @- $URL\necho done",
      after: ["publish", "matrix"],
      when: "always()",
      more: { join: "any" },
    },
  },
  {
    "publish.yaml": {
      tag: { run: "git tag v1" },
      push: { run: "git push", needs: ["tag"] },
      page: { tool: "Write", needs: ["tag"] },
    },
  },
);
