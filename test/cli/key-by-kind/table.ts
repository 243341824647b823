import { expect } from "vitest";
import { jsonGraph } from "../../../src/render/graph/json.ts";
import type { LogLine } from "../../../src/model/event.ts";
import { isJsonObject, type Json } from "../../../src/model/json.ts";
import type { StepKind } from "../../../src/model/plan.ts";
import type { Does } from "./kinds.ts";
import { kinds } from "./kinds.ts";

/** What a key does on a kind: one run of a step `a` with it and one without, and what is seen of both. */
export interface Shown {
  readonly does: Does;
  /** The body in the place of the one that `does` names. */
  readonly body?: string;
  /** The key, as it is written. */
  readonly key: string;
  /** Other keys of the step, in both. */
  readonly also?: string;
  /** Other steps, in both. */
  readonly around?: readonly string[];
  /** The workspace is a repository with everything committed. */
  readonly repository?: true;
  readonly see: (events: readonly LogLine[]) => unknown;
  readonly with: Json;
  readonly without: Json;
  /** `again`: what is seen of a second run; `resumed`: of a resume after flow died in the middle of the step. */
  readonly of?: "again" | "resumed";
}

export type Cell =
  | { readonly shown: Shown }
  /** The diagnostic of `flow validate`, and the reason in it. */
  | { readonly refused: string; readonly reason: string; readonly key: string };

type Row = { readonly [kind in StepKind]: Cell };

function on(kind: StepKind | "rest", cell: Cell): { [kind in StepKind]?: Cell } {
  const chosen = kind === "rest" ? kinds : [kind];
  return Object.fromEntries(chosen.map((name) => [name, cell]));
}

/** The same on every kind; the cells behind replace those of their kinds. */
function every(shown: Shown, ...others: readonly { readonly [kind in StepKind]?: Cell }[]): Row {
  return Object.assign({}, on("rest", { shown }), ...others) as Row;
}

/** Refused on every kind but those behind. */
function only(
  refused: string,
  key: string,
  reason: string,
  ...others: readonly { readonly [kind in StepKind]?: Cell }[]
): Row {
  return Object.assign({}, on("rest", { refused, key, reason }), ...others) as Row;
}

function refuse(list: readonly StepKind[], key: string, reason: string): { [kind in StepKind]?: Cell } {
  return Object.fromEntries(list.map((kind) => [kind, { refused: "FLOW2008", key, reason }]));
}

function show(list: readonly StepKind[], shown: Shown): { [kind in StepKind]?: Cell } {
  return Object.fromEntries(list.map((kind) => [kind, { shown }]));
}

/** `success`, `failure exit`, `skipped needs`: how the step `a` ended. */
const end = (events: readonly LogLine[], path = "a"): string => {
  const last = events.findLast((it) => (it.type === "step.finished" || it.type === "step.skipped") && it.step === path);
  if (last?.type === "step.skipped") return `skipped ${last.reason.kind}`;
  if (last?.type !== "step.finished") return "none";
  return last.error === undefined ? last.outcome : `${last.outcome} ${last.error.kind}`;
};
const conclusion = (events: readonly LogLine[]): unknown => {
  const last = events.findLast((it) => it.type === "step.finished" && it.step === "a");
  return last?.type === "step.finished" && last.conclusion;
};
const output =
  (name: string) =>
  (events: readonly LogLine[]): unknown => {
    const last = events.findLast((it) => it.type === "step.finished" && it.step === "a");
    const outputs = last?.type === "step.finished" ? last.outputs : undefined;
    return isJsonObject(outputs) && Object.hasOwn(outputs, name) ? outputs[name] : null;
  };
/** Paths of items and iterations of `a` that ended. */
const parts = (events: readonly LogLine[]): string[] =>
  events.flatMap((it) => (it.type === "step.finished" && /^a[[#]\d+\]?$/.test(it.step) ? [it.step] : []));
/** How many attempts began before the first of them ended. */
const atOnce = (events: readonly LogLine[]): number => {
  const attempts = events.filter((it) => it.type === "step.attempt.started" || it.type === "step.attempt.finished");
  return attempts.findIndex((it) => it.type === "step.attempt.finished");
};
const times =
  (type: LogLine["type"]) =>
  (events: readonly LogLine[]): number =>
    events.filter((it) => it.type === type && "step" in it && /^a(?![\w-])/.test(it.step)).length;
const prompt = (events: readonly LogLine[]): unknown =>
  events.flatMap((it) => {
    if (it.type !== "message" || it.message.role !== "user") return [];
    return it.message.blocks.flatMap((block) => (block.type === "text" ? [block.text] : []));
  })[0];
/** The tools an agent was given. */
const offered = (events: readonly LogLine[]): readonly string[] =>
  events.flatMap((it) => (it.type === "agent.started" ? it.tools : []));
const drawn =
  (name: string) =>
  (events: readonly LogLine[]): unknown => {
    const [start] = events;
    if (start?.type !== "run.started" || "blob" in start.plan) return "no plan";
    const { steps } = JSON.parse(jsonGraph(start.plan)) as { steps: { [name: string]: Json }[] };
    return steps.find((step) => step["id"] === "a")?.[name] ?? null;
  };

const succeeds = { does: "succeeds", see: end } as const;
const twoItems = "foreach: [1, 2]";
const withModels: readonly StepKind[] = ["agent", "steps", "workflow"];
const noAgent = "no agent runs in it";
const spendsNothing = "it spends nothing";
const oneAgent = "it bounds what one agent spawns";
/** An agent that wants two sub-agents; how many it was given is seen. */
const spawns = {
  does: "asks",
  body: "agent: spawns",
  see: (events: readonly LogLine[]): number =>
    events.filter((it) => it.type === "agent.started" && it.parent !== null).length,
} as const;

/** What every key of a step does on every kind. */
export const table: { readonly [key: string]: Row } = {
  name: every({ does: "succeeds", key: "name: N", see: drawn("name"), with: "N", without: null }),
  description: every({ does: "succeeds", key: "description: D", see: drawn("description"), with: "D", without: null }),
  needs: every({
    ...succeeds,
    key: "needs: [z]",
    around: ["z: { run: exit 1 }"],
    with: "skipped needs",
    without: "success",
  }),
  if: every({ ...succeeds, key: "if: inputs.no", with: "skipped condition", without: "success" }),
  join: every({
    ...succeeds,
    key: "join: any",
    also: "needs: [y, z]",
    // With a step that comes after: a question that changes nothing any more is not put to anybody.
    around: ['y: { run: "true" }', "z: { run: exit 1 }", "after: { needs: [a], run: 'true' }"],
    with: "success",
    without: "skipped needs",
  }),
  with: only(
    "FLOW2008",
    "with: { a: 1 }",
    "only an agent, a tool or another workflow takes inputs",
    show(["agent"], { does: "succeeds", key: "with: { who: me }", see: prompt, with: "to me", without: "to nobody" }),
    show(["tool"], {
      does: "succeeds",
      body: "tool: LS",
      key: "with: { path: sub }",
      see: output("text"),
      with: "file",
      without: expect.stringContaining("sub/") as Json,
    }),
    show(["workflow"], {
      does: "succeeds",
      key: "with: { who: me }",
      see: output("who"),
      with: "me",
      without: "nobody",
    }),
  ),
  outputs: every({ does: "succeeds", key: "outputs: { o: 7 }", see: output("o"), with: 7, without: null }),
  env: only(
    "FLOW2008",
    "env: { A: b }",
    "it starts no process",
    show(["run"], {
      does: "succeeds",
      body: 'run: echo "$A"',
      key: "env: { A: b }",
      see: output("stdout"),
      with: "b",
      without: "",
    }),
    refuse(["agent", "tool"], "env: { A: b }", "MCP server"),
  ),
  retry: every(
    { does: "fails", key: "retry: { max: 1, backoff: 1ms }", see: times("step.retrying"), with: 1, without: 0 },
    refuse(["set", "approve"], "retry: 1", "there is nothing to try again"),
  ),
  timeout: every(
    { does: "lasts", key: "timeout: 20ms", see: end, with: "failure timeout", without: "success" },
    show(["tool"], { does: "lasts", key: "timeout: 1ms", see: end, with: "failure timeout", without: "success" }),
    refuse(["set"], "timeout: 1s", "it takes no time"),
  ),
  "continue-on-error": every({
    does: "fails",
    key: "continue-on-error: true",
    see: conclusion,
    with: "success",
    without: "failure",
  }),
  foreach: every({
    does: "succeeds",
    key: "foreach: [1, 2]",
    see: (events) => parts(events).toSorted(),
    with: ["a[0]", "a[1]"],
    without: [],
  }),
  matrix: every({
    does: "succeeds",
    key: "matrix: { m: [1, 2] }",
    see: (events) => parts(events).toSorted(),
    with: ["a[0]", "a[1]"],
    without: [],
  }),
  parallel: every(
    { does: "lasts", key: "parallel: 1", also: twoItems, see: atOnce, with: 1, without: 2 },
    refuse(["set", "approve"], "foreach: [1], parallel: 1", "it holds no place among the others"),
  ),
  "fail-fast": every(
    {
      does: "fails",
      key: "fail-fast: false",
      also: `${twoItems}, parallel: 1`,
      see: (events) => end(events, "a[1]"),
      with: expect.stringMatching(/^failure/) as Json,
      without: "skipped cancelled",
    },
    show(["set"], {
      does: "fails",
      key: "fail-fast: false",
      also: twoItems,
      see: (events) => end(events, "a[1]"),
      with: "failure expression",
      without: "skipped cancelled",
    }),
    show(["approve"], {
      does: "fails",
      body: 'approve: "${{ item }}"',
      key: "fail-fast: false",
      also: 'foreach: ["No?", "Later?"]',
      see: (events) => end(events, "a[1]"),
      with: "success",
      without: "cancelled",
    }),
  ),
  repeat: every({
    does: "succeeds",
    key: "repeat: { until: iteration == 2, max: 3 }",
    see: parts,
    with: ["a#1", "a#2"],
    without: [],
  }),
  cache: every(
    { does: "succeeds", key: "cache: true", see: times("step.cached"), of: "again", with: 1, without: 0 },
    refuse(["set", "approve"], "cache: true", "there is nothing to save by reusing it"),
  ),
  undo: every(
    {
      does: "succeeds",
      key: 'undo: { run: "true" }',
      around: ["z: { needs: [a], run: exit 1 }"],
      see: times("step.undone"),
      with: 1,
      without: 0,
    },
    refuse(["set", "approve"], 'undo: { run: "true" }', "it changes nothing outside"),
  ),
  "limits.duration": every(
    { does: "lasts", key: "limits: { duration: 20ms }", see: end, with: "failure budget", without: "success" },
    show(["tool"], {
      does: "lasts",
      key: "limits: { duration: 1ms }",
      see: end,
      with: "failure budget",
      without: "success",
    }),
    refuse(["set", "approve"], "limits: { duration: 1s }", spendsNothing),
  ),
  "limits.parallel": every(
    { does: "lasts", key: "limits: { parallel: 1 }", also: twoItems, see: atOnce, with: 1, without: 2 },
    refuse(["set", "approve"], "limits: { parallel: 1 }", spendsNothing),
  ),
  "limits.tokens": only(
    "FLOW2008",
    "limits: { tokens: 10 }",
    noAgent,
    show(withModels, {
      does: "asks",
      key: "limits: { tokens: 10 }",
      see: end,
      with: "failure budget",
      without: "success",
    }),
    refuse(["set", "approve"], "limits: { tokens: 10 }", spendsNothing),
  ),
  "limits.cost": only(
    "FLOW2008",
    "limits: { cost: 0.0001 }",
    noAgent,
    show(withModels, {
      does: "asks",
      key: "limits: { cost: 0.0001 }",
      see: end,
      with: "failure budget",
      without: "success",
    }),
    refuse(["set", "approve"], "limits: { cost: 1 }", spendsNothing),
  ),
  "limits.turns": only(
    "FLOW2008",
    "limits: { turns: 1 }",
    noAgent,
    show(withModels, {
      does: "asks",
      key: "limits: { turns: 1 }",
      see: end,
      with: "failure max_turns",
      without: "success",
    }),
    refuse(["set", "approve"], "limits: { turns: 1 }", spendsNothing),
  ),
  "limits.depth": only(
    "FLOW2008",
    "limits: { depth: 1 }",
    noAgent,
    show(["agent"], { ...spawns, key: "limits: { depth: 0 }", with: 0, without: 2 }),
    refuse(["steps", "workflow"], "limits: { depth: 1 }", oneAgent),
    refuse(["set", "approve"], "limits: { depth: 1 }", spendsNothing),
  ),
  "limits.children": only(
    "FLOW2008",
    "limits: { children: 1 }",
    noAgent,
    show(["agent"], { ...spawns, key: "limits: { children: 1 }", with: 1, without: 2 }),
    refuse(["steps", "workflow"], "limits: { children: 1 }", oneAgent),
    refuse(["set", "approve"], "limits: { children: 1 }", spendsNothing),
  ),
  rerun: only(
    "FLOW2008",
    "rerun: never",
    "only `agent`, `run` and `tool` can be cut off in the middle",
    show(["agent", "run", "tool"], {
      ...succeeds,
      key: "rerun: never",
      of: "resumed",
      with: "failure lost",
      without: "success",
    }),
  ),
  isolation: only(
    "FLOW2008",
    "isolation: worktree",
    "only an agent or a command has a worktree of its own",
    show(["agent"], {
      does: "succeeds",
      repository: true,
      key: "isolation: worktree",
      see: times("worktree.closed"),
      with: 1,
      without: 0,
    }),
    show(["run"], {
      does: "succeeds",
      repository: true,
      body: "run: pwd",
      key: "isolation: worktree",
      see: output("stdout"),
      with: expect.stringContaining("/worktrees/a-1") as Json,
      without: expect.not.stringContaining("/worktrees/") as Json,
    }),
  ),
  output: only(
    "FLOW2008",
    "output: { type: object }",
    "its outputs have their shape from elsewhere",
    show(["agent"], {
      does: "succeeds",
      body: "agent: fits",
      key: "output: { type: object, properties: { a: { type: number } } }",
      see: output("a"),
      with: 1,
      without: null,
    }),
    show(["run"], {
      does: "succeeds",
      body: `run: 'echo "{ \\"a\\": 1 }"'`,
      key: "output: { type: object, properties: { a: { type: number } } }",
      see: output("a"),
      with: 1,
      without: null,
    }),
    show(["tool"], { ...succeeds, key: "output: { type: object }", with: "failure output", without: "success" }),
  ),
  stdin: only(
    "FLOW2008",
    "stdin: x",
    "only `run` starts a program",
    show(["run"], {
      does: "succeeds",
      body: "run: cat",
      key: "stdin: x",
      see: output("stdout"),
      with: "x",
      without: "",
    }),
  ),
  shell: only(
    "FLOW2008",
    "shell: sh",
    "only `run` starts a shell",
    show(["run"], { does: "succeeds", key: "shell: cat", see: output("stdout"), with: "echo a", without: "a" }),
  ),
  cwd: only(
    "FLOW2008",
    "cwd: sub",
    "only `run` starts a program",
    show(["run"], {
      does: "succeeds",
      body: "run: ls",
      key: "cwd: sub",
      see: output("stdout"),
      with: "file",
      without: expect.stringContaining("main.yaml") as Json,
    }),
  ),
  check: only(
    "FLOW2008",
    "check: { run: x }",
    "it checks the answer of an `agent`",
    show(["agent"], { ...succeeds, key: "check: { run: exit 1, max: 1 }", with: "failure check", without: "success" }),
  ),
  prompt: only(
    "FLOW2008",
    "prompt: x",
    "only an `agent` is asked something",
    show(["agent"], { does: "succeeds", key: "prompt: do it", see: prompt, with: "do it", without: "to nobody" }),
  ),
  model: only(
    "FLOW2008",
    "model: scripted/other.yaml",
    "only an `agent` talks to a model",
    show(["agent"], {
      does: "succeeds",
      key: "model: scripted/other.yaml",
      see: output("text"),
      with: "other",
      without: "hello",
    }),
  ),
  tools: only(
    "FLOW2008",
    "tools: [LS]",
    "only an `agent` calls tools by itself",
    show(["agent"], {
      does: "succeeds",
      key: "tools: [LS]",
      see: offered,
      with: ["LS"],
      without: [],
    }),
  ),
  permissions: only(
    "FLOW2008",
    "permissions: { Read: allow }",
    "permissions judge what an `agent` asks for",
    show(["agent"], { does: "asks", key: "permissions: { LS: deny }", see: offered, with: [], without: ["LS"] }),
  ),
  team: only(
    "FLOW2008",
    "team: { members: [talks] }",
    "only an `agent` leads a team",
    show(["agent"], {
      does: "asks",
      key: "team: { members: [talks] }",
      see: offered,
      with: [
        "LS",
        "SendMessage",
        "Task",
        "TaskCreate",
        "TaskGet",
        "TaskList",
        "TaskUpdate",
        "TeamCreate",
        "TeamDelete",
        "TeamStatus",
      ],
      without: ["LS"],
    }),
  ),
  form: only(
    "FLOW2008",
    "form: { type: object }",
    "only `approve` asks a person",
    show(["approve"], {
      does: "succeeds",
      key: "form: { type: object, properties: { n: { type: number } } }",
      see: output("n"),
      with: 7,
      without: null,
    }),
  ),
};
