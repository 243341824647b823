import type { JsonObject } from "../../src/model/json.ts";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Event, LogLine } from "../../src/model/event.ts";
import { noUsage } from "../../src/model/message.ts";
import type { Plan, Step } from "../../src/model/plan.ts";
import { displayWidth } from "../../src/render/display.ts";
import { logLines } from "../../src/render/log-lines.ts";
import { plainPalette } from "../../src/render/palette.ts";
import { runJson, whyJson } from "../../src/render/run-json.ts";
import { runText } from "../../src/render/run-text.ts";
import { grow, newTree, type RunTree, totalUsage } from "../../src/render/run-tree.ts";
import { runsTable } from "../../src/render/runs-table.ts";
import { explain, nearestPaths } from "../../src/render/why.ts";
import { whyText } from "../../src/render/why-text.ts";
import { allSamples } from "../runlog/events-of-every-type.ts";

const at = { file: "a.yaml", line: 1, column: 1, endLine: 1, endColumn: 2 };
const step = (id: string, more: Partial<Step> = {}): Step => ({
  id,
  kind: "run",
  at,
  join: "all",
  inputs: { type: "map", entries: [] },
  body: { kind: "run", command: { script: "" }, shell: "bash" },
  continueOnError: false,
  limits: {},
  ...more,
});
const inline = { inline: { steps: [step("ok"), step("late")], edges: [], outputs: [] } };
const plan: Plan = {
  version: 1,
  digest: "",
  root: "a.yaml",
  workflows: {
    "a.yaml": {
      path: "a.yaml",
      name: "a",
      inputs: [],
      vars: [],
      env: [],
      secrets: [],
      limits: {},
      expect: { steps: [], outputs: [] },
      scope: { steps: [step("plan"), step("group", { kind: "steps", scope: inline })], edges: [], outputs: [] },
    },
  },
  agents: {},
  files: [],
};
const started: Event = {
  type: "run.started",
  log: 1,
  flow: "0.1.0",
  run: "20261121-215546-4qk3f",
  workflow: "a.yaml",
  name: "a",
  workspace: "/w",
  commit: null,
  digest: "",
  inputs: {},
  plan,
};
const usage = { ...noUsage, input: 100, output: 10, cost: 0.5 };
const begin = (path: string, kind: Step["kind"] = "run"): Event => ({ type: "step.started", step: path, kind });
const end = (path: string, outcome: "success" | "failure" = "success"): Event => ({
  type: "step.finished",
  step: path,
  outcome,
  conclusion: outcome,
  duration: 5,
  ...(outcome === "failure" && { error: { kind: "exit", message: "exited with 3" } }),
});
const agentRun = (path: string, agent: string): Event[] => [
  { type: "agent.started", step: path, agent, parent: null, name: "w", model: "m", provider: "p", tools: [] },
  {
    type: "agent.finished",
    step: path,
    agent,
    parent: null,
    outcome: "done",
    reason: "",
    turns: 1,
    usage,
    text: "",
    duration: 1,
  },
];
const resumed: Event = { type: "run.resumed", flow: "0.1.0", run: "", workflow: "a.yaml", name: "a", digest: "" };

function treeOf(...events: readonly Event[]): RunTree {
  const tree = newTree();
  stamped(events).forEach((line) => grow(tree, line));
  return tree;
}

function stamped(events: readonly Event[]): LogLine[] {
  return events.map((event, index) => ({
    seq: index + 1,
    time: new Date(Date.UTC(2026, 10, 21) + index).toISOString(),
    ...event,
  }));
}

/** Everything that can be said of a tree. */
function everything(tree: RunTree): string[] {
  const fileNow = (): { text: string; hasChanged: boolean } => ({ text: "one line", hasChanged: true });
  return [true, false].flatMap((alive) => {
    const view = { tree, alive };
    const whys = ["plan", "group", "group/late", "no", ...tree.nodes.keys()].flatMap(
      (path) => explain(view, path) ?? [],
    );
    JSON.stringify([runJson(view), ...whys.map((why) => whyJson("x", why))]);
    return [runText(view, plainPalette), ...whys.map((why) => whyText(why, { palette: plainPalette, fileNow }))];
  });
}

describe("the tree of a run", () => {
  it("holds the workflow's own steps from the first event on, in the order they are written", () => {
    const tree = treeOf(started, begin("group", "steps"));
    expect(tree.root.children.map(({ path, status }) => [path, status])).toEqual([
      ["plan", "pending"],
      ["group", "running"],
    ]);
  });

  it("puts items, iterations and inner steps where their paths say", () => {
    const tree = treeOf(started, begin("group[2]#3/ok"));
    expect([...tree.nodes.keys()]).toEqual(["plan", "group", "group[2]#3/ok", "group[2]#3", "group[2]"]);
    expect(tree.nodes.get("group[2]")?.children[0]?.children[0]?.label).toBe("ok");
  });

  it("sums tokens and money up to the root, and knows when a price is unknown", () => {
    const tree = treeOf(started, ...agentRun("group/ok", "a-1"), ...agentRun("plan", "b-1"));
    expect(totalUsage(tree.root)).toMatchObject({ input: 200, cost: 1 });
    expect(tree.nodes.get("group")?.agents).toEqual([]);
  });

  it("begins a group's next attempt with nothing done, but the money spent", () => {
    const attempt = (number: number): Event => ({ type: "step.attempt.started", step: "group", attempt: number });
    const first = [
      started,
      begin("group", "steps"),
      attempt(1),
      begin("group/ok"),
      ...agentRun("group/ok", "a-1"),
      end("group/ok"),
    ];
    const tree = treeOf(...first, attempt(2));
    expect(tree.nodes.has("group/ok")).toBe(false);
    expect(totalUsage(tree.root).cost).toBe(0.5);
  });

  it("keeps what a resume reuses as it was, and starts the rest again", () => {
    const before = [
      started,
      begin("plan"),
      ...agentRun("plan", "a-1"),
      end("plan"),
      begin("group", "steps"),
      begin("group/ok"),
    ];
    const again: Event = { type: "step.attempt.started", step: "group/ok", attempt: 1, again: "uncertain" };
    const after = [
      resumed,
      begin("plan"),
      { type: "step.reused", step: "plan", end: 5 } as const,
      end("plan"),
      begin("group", "steps"),
      begin("group/ok"),
      again,
    ];
    const tree = treeOf(...before, ...after);
    expect(tree.nodes.get("plan")).toMatchObject({
      reused: 5,
      status: "success",
      duration: 5,
      agents: [{ agent: "a-1" }],
    });
    expect(totalUsage(tree.root).cost).toBe(0.5);
    const view = { tree, alive: true };
    expect(runText(view, plainPalette)).toMatch(/✓ plan +ok +run, reused/);
    const text = (path: string): string => {
      const why = explain(view, path);
      return why === undefined ? "" : whyText(why, { palette: plainPalette, fileNow: () => undefined });
    };
    expect(text("plan")).toContain("It was not run again by the resume: its end in line 5 of the log still holds.");
    expect(text("group/ok")).toContain("It was run again by the resume, because it was running when the run died.");
    expect(text("group/late")).toContain("It is inside group (running).\nIt has not started yet.");
  });

  it("counts long lists and shows what needs a look, at most ten of it", () => {
    const items = Array.from({ length: 40 }, (_, index) => [
      begin(`plan[${index}]`),
      end(`plan[${index}]`, index < 20 ? "failure" : "success"),
    ]);
    const text = runText({ tree: treeOf(started, begin("plan"), ...items.flat()), alive: true }, plainPalette);
    expect(text).toContain("20 ok, 20 failed; 30 not shown");
    expect(text.match(/✗ \[\d+\]/g)).toHaveLength(10);
    expect(text).toContain("run ×40");
  });

  it("shows agents below those that started them, and each attempt's own", () => {
    const child: Event = {
      type: "agent.started",
      step: "plan",
      agent: "b-1",
      parent: "a-1",
      name: "child",
      model: "m",
      provider: "p",
      tools: [],
    };
    const text = runText(
      { tree: treeOf(started, begin("plan"), ...agentRun("plan", "a-1"), child), alive: false },
      plainPalette,
    );
    expect(text).toMatch(/^ {2}✓ agent w +ok .*\n {4}! agent child +interrupted/m);
  });
});

describe("sub-agents of a step that was resumed", () => {
  const ids = { step: "plan", name: "w", model: "m", provider: "p", tools: [] } as const;
  const spawned = { call: "c", title: "t", depth: 1, background: false };
  const start = (agent: string, parent: string | null, continues?: string): Event => ({
    type: "agent.started",
    ...ids,
    agent,
    parent,
    ...(parent !== null && { spawned }),
    ...(continues !== undefined && { continues }),
  });
  const finish = (agent: string, parent: string | null, times: number): Event => ({
    type: "agent.finished",
    step: "plan",
    agent,
    parent,
    outcome: "done",
    reason: "",
    turns: times,
    usage: { ...usage, input: usage.input * times },
    text: "",
    duration: 1,
  });

  it("stay in the tree when they had ended, and what was gone on with counts once", () => {
    const before = [
      start("plan@1", null),
      start("plan@1.1", "plan@1"),
      finish("plan@1.1", "plan@1", 1),
      start("plan@1.2", "plan@1"),
    ];
    const turn: Event = {
      type: "turn.finished",
      step: "plan",
      agent: "plan@1.2",
      parent: "plan@1",
      turn: 1,
      stop: "calls",
      usage,
      duration: 1,
    };
    const after = [
      start("plan@2", null, "plan@1"),
      start("plan@2.3", "plan@2", "plan@1.2"),
      finish("plan@2.3", "plan@2", 2),
      finish("plan@2", null, 1),
    ];
    const view = {
      tree: treeOf(started, begin("plan"), ...before, turn, resumed, begin("plan"), ...after),
      alive: false,
    };
    const { steps } = runJson(view) as unknown as { steps: { agents: JsonObject[]; usage: JsonObject }[] };
    const plan = steps.find(({ agents }) => agents.length > 0);
    expect(plan?.agents.map(({ agent, root, total }) => [agent, root, (total as JsonObject)["input"]])).toEqual([
      ["plan@1.1", "plan@2", 100],
      ["plan@2", "plan@2", 400],
      ["plan@2.3", "plan@2", 200],
    ]);
    expect(plan?.usage["input"]).toBe(400);
    expect(runText(view, plainPalette).match(/agent w/g)).toHaveLength(3);
  });

  it("that are each other's parents are shown once, or not at all", () => {
    const circle = [
      start("a", "b"),
      start("b", "a"),
      start("c", "c"),
      start("d", null, "c"),
      start("c", "d", "d"),
      start("d", "c", "c"),
    ];
    const view = { tree: treeOf(started, begin("plan"), ...circle), alive: false };
    expect(runText(view, plainPalette)).toContain("plan");
    expect(JSON.stringify(runJson(view))).toContain('"agent":"a"');
  });
});

describe("whatever the log says", () => {
  it("every prefix of events of every type can be shown, in lines of at most 100 columns", () => {
    const events = [started, ...allSamples];
    for (let length = 0; length <= events.length; length++)
      for (const text of everything(treeOf(...events.slice(0, length))))
        for (const line of text.split("\n")) expect(displayWidth(line), line).toBeLessThanOrEqual(100);
  });

  it("events in any order and any number can be shown", () => {
    const any = fc.array(fc.constantFrom(...allSamples, started), { maxLength: 60 });
    fc.assert(
      fc.property(any, (events) => {
        everything(treeOf(...events));
      }),
      { numRuns: 100 },
    );
  });

  it("no text in it becomes a control or a line of its own", () => {
    const nasty = fc.string({
      unit: fc.constantFrom("\x1b[2J", "\n", "\r", "\x07", "\u202e", "\x9b31m", "a", "修", "/", "[", "#", " "),
    });
    fc.assert(
      fc.property(nasty, (text) => {
        const lines = stamped([started, ...allSamples]).map((line) => withText(line, text));
        const tree = newTree();
        lines.forEach((line) => grow(tree, line));
        const printer = logLines({ verbose: 2, output: "all", everyEvent: true });
        const brief = {
          run: text,
          workflow: text,
          name: text,
          state: text,
          started: text,
          duration: 1,
          steps: null,
          tokens: 1,
          cost: null,
          problem: text,
        };
        const told = [
          ...lines.flatMap((line) => printer.event(line)),
          ...lines.flatMap((line) => printer.unknown({ ...line, type: text } as never)),
        ];
        const shown = [
          ...everything(tree).flatMap((it) => it.split("\n")),
          ...told,
          ...runsTable([brief], plainPalette).split("\n"),
        ];
        for (const line of shown) expect(line).not.toMatch(/[\0-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e]/);
      }),
      { numRuns: 30 },
    );
  });

  it("a path of a hundred thousand parts costs no stack", () => {
    const tree = treeOf(started, begin("a/".repeat(100_000)));
    expect(everything(tree).length).toBeGreaterThan(0);
  });

  it("suggests at most three paths", () => {
    const tree = treeOf(started, ...Array.from({ length: 50 }, (_, index) => begin(`plan[${index}]`)));
    expect(nearestPaths(tree, "plan[77]")).toHaveLength(3);
  });
});

const fixed = new Set([
  "why",
  "type",
  "kind",
  "status",
  "outcome",
  "conclusion",
  "role",
  "stop",
  "severity",
  "code",
  "again",
  "time",
]);

/** The event with `text` in the place of every free text. */
function withText(event: LogLine, text: string): LogLine {
  return JSON.parse(JSON.stringify(event), (key, value: unknown) =>
    typeof value === "string" && !fixed.has(key) ? text : value,
  ) as LogLine;
}
