import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Event } from "../../src/model/event.ts";
import { noUsage } from "../../src/model/message.ts";
import { plainProgress } from "../../src/render/progress.ts";
import { allSamples } from "../runlog/events-of-every-type.ts";

const start = Date.UTC(2026, 10, 21);
const at = (ms: number, event: Event): Event & { time: string } => ({
  ...event,
  time: new Date(start + ms).toISOString(),
});
const usage = { ...noUsage, input: 1200, output: 100, cost: 0.004 };
const ids = { step: "plan", agent: "plan-1", parent: null } as const;
const run: [number, Event][] = [
  [
    0,
    {
      type: "run.started",
      log: 1,
      flow: "0.1.0",
      run: "20261121-215546-4qk3f",
      workflow: "examples/research.yaml",
      name: "research",
      workspace: "/w",
      commit: null,
      digest: "",
      inputs: {},
      plan: { blob: "", size: 0 },
    },
  ],
  [80, { type: "step.started", step: "plan", kind: "agent" }],
  [100, { type: "agent.started", ...ids, name: "planner", model: "scripted/a", provider: "scripted", tools: [] }],
  [
    110,
    {
      type: "message",
      ...ids,
      turn: 0,
      message: { role: "user", blocks: [{ type: "text", text: "Plan\nthis." }] },
    },
  ],
  [120, { type: "tool.started", ...ids, turn: 1, id: "1", name: "Read", args: { file_path: "a.md" } }],
  [
    130,
    {
      type: "tool.finished",
      ...ids,
      turn: 1,
      id: "1",
      name: "Read",
      status: "error",
      text: "no such file",
      duration: 10,
    },
  ],
  [140, { type: "turn.finished", ...ids, turn: 1, stop: "calls", usage, duration: 2000 }],
  [4390, { type: "agent.finished", ...ids, outcome: "done", reason: "", turns: 2, usage, text: "ok", duration: 4290 }],
  [
    4400,
    { type: "step.finished", step: "plan", outcome: "success", conclusion: "success", outputs: {}, duration: 4300 },
  ],
  [5000, { type: "step.started", step: "lint", kind: "run" }],
  [5000, { type: "step.attempt.started", step: "lint", attempt: 1 }],
  [
    6000,
    {
      type: "step.attempt.finished",
      step: "lint",
      attempt: 1,
      outcome: "failure",
      error: { kind: "exit", message: "exited with 3" },
      duration: 1000,
    },
  ],
  [
    6000,
    { type: "step.retrying", step: "lint", attempt: 2, delay: 500, error: { kind: "exit", message: "exited with 3" } },
  ],
  [6500, { type: "step.attempt.started", step: "lint", attempt: 2 }],
  [
    7500,
    {
      type: "step.finished",
      step: "lint",
      outcome: "failure",
      conclusion: "success",
      error: {
        kind: "exit",
        message: "exited with 3: 2 problems\nin a.ts",
        position: { file: "w.yaml", line: 12, column: 5, endLine: 12, endColumn: 9 },
      },
      duration: 2500,
    },
  ],
  [
    7600,
    {
      type: "step.skipped",
      step: "publish",
      reason: {
        kind: "condition",
        condition: "inputs.publish",
        saw: [{ expression: "inputs.publish", value: false }, { expression: "inputs.branch" }],
      },
    },
  ],
  [3_662_345, { type: "run.finished", outcome: "success", outputs: {}, usage, duration: 3_662_345, exitCode: 0 }],
];

function shown(verbose: 0 | 1 | 2): string[] {
  const progress = plainProgress({ verbose });
  return run.flatMap(([ms, event]) => progress(at(ms, event)));
}

describe("plain progress", () => {
  it("tells a run in one line an event", () => {
    expect(shown(0)).toEqual([
      "00:00.0 run        20261121-215546-4qk3f examples/research.yaml",
      "00:00.1 plan       start agent=planner model=scripted/a",
      "00:04.4 plan       ok 4.3s 1.3k tok $0.004",
      "00:05.0 lint       start run",
      "00:06.0 lint       attempt 1 failed exit: exited with 3; the next in 0.5s",
      "00:07.5 lint       failed exit: exited with 3: 2 problems in a.ts (w.yaml:12:5) (the run goes on: continue-on-error) 2.5s",
      "00:07.6 publish    skipped: inputs.publish is false (inputs.publish = false, inputs.branch = no value)",
      "1:01:02.3 run        ok 1h 01m 1.3k tok $0.004",
    ]);
  });

  it("tells a `set` step in one line: it has ended as soon as it has begun", () => {
    const progress = plainProgress({ verbose: 1 });
    const end: Event = {
      type: "step.finished",
      step: "values",
      outcome: "success",
      conclusion: "success",
      duration: 1,
    };
    const lines = [{ type: "step.started", step: "values", kind: "set" } as const, end].flatMap((event) =>
      progress(at(0, event)),
    );
    expect(lines).toEqual(["00:00.0 values     ok 0.0s"]);
  });

  it("adds turns and tool calls with -v, and messages with -vv", () => {
    const added = shown(1).filter((line) => !shown(0).includes(line));
    expect(added).toEqual([
      '00:00.1 plan       tool Read {"file_path":"a.md"}',
      "00:00.1 plan       tool Read error 0.0s: no such file",
      "00:00.1 plan       turn 1 calls 2.0s 1.3k tok $0.004",
      "00:04.3 plan       agent done after 2 turns",
    ]);
    expect(shown(2).filter((line) => !shown(1).includes(line))).toEqual(["00:00.1 plan       user: Plan this."]);
  });

  it.each([
    [{ kind: "needs", step: "b", outcome: "failure", message: "`b` failed" }, "skipped: needs b, which failed"],
    [{ kind: "needs", step: "b", outcome: "cancelled", message: "" }, "skipped: needs b, which was cancelled"],
    [
      { kind: "edge", step: "b", condition: "x < 8", saw: [{ expression: "x", value: 9 }] },
      "skipped: on the edge from b, x < 8 is false (x = 9)",
    ],
    [{ kind: "empty" }, "skipped: every step in it was skipped"],
    [{ kind: "cancelled" }, "skipped: the run was cancelled"],
  ] as const)("says in words why a step is skipped: %j", (reason, words) => {
    const [line] = plainProgress({ verbose: 0 })(at(0, { type: "step.skipped", step: "a", reason }));
    expect(line).toBe(`00:00.0 a          ${words}`);
  });

  it("says that a cost is unknown, never that it is nothing", () => {
    const progress = plainProgress({ verbose: 1 });
    const [line] = progress(
      at(0, { type: "turn.finished", ...ids, turn: 1, stop: "end", usage: { ...usage, cost: null }, duration: 1 }),
    );
    expect(line).toContain("1.3k tok cost unknown");
  });

  it("cuts lines to a width, counting wide characters as two", () => {
    const progress = plainProgress({ verbose: 0, width: 40 });
    const [line] = progress(
      at(0, {
        type: "step.finished",
        step: "a",
        outcome: "failure",
        conclusion: "failure",
        error: { kind: "exit", message: "修复".repeat(30) },
        duration: 1,
      }),
    );
    expect(line).toBe("00:00.0 a          failed exit: 修复修…");
  });

  it("gives at most the right lines for every event, without an escape code or a line break", () => {
    const nasty = fc.string({
      unit: fc.constantFrom("\x1b[2J", "\n", "\r", "\x07", "\u202e", "\x9b31m", "a", "修", "::error::"),
    });
    fc.assert(
      fc.property(nasty, (text) => {
        for (const verbose of [0, 1, 2] as const) {
          const progress = plainProgress({ verbose });
          for (const event of allSamples.map((sample) => withText(sample, text)))
            for (const line of progress(at(0, event))) {
              expect(line).not.toMatch(/[\0-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e]/);
              expect(line).toMatch(/^00:00\.0 /);
            }
        }
      }),
      { numRuns: 50 },
    );
  });
});

const fixed = new Set([
  "again",
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
]);

/** The event with `text` in the place of every free text. */
function withText(event: Event, text: string): Event {
  return JSON.parse(JSON.stringify(event), (key, value: unknown) =>
    typeof value === "string" && !fixed.has(key) ? text : value,
  ) as Event;
}
