import { describe, expect, test } from "vitest";
import { checkEvent } from "../../src/jsonschema/check-event.ts";
import { checkAgent, checkWorkflow } from "../../src/jsonschema/check.ts";
import type { SchemaIssue } from "../../src/jsonschema/check.ts";
import type { Json, JsonObject } from "../../src/model/json.ts";

function lines(issues: readonly SchemaIssue[]): readonly string[] {
  return issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`);
}

function step(body: JsonObject): JsonObject {
  return { steps: { a: body } };
}

const sevenKinds: JsonObject = {
  name: "all kinds",
  description: "One of each.",
  inputs: { base: { type: "string", default: "main" }, "x-1": { enum: [1, "a"] } },
  vars: { list: [1, { deep: null }], text: "${{ inputs.base }}" },
  env: { A: "x", B: 1, C: true },
  secrets: ["GITHUB_TOKEN"],
  model: ["openai/gpt-5-mini", { id: "local", "base-url": "http://127.0.0.1:1/v1", key: "LOCAL_KEY" }],
  limits: { cost: 0.5, tokens: 1, duration: "1h30m", parallel: 4, turns: 0, depth: 0, children: 200 },
  permissions: { allow: ["Read"], Bash: { "*": "deny", "git *": "allow" }, "mcp__x__*": "ask" },
  agents: { editor: { instructions: "Write.", output: { type: "object" }, mcp: ["docs"], guards: { reads: false } } },
  mcp: {
    docs: { command: "docs", args: ["-p", 1], env: { T: "${{ secrets.GITHUB_TOKEN }}" } },
    far: { url: "https://x.org" },
  },
  tools: { count: { description: "Counts.", parameters: { type: "object" }, run: ["wc", "-w"] } },
  defaults: { timeout: "10m", retry: 1, shell: "bash", cwd: ".", env: { CI: "true" }, model: "scripted/r.yaml" },
  edges: [{ from: "script", to: "argv", if: "inputs.base == 'main'" }],
  expect: { steps: ["agent"], outputs: ["done"] },
  outputs: { done: "${{ steps.agent.outputs.text }}", constant: { a: [null] } },
  steps: {
    agent: {
      agent: "editor",
      prompt: "Do it.",
      with: { anything: [1] },
      check: { run: "npm test", max: 0 },
      team: { members: ["a"] },
      permissions: { Write: "allow" },
      tools: [],
      retry: { max: 2, backoff: "500ms", factor: 1.5, jitter: false, cap: "1m", on: ["rate_limit"] },
    },
    inline: { agent: { instructions: "Be brief." }, needs: "*", if: true },
    script: {
      run: "echo",
      shell: "sh",
      cwd: "a",
      stdin: "${{ vars.text }}",
      output: { type: "object" },
      timeout: "${{ vars.t }}",
    },
    argv: { run: ["git", "log", 1, true], needs: ["script", { step: "inline", if: "inputs.base" }], join: "any" },
    tool: {
      tool: "mcp__docs__find",
      with: { "-A": 1 },
      output: { type: "object" },
      cache: { key: ["a"], files: ["**/*.ts"] },
    },
    workflow: { workflow: "./other.yaml", with: { base: "x" }, "continue-on-error": true, isolation: "worktree" },
    group: {
      steps: { inner: { set: { x: 1 } } },
      outputs: { x: "${{ steps.inner.outputs.x }}" },
      foreach: [1, 2],
      parallel: 2,
      "fail-fast": false,
      repeat: { until: "${{ result.x }}", max: 1000, "on-max": "accept" },
    },
    approve: { approve: "Go on?", form: { type: "object" }, rerun: "never" },
    set: {
      set: { a: { b: [] }, c: null },
      matrix: { os: ["linux"], node: "${{ vars.list }}", include: [{ os: "x" }] },
    },
    undone: { run: "x", undo: { run: ["rm", "x"], env: { A: "b" } }, retry: 0, cache: false },
  },
};

test("a workflow with every kind of step and every key has no issues", () => {
  expect(lines(checkWorkflow(sevenKinds))).toEqual([]);
});

const kinds = "`agent`, `run`, `tool`, `workflow`, `steps`, `approve`, `set`";
const duration = "must be a duration such as 30s, 10m, 1h30m or 2d";
const envName = "must be the name of an environment variable: letters, digits and `_`, not starting with a digit";

const wrong: readonly (readonly [what: string, value: Json, expected: readonly string[]])[] = [
  ["a list at the root", [], [": must be a mapping, not a list"]],
  ["nothing at the root", null, [": must be a mapping, not null"]],
  ["no steps", { name: "x" }, [": `steps` is missing"]],
  ["an empty map of steps", { steps: {} }, ["steps: must not be empty"]],
  ["steps as a list", { steps: [{ run: "x" }] }, ["steps: must be a mapping, not a list"]],
  ["steps that are lists", step([] as unknown as JsonObject), ["steps.a: must be a mapping, not a list"]],
  ["an unknown key at the top", { nmae: "x", ...step({ run: "x" }) }, [": unknown key `nmae`"]],
  ["an unknown key in a step", step({ run: "x", timout: "1s" }), ["steps.a: unknown key `timout`"]],
  ["a key of another kind", step({ run: "x", prompt: "y" }), ["steps.a: unknown key `prompt`"]],
  [
    "a step without a kind",
    step({ name: "x", needs: "b" }),
    [`steps.a: must have exactly one of ${kinds}, and has none`],
  ],
  [
    "a step of two kinds, one issue only",
    step({ run: "x", agent: "y", prompt: "z" }),
    [`steps.a: must have exactly one of ${kinds}, and has \`agent\` and \`run\``],
  ],
  [
    "an id that cannot be one",
    { steps: { "1st": { run: "x" } } },
    ["steps: the name `1st` must start with a letter or `_` and go on with letters, digits, `_` or `-`"],
  ],
  [
    "a name that YAML read as null",
    { name: null, ...step({ run: "x" }) },
    ["name: must be text, not null; put it in quotes if it is meant as text"],
  ],
  [
    "needs as a number",
    step({ run: "x", needs: 5 }),
    ["steps.a.needs: must be text or a list, not 5; put it in quotes if it is meant as text"],
  ],
  ["an edge without its end", { edges: [{ from: "a" }], ...step({ run: "x" }) }, ["edges.0: `to` is missing"]],
  [
    "an environment value that is a mapping",
    step({ run: "x", env: { A: { b: 1 } } }),
    ["steps.a.env.A: must be text, a number or true or false, not a mapping"],
  ],
  [
    "an environment name with a space",
    { env: { "A B": "x" }, ...step({ run: "x" }) },
    [`env: the name \`A B\` ${envName}`],
  ],
  ["a timeout of 0", step({ run: "x", timeout: 0 }), [`steps.a.timeout: ${duration}, not 0`]],
  ["a timeout of -1", step({ run: "x", timeout: -1 }), [`steps.a.timeout: ${duration}, not -1`]],
  ["a timeout without a unit", step({ run: "x", timeout: "5" }), [`steps.a.timeout: ${duration}, not \`5\``]],
  ["a timeout of 0s", step({ run: "x", timeout: "0s" }), [`steps.a.timeout: ${duration}, not \`0s\``]],
  [
    "a timeout with units the wrong way round",
    step({ run: "x", timeout: "5s1m" }),
    [`steps.a.timeout: ${duration}, not \`5s1m\``],
  ],
  ["a billion tries", step({ run: "x", retry: 1e9 }), ["steps.a.retry: must be at most 100, not 1000000000"]],
  ["half a try", step({ run: "x", retry: 1.5 }), ["steps.a.retry: must be a whole number or a mapping, not 1.5"]],
  [
    "an integer beyond all bounds",
    { limits: { tokens: 1e23 }, ...step({ run: "x" }) },
    ["limits.tokens: must be at most 9007199254740991, not 1e+23"],
  ],
  [
    "a number that became infinite",
    { limits: { cost: Infinity }, ...step({ run: "x" }) },
    ["limits.cost: must be a number, not Infinity"],
  ],
  ["a cost of 0", { limits: { cost: 0 }, ...step({ run: "x" }) }, ["limits.cost: must be more than 0, not 0"]],
  ["parallel 0", step({ run: "x", foreach: [1], parallel: 0 }), ["steps.a.parallel: must be at least 1, not 0"]],
  [
    "parallel of a billion",
    { limits: { parallel: 1e9 }, ...step({ run: "x" }) },
    ["limits.parallel: must be at most 10000, not 1000000000"],
  ],
  ["repeat without max", step({ run: "x", repeat: { until: "x" } }), ["steps.a.repeat: `max` is missing"]],
  [
    "a word that is not one of a few",
    step({ run: "x", join: "anny" }),
    ["steps.a.join: must be one of all, any, not `anny`"],
  ],
  ["the only word there is", step({ run: "x", rerun: "always" }), ["steps.a.rerun: must be `never`, not `always`"]],
  [
    "a permission that is none",
    { permissions: { Bash: { "*": "yes" } }, ...step({ run: "x" }) },
    ["permissions.Bash.*: must be one of allow, ask, deny, not `yes`"],
  ],
  [
    "a secret twice",
    { secrets: ["A", "B", "A"], ...step({ run: "x" }) },
    ["secrets: must not hold the same value twice (entries 1 and 3)"],
  ],
  [
    "a model that is a number, once",
    { model: 7, ...step({ run: "x" }) },
    ["model: must be text, a mapping or a list, not 7; put it in quotes if it is meant as text"],
  ],
  [
    "an address of an odd kind",
    { model: { id: "x", "base-url": "ftp://x" }, ...step({ run: "x" }) },
    ["model.base-url: must be an address that starts with http:// or https://, not `ftp://x`"],
  ],
  [
    "an MCP server of two kinds",
    { mcp: { a: { command: "x", url: "http://x" } }, ...step({ run: "x" }) },
    ["mcp.a: must have exactly one of `command`, `url`, and has `command` and `url`"],
  ],
  [
    "an undo that does nothing",
    step({ run: "x", undo: { shell: "sh" } }),
    ["steps.a.undo: must have exactly one of `run`, `tool`, `agent`, `workflow`, and has none"],
  ],
  ["a condition on an undo", step({ run: "x", undo: { run: "y", if: "z" } }), ["steps.a.undo: unknown key `if`"]],
  [
    "a mistake inside a group",
    step({ steps: { b: { steps: { c: { run: 1 } } } } }),
    ["steps.a.steps.b.steps.c.run: must be text or a list, not 1; put it in quotes if it is meant as text"],
  ],
  [
    "a mistake in an agent defined in a step",
    step({ agent: { temperature: 9, promt: "x" } }),
    ["steps.a.agent: unknown key `promt`", "steps.a.agent.temperature: must be at most 2, not 9"],
  ],
  [
    "an input that is no schema",
    { inputs: { a: "string" }, ...step({ run: "x" }) },
    ["inputs.a: must be a mapping, not `string`"],
  ],
  [
    "an axis that is no list",
    step({ run: "x", matrix: { os: 1 } }),
    ["steps.a.matrix.os: must be a list or text, not 1; put it in quotes if it is meant as text"],
  ],
];

describe("a workflow with a mistake", () => {
  test.each(wrong)("%s", (_what, value, expected) => {
    expect(lines(checkWorkflow(value))).toEqual(expected);
  });

  test("hears that a key means nothing without the other it belongs to", () => {
    expect(lines(checkWorkflow(step({ run: "x", undo: { run: "y", prompt: "z" } })))).toEqual([
      "steps.a.undo: `prompt` has a meaning only together with `agent`",
    ]);
  });

  test("gets every mistake reported at once, each once", () => {
    const issues = lines(checkWorkflow({ ...step({ run: 1, timeout: 5, foo: 1 }), limits: { cost: "x" }, name: "" }));
    expect(issues.toSorted()).toEqual(
      [
        "limits.cost: must be a number, not `x`",
        "name: must not be empty",
        `steps.a.timeout: ${duration}, not 5`,
        "steps.a.run: must be text or a list, not 1; put it in quotes if it is meant as text",
        "steps.a: unknown key `foo`",
      ].toSorted(),
    );
  });

  test("tells which keys are allowed where one is unknown, the kind's own first", () => {
    const [issue] = checkWorkflow(step({ run: "x", stdn: "y" }));
    expect(issue?.problem).toMatchObject({ kind: "unknown_key", key: "stdn" });
    expect(issue?.problem.kind === "unknown_key" && issue.problem.allowed.slice(0, 7)).toEqual([
      "run",
      "shell",
      "cwd",
      "stdin",
      "output",
      "name",
      "description",
    ]);
  });

  test("keeps list indexes as numbers and keys that look like numbers as text", () => {
    const [issue] = checkWorkflow({ permissions: { "0": { "1": "x" } }, steps: { a: { run: "x" } } });
    expect(issue?.path).toEqual(["permissions", "0", "1"]);
    const [second] = checkWorkflow(step({ run: "x", needs: ["b", "c", 1] }));
    expect(second?.path).toEqual(["steps", "a", "needs", 2]);
  });

  test("does not show what stands in an environment, in headers or as a key", () => {
    const issues = checkWorkflow({
      steps: { a: { run: "x", env: { A: ["hunter2"], B: null } } },
      mcp: { m: { url: "https://x.org", headers: { Authorization: ["hunter2"] } } },
      model: { id: "x", key: "sk-hunter2" },
    });
    expect(issues).toHaveLength(4);
    expect(JSON.stringify(issues)).not.toContain("hunter2");
  });

  test("shows at most 60 characters of a long text, on one line", () => {
    const [issue] = checkWorkflow(step({ run: "x", join: `${"long\n".repeat(1_000)}` }));
    expect(issue?.message.length).toBeLessThan(110);
    expect(issue?.message).not.toContain("\n");
  });

  test("may use keys that objects inherit without harm", () => {
    const value: Json = JSON.parse(
      '{"steps":{"a":{"run":"x","__proto__":{"polluted":1},"constructor":1}},"toString":1}',
    );
    expect(lines(checkWorkflow(value))).toEqual([
      ": unknown key `toString`",
      "steps.a: unknown key `__proto__`",
      "steps.a: unknown key `constructor`",
    ]);
    expect(Object.getOwnPropertyNames(Object.prototype)).not.toContain("polluted");
  });
});

describe("a flood of mistakes", () => {
  const many = 100_000;
  const numbered = (value: (index: number) => Json): JsonObject =>
    Object.fromEntries(Array.from({ length: many }, (_, index) => [`s${index}`, value(index)]));
  const floods: readonly (readonly [string, () => Json])[] = [
    ["steps", () => ({ steps: numbered(() => ({ run: 1, timeout: "bad", foo: 1 })) })],
    ["empty steps", () => ({ steps: numbered(() => ({})) })],
    ["unknown keys", () => ({ ...step({ run: "x" }), ...numbered(() => 1) })],
    ["needs", () => step({ run: "x", needs: Array.from({ length: many }, () => ({ a: 1, b: 2 })) })],
    ["secrets", () => ({ ...step({ run: "x" }), secrets: Array.from({ length: many }, (_, index) => ({ index })) })],
    [
      "names",
      () => ({ ...step({ run: "x" }), env: Object.fromEntries(Array.from({ length: many }, (_, i) => [`${i}x`, 1])) }),
    ],
  ];

  test.each(floods)("of %s is cut at 1,000 issues and takes neither long nor much memory", (_what, make) => {
    const value = make();
    const memory = process.memoryUsage().rss;
    const start = process.cpuUsage();
    const issues = checkWorkflow(value);
    const used = process.cpuUsage(start);
    expect(issues).toHaveLength(1_000);
    // A safety bound: the quadratic way took 38 s.
    expect((used.user + used.system) / 1_000).toBeLessThan(5_000);
    expect(process.memoryUsage().rss - memory).toBeLessThan(200 * 1024 * 1024);
  });
});

describe("an agent", () => {
  test("without any key is one", () => {
    expect(checkAgent({})).toEqual([]);
  });

  test.each<readonly [JsonObject, readonly string[]]>([
    [{ mode: "main" }, ["mode: must be one of primary, subagent, all, not `main`"]],
    [{ "instructions-files": "some" }, ["instructions-files: must be one of auto, none, not `some`"]],
    [{ "instructions-files": ["STYLE.md"], sandbox: "off", guards: true }, []],
    [{ sandbox: false }, ["sandbox: must be one of auto, on, off, not false"]],
    [{ hooks: { BeforeTool: [] } }, ["hooks: unknown key `BeforeTool`"]],
    [
      { hooks: { Stop: [{ hooks: [{ command: "x", timeout: 0 }] }] } },
      ["hooks.Stop.0.hooks.0.timeout: must be more than 0, not 0"],
    ],
    [
      { mcp: ["a b"] },
      ["mcp.0: must be the name of a server: letters, digits, `-`, and single `_` between them, not `a b`"],
    ],
    [{ limits: {} }, ["limits: must not be empty"]],
    [{ tools: "Read, Grep" }, ["tools: must be a list, not `Read, Grep`"]],
    [{ "top-p": 0, temperature: -1 }, ["top-p: must be more than 0, not 0", "temperature: must be at least 0, not -1"]],
  ])("%j", (agent, expected) => {
    expect(lines(checkAgent(agent)).toSorted()).toEqual(expected.toSorted());
  });
});

test("a log line is checked against the published form of events", () => {
  const line = { seq: 1, time: "2026-01-01T00:00:00.000Z", type: "step.ready", step: "a" };
  expect(checkEvent(line)).toEqual([]);
  expect(checkEvent({ ...line, step: 1 })).not.toEqual([]);
  expect(checkEvent({ ...line, surplus: 1 })).not.toEqual([]);
});
