import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { digestOf } from "../../src/compile/plan.ts";
import type { Json } from "../../src/model/json.ts";
import type { Plan, Step, Template } from "../../src/model/plan.ts";
import { checkFiles, planOf, rootOf, stepOf } from "./checking.ts";

/** A template as a value, each expression as its source in `⟨ ⟩`. */
function valueOf(template: Template | undefined): Json | undefined {
  switch (template?.type) {
    case undefined:
      return undefined;
    case "data":
      return template.json;
    case "expression":
      return `⟨${template.source}⟩`;
    case "text":
      return template.parts.map((part) => (typeof part === "string" ? part : `⟨${part.source}⟩`)).join("");
    case "list":
      return template.items.map((item) => valueOf(item) ?? null);
    case "map":
      return Object.fromEntries(template.entries.map((it) => [it.name, valueOf(it.value) ?? null]));
  }
}

function inputOf({ inputs }: Pick<Step, "inputs">, name: string): Json | undefined {
  return inputs.type === "map" ? valueOf(inputs.entries.find((it) => it.name === name)?.value) : undefined;
}

describe("the environment of a step", () => {
  const text = `
env: { A: workflow, B: workflow, C: workflow }
defaults: { env: { B: defaults, C: defaults } }
steps:
  plain: { run: "true" }
  own: { run: "true", env: { C: own, D: "\${{ run.id }}" } }
  group: { steps: { inner: { run: "true", env: { B: own } } } }
  tool: { tool: LS }
  agent: { agent: { prompt: hi } }
  undone: { run: "true", undo: { run: "true", env: { A: undo } } }
  set: { set: { x: 1 } }
`;
  test.each([
    ["plain", { A: "workflow", B: "defaults", C: "defaults" }],
    ["own", { A: "workflow", B: "defaults", C: "own", D: "⟨run.id⟩" }],
    ["group/inner", { A: "workflow", B: "own", C: "defaults" }],
    ["tool", { A: "workflow", B: "defaults", C: "defaults" }],
    ["agent", { A: "workflow", B: "defaults", C: "defaults" }],
    ["set", undefined],
  ])("of `%s` is the workflow's, then that of `defaults`, then its own", async (path, env) => {
    expect(inputOf(stepOf(await planOf(text), path), "env")).toEqual(env);
  });

  test("of an `undo` is made in the same way", async () => {
    const { undo } = stepOf(await planOf(text), "undone");
    expect(undo && inputOf(undo, "env")).toEqual({ A: "undo", B: "defaults", C: "defaults" });
  });
});

describe("`defaults`", () => {
  const text = `
defaults: { retry: 2, timeout: 10m, shell: sh, cwd: web }
steps:
  run: { run: "true" }
  own: { run: "true", retry: 0, timeout: 5s, shell: bash, cwd: . }
  tool: { tool: LS }
  agent: { agent: { prompt: hi } }
  set: { set: { x: 1 } }
  approve: { approve: Go on? }
  group: { steps: { deep: { steps: { deepest: { run: "true" } } } } }
`;
  test.each([
    ["run", 2, 600_000],
    ["own", 0, 5_000],
    ["tool", 2, 600_000],
    ["agent", 2, 600_000],
    ["group/deep/deepest", 2, 600_000],
    ["set", undefined, undefined],
    ["approve", undefined, undefined],
    ["group", undefined, undefined],
    ["group/deep", undefined, undefined],
  ])("give `%s` %s extra tries and %s ms", async (path, retry, timeout) => {
    const step = stepOf(await planOf(text), path);
    expect([step.retry?.max, step.timeout]).toEqual([retry, timeout]);
  });

  test.each([
    ["run", "sh", "web"],
    ["own", "bash", "."],
    ["group/deep/deepest", "sh", "web"],
  ])("give the script of `%s` the shell %s and the folder %s", async (path, shell, cwd) => {
    const step = stepOf(await planOf(text), path);
    expect(step.body).toMatchObject({ kind: "run", shell });
    expect(inputOf(step, "cwd")).toBe(cwd);
  });
});

describe("`retry`", () => {
  const forCommands = ["exit", "signal", "timeout", "tool_error", "unavailable"];
  const forAgents = ["rate_limit", "provider_error", "unavailable", "timeout"];
  test.each([
    ["run", 'run: "true"', forCommands],
    ["tool", "tool: LS", forCommands],
    ["agent", "agent: { prompt: hi }", forAgents],
    ["steps", "steps: { a: { set: { x: 1 } } }", [...new Set([...forCommands, ...forAgents])]],
  ])("on a `%s` step fills in its own kinds and the waits", async (_, body, on) => {
    const { retry } = stepOf(await planOf(`steps:\n  s: { ${body}, retry: 3 }\n`), "s");
    expect(retry).toEqual({ max: 3, backoff: 1_000, factor: 2, jitter: true, cap: 60_000, on });
  });

  test("keeps what is written", async () => {
    const written = "{ max: 1, backoff: 2s, factor: 1.5, jitter: false, cap: 5m, on: [exit] }";
    const { retry } = stepOf(await planOf(`steps:\n  s: { run: "true", retry: ${written} }\n`), "s");
    expect(retry).toEqual({ max: 1, backoff: 2_000, factor: 1.5, jitter: false, cap: 300_000, on: ["exit"] });
  });
});

describe("the models of an agent step", () => {
  const cases: readonly [string, string, string, string, Json][] = [
    ["the step's own first", "openai/workflow", "openai/agent", "openai/step", ["openai/step"]],
    ["then the agent's", "openai/workflow", "openai/agent", "", ["openai/agent"]],
    ["then the workflow's", "openai/workflow", "", "", ["openai/workflow"]],
    ["none when nobody names one", "", "", "", []],
    ["a list in its order", "[openai/one, openai/two]", "", "", ["openai/one", "openai/two"]],
    ["with expressions", "", "", '"a/${{ vars.m }}"', ["a/⟨vars.m⟩"]],
  ];
  test.each(cases)("are %s", async (_, workflow, agent, step, models) => {
    const line = (model: string): string => (model === "" ? "" : `, model: ${model}`);
    const plan = await planOf(
      `vars: { m: x }\n${workflow === "" ? "" : `model: ${workflow}\n`}agents:\n  a: { prompt: hi${line(agent)} }\nsteps:\n  s: { agent: a${line(step)} }\n`,
    );
    const found = stepOf(plan, "s");
    expect(inputOf(found, "models")).toEqual(models);
    expect(found.body.kind === "agent" && found.body.models.map(valueOf)).toEqual(models);
  });

  test("come from `defaults` before the workflow", async () => {
    const plan = await planOf(
      "model: openai/b\ndefaults: { model: openai/c }\nsteps:\n  s: { agent: { prompt: hi } }\n",
    );
    expect(inputOf(stepOf(plan, "s"), "models")).toEqual(["openai/c"]);
  });
});

describe("what a step does not say", () => {
  test("has its value in the plan", async () => {
    const step = stepOf(await planOf("steps:\n  s: { run: 'true' }\n"), "s");
    expect(step).toMatchObject({
      kind: "run",
      join: "all",
      continueOnError: false,
      limits: {},
      body: { shell: "bash", command: { script: "true" } },
    });
    expect(
      Object.keys(step).filter((key) =>
        ["if", "foreach", "repeat", "cache", "retry", "timeout", "undo", "outputs", "rerun"].includes(key),
      ),
    ).toEqual([]);
  });

  test.each([
    ["foreach: [1]", { foreach: { failFast: true, matrix: false, items: { type: "data", json: [1] } } }],
    [
      "matrix: { a: [1, 2], b: [3] }",
      {
        foreach: {
          failFast: true,
          matrix: true,
          items: {
            type: "data",
            json: [
              { a: 1, b: 3 },
              { a: 2, b: 3 },
            ],
          },
        },
      },
    ],
    [
      "matrix: { a: [1, 2], exclude: [{ a: 1 }], include: [{ a: 9 }] }",
      { foreach: { items: { json: [{ a: 2 }, { a: 9 }] } } },
    ],
    ["repeat: { until: iteration == 2, max: 2 }", { repeat: { max: 2, onMax: "fail" } }],
    ["cache: true", { cache: { files: { type: "data", json: [] } } }],
    ["limits: { duration: 90s, parallel: 2 }", { limits: { duration: 90_000, parallel: 2 } }],
    ["timeout: ${{ inputs.t }}", { timeout: { type: "expression", source: "inputs.t" } }],
  ])("as with `%s`", async (line, expected) => {
    const plan = await planOf(
      `inputs: { t: { type: string, default: 1s } }\nsteps:\n  s:\n    run: "true"\n    ${line}\n`,
    );
    expect(stepOf(plan, "s")).toMatchObject(expected);
  });
});

describe("templates", () => {
  test.each([
    ['"plain"', { type: "data", json: "plain" }],
    ["{ a: [1, { b: null }] }", { type: "data", json: { a: [1, { b: null }] } }],
    ['"${{ run.id }}"', { type: "expression", source: "run.id" }],
    ['" ${{ run.id }}"', { type: "text", parts: [" ", { source: "run.id" }] }],
    ['[1, "${{ run.id }}"]', { type: "list", items: [{ type: "data", json: 1 }, { type: "expression" }] }],
    [
      '{ a: 1, b: "${{ run.id }}" }',
      { type: "map", entries: [{ name: "a", value: { type: "data", json: 1 } }, { name: "b" }] },
    ],
    ["\"${{ '${{' }}\"", { type: "expression", source: "'${{'" }],
  ])("of %s are data as far as they hold no expression", async (written, expected) => {
    const { inputs } = stepOf(
      await planOf(`steps:\n  s:\n    set:\n      x: ${written}\n      e: "\${{ run.id }}"\n`),
      "s",
    );
    const set = inputs.type === "map" ? inputs.entries[0]?.value : undefined;
    expect(set?.type === "map" && set.entries[0]?.value).toMatchObject(expected);
  });
});

describe("a condition", () => {
  test.each([
    ["inputs.x", false],
    ["failure()", true],
    ["inputs.x && !cancelled()", true],
    ["${{ failure('a') || inputs.x }}", true],
    ["always()", true],
    ["success()", true],
  ])("`%s` says whether it calls a status function: %s", async (written, status) => {
    const plan = await planOf(
      `inputs: { x: { type: boolean } }\nsteps:\n  a: { run: "true" }\n  s:\n    run: "true"\n    if: ${written}\n`,
    );
    const { if: condition } = stepOf(plan, "s");
    expect(condition?.status).toBe(status);
    expect(condition?.source).toBe(written.replace(/^\$\{\{ | \}\}$/g, ""));
  });
});

describe("the digest", () => {
  const text = `
name: digest
inputs: { n: { type: integer, default: 1 }, at: { type: object, properties: { at: { type: string } }, default: { at: x } } }
vars: { at: { at: 1 }, list: [1, "\${{ inputs.n }}"] }
steps:
  a: { run: echo, if: inputs.n > 0, env: { X: "t \${{ vars.at.at }}" }, timeout: 1s, retry: 1, outputs: { at: "\${{ result.stdout }}" } }
  b: { agent: { prompt: "\${{ inputs.q }}", inputs: { q: { type: string } }, tools: [Read] }, with: { q: x }, needs: a }
  g: { steps: { c: { set: { at: { at: [1] } } } }, outputs: { x: "\${{ steps.c.outputs.at }}" }, foreach: [{ at: 1 }] }
outputs: { x: "\${{ steps.a.outputs.at }}" }
`;

  test.each([
    ["a comment", (it: string) => `# note\n${it}\n# end`],
    ["empty lines and indentation", (it: string) => it.replaceAll("\n  ", "\n\n    ")],
    [
      "flow style opened up",
      (it: string) =>
        it.replace("vars: { at: { at: 1 }, list", "vars:\n  at: { 'at': 1 }\n  \"list\"").replace('n }}"] }', 'n }}"]'),
    ],
    ["other quotes", (it: string) => it.replace("echo,", '"echo",')],
    ["a byte order mark", (it: string) => `\ufeff${it}`],
    ["Windows line ends", (it: string) => it.replaceAll("\n", "\r\n")],
  ])("does not change with %s", async (_, change) => {
    expect(change(text)).not.toBe(text);
    expect((await planOf(change(text))).digest).toBe((await planOf(text)).digest);
  });

  test.each([
    ["a name", "name: digest", "name: other"],
    ["a key called `at` in data", "default: { at: x }", "default: { at: y }"],
    ["a key called `at` in a schema", "properties: { at: { type: string } }", "properties: { at: { type: [string] } }"],
    ["a variable called `at`", "at: { at: 1 }", "at: { at: 2 }"],
    ["an item's `at`", "foreach: [{ at: 1 }]", "foreach: [{ at: 2 }]"],
    ["a script", "run: echo", "run: echo x"],
    ["a condition", "inputs.n > 0", "inputs.n > 1"],
    ["an output's name", "outputs: { at:", "outputs: { to:"],
    ["a prompt", "${{ inputs.q }}", "${{ inputs.q }}."],
    ["an agent's tools", "tools: [Read]", "tools: []"],
    ["the order of a list", 'list: [1, "${{ inputs.n }}"]', 'list: ["${{ inputs.n }}", 1]'],
  ])("changes with %s", async (_, from, to) => {
    const changed = text
      .replace(from, to)
      .replace("steps.a.outputs.at", from.includes("outputs: { at") ? "steps.a.outputs.to" : "steps.a.outputs.at");
    expect(changed).not.toBe(text);
    expect((await planOf(changed)).digest).not.toBe((await planOf(text)).digest);
  });

  test("changes with any leaf of the plan outside of positions, and with no position", async () => {
    const plan = await planOf(text);
    const leaves = leavesOf({ root: plan.root, workflows: plan.workflows, agents: plan.agents });
    expect(leaves.filter((it) => it.isPosition).length).toBeGreaterThan(30);
    fc.assert(
      fc.property(fc.constantFrom(...leaves), ({ path, isPosition }) => {
        const copy = structuredClone({ root: plan.root, workflows: plan.workflows, agents: plan.agents });
        change(copy, path);
        return (digestOf(copy) === plan.digest) === isPosition;
      }),
      { numRuns: 1_000 },
    );
  });

  test("counts a file that is called `at`", async () => {
    const files = (script: string): { [path: string]: string } => ({
      "main.yaml": "steps:\n  a: { workflow: ./at }\n",
      at: `steps:\n  b: { run: ${script} }\n`,
    });
    const [one, two] = await Promise.all([checkFiles(files("one")), checkFiles(files("two"))]);
    expect(one.plan?.digest).toMatch(/^[0-9a-f]{64}$/);
    expect(one.plan?.digest).not.toBe(two.plan?.digest);
  });

  test("counts every file of a workflow, and the plan names them with their hashes", async () => {
    const files = {
      "main.yaml": "steps:\n  a: { workflow: ./sub.yaml }\n  b: { agent: w, prompt: hi }\n",
      "sub.yaml": "steps:\n  b: { run: 'true' }\n",
      "agents/w.md": "---\nname: w\n---\nYou write.\n",
    };
    const { plan } = await checkFiles(files);
    const other = await checkFiles({ ...files, "agents/w.md": "---\nname: w\n---\nYou rewrite.\n" });
    expect(plan?.files.map((it) => it.path)).toEqual(
      ["main.yaml", "sub.yaml", "agents/w.md"].toSorted((a, b) => order(plan, a) - order(plan, b)),
    );
    expect(other.plan?.digest).not.toBe(plan?.digest);
    expect(rootOf(plan ?? other.plan ?? (await planOf(text))).steps[0]?.scope).toEqual({ workflow: "sub.yaml" });
  });
});

function order(plan: Plan | undefined, path: string): number {
  return plan?.files.findIndex((it) => it.path === path) ?? -1;
}

interface Leaf {
  readonly path: readonly string[];
  readonly isPosition: boolean;
}

/** Every scalar of a plan; those below an `at` that is a position, not a user's key. */
function leavesOf(value: unknown, path: readonly string[] = []): Leaf[] {
  if (typeof value !== "object" || value === null) {
    const isPosition = path.some((key, index) => key === "at" && !path.slice(0, index).includes("json"));
    return [{ path, isPosition }];
  }
  return Object.entries(value).flatMap(([key, inner]) => leavesOf(inner, [...path, key]));
}

function change(root: object, path: readonly string[]): void {
  let at: unknown = root;
  for (const key of path.slice(0, -1)) at = Reflect.get(at as object, key);
  const last = path.at(-1) ?? "";
  const value: unknown = Reflect.get(at as object, last);
  Reflect.set(
    at as object,
    last,
    typeof value === "string" ? `${value}!` : typeof value === "number" ? value + 1 : value === true ? false : true,
  );
}
