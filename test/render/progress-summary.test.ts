import { describe, expect, it } from "vitest";
import type { Event } from "../../src/model/event.ts";
import { noUsage } from "../../src/model/message.ts";
import { colourLevel, loadPalette, plainPalette } from "../../src/render/palette.ts";
import { noFacts, observe, type RunFacts, runSummary } from "../../src/render/summary.ts";

const position = { file: "workflows/a.yaml", line: 12, column: 5, endLine: 12, endColumn: 9 };
const ended = (step: string, conclusion: "success" | "failure" | "cancelled", inner?: string): Event => ({
  type: "step.finished",
  step,
  outcome: conclusion,
  conclusion,
  duration: 1,
  ...(conclusion === "failure"
    ? {
        error: {
          kind: "exit",
          message: `${step} exited with 3`,
          position,
          ...(inner === undefined ? {} : { step: inner }),
        },
      }
    : {}),
});
const started: Event = {
  type: "run.started",
  log: 1,
  flow: "0.1.0",
  run: "20261121-215546-4qk3f",
  workflow: "a.yaml",
  name: "release",
  workspace: "/w",
  commit: null,
  digest: "",
  inputs: {},
  plan: { blob: "", size: 0 },
};
const finished = (outcome: Extract<Event, { type: "run.finished" }>["outcome"], cost: number | null): Event => ({
  type: "run.finished",
  outcome,
  outputs: {},
  usage: { ...noUsage, input: 18_200, output: 2010, cost },
  duration: 43_100,
  exitCode: 0,
});
const fold = (...events: Event[]): RunFacts => events.reduce(observe, noFacts);

describe("the last block of a run", () => {
  it("says how it ended, what it cost and what to type next", () => {
    const agent: Event = {
      type: "agent.started",
      step: "a",
      agent: "a-1",
      parent: null,
      name: "w",
      model: "scripted/x",
      provider: "scripted",
      tools: [],
    };
    const skip: Event = { type: "step.skipped", step: "b", reason: { kind: "empty" } };
    const facts = fold(started, agent, ended("a", "success"), skip, finished("success", 0));
    expect(
      runSummary(facts, {
        palette: plainPalette,
        log: ".flow/runs/x/log.jsonl",
        next: ["flow logs latest", "flow serve"],
      }),
    ).toBe(
      [
        "ok release 20261121-215546-4qk3f 43.1s",
        "  steps   1 ok, 0 failed, 1 skipped",
        "  tokens  18.2k in, 2.0k out, $0 (scripted)",
        "  log     .flow/runs/x/log.jsonl",
        "  next    flow logs latest",
        "          flow serve",
        "",
      ].join("\n"),
    );
  });

  it("names the innermost step that failed, with its place, and counts the workflow's own steps only", () => {
    const facts = fold(
      started,
      ended("other/optional", "failure"),
      ended("other", "success"),
      ended("group[1]/build", "failure"),
      ended("group[1]", "failure", "group[1]/build"),
      ended("group", "failure", "group[1]/build"),
      ended("late", "cancelled"),
      finished("failure", null),
    );
    const text = runSummary(facts, { palette: plainPalette, next: [] });
    expect(text).toContain("  steps   1 ok, 1 failed, 0 skipped, 1 cancelled\n");
    expect(text).toContain("  failed  group[1]/build exit: group[1]/build exited with 3 (workflows/a.yaml:12:5)\n");
    expect(text).toContain("cost unknown");
    expect(text).not.toContain("optional");
  });

  it("shows the run's own error when no step failed, and nothing failed when it succeeded", () => {
    const limit: Event = { ...finished("failure", 0), error: { kind: "budget", message: "the run took 1h" } } as Event;
    expect(runSummary(fold(started, limit), { palette: plainPalette, next: [] })).toContain(
      "  failed  budget: the run took 1h\n",
    );
    const fine = fold(started, ended("a/b", "failure"), ended("a", "success"), finished("success", 0));
    expect(runSummary(fine, { palette: plainPalette, next: [] })).not.toMatch(/^ {2}failed/m);
  });

  it("does not count a failure that was allowed as ok", () => {
    const allowed = { ...ended("a", "failure"), outcome: "failure", conclusion: "success" } as Event;
    const facts = fold(started, allowed, ended("b", "success"), finished("success", 0));
    expect(runSummary(facts, { palette: plainPalette, next: [] })).toContain(
      "steps   1 ok, 0 failed, 0 skipped, 1 failed but allowed to\n",
    );
  });

  it.each([
    ["empty", "empty (no step ran) release"],
    ["waiting", "waiting release"],
    ["cancelled", "cancelled release"],
  ] as const)("begins with the outcome: %s", (outcome, heading) => {
    expect(runSummary(fold(started, finished(outcome, 0)), { palette: plainPalette, next: [] })).toContain(heading);
  });

  it("says when the log has no end", () => {
    expect(runSummary(fold(started, ended("a", "success")), { palette: plainPalette, next: [] })).toMatch(
      /^no end release/,
    );
  });

  it("has colour only from the palette", async () => {
    const facts = fold(started, ended("a", "failure"), finished("failure", 0));
    const plain = runSummary(facts, { palette: plainPalette, next: ["x"] });
    const coloured = runSummary(facts, { palette: await loadPalette(1), next: ["x"] });
    expect(plain).not.toContain("\x1b");
    expect(coloured).toContain("\x1b[31m");
    expect(coloured.replaceAll(/\x1b\[\d+m/g, "")).toBe(plain);
    expect(await loadPalette(0)).toBe(plainPalette);
  });
});

describe("the colour of a stream", () => {
  const terminal = { isTTY: true, depth: 8, env: { TERM: "xterm-256color" } };
  const pipe = { isTTY: false, depth: 1, env: {} };

  it.each([
    ["a terminal", terminal, 2],
    ["a terminal of sixteen million colours", { ...terminal, depth: 24 }, 3],
    ["a pipe", pipe, 0],
    ["a terminal that cannot", { ...terminal, env: { TERM: "dumb" } }, 0],
    ["CI with a terminal", { ...terminal, env: { CI: "true" } }, 0],
    ["NO_COLOR in a terminal", { ...terminal, env: { NO_COLOR: "1" } }, 0],
    ["an empty NO_COLOR", { ...terminal, env: { NO_COLOR: "" } }, 2],
    ["FORCE_COLOR in a pipe", { ...pipe, env: { FORCE_COLOR: "1" } }, 1],
    ["FORCE_COLOR=true in a pipe", { ...pipe, env: { FORCE_COLOR: "true" } }, 1],
    ["FORCE_COLOR=3 in CI", { ...pipe, env: { FORCE_COLOR: "3", CI: "1" } }, 3],
    ["FORCE_COLOR=0 in a terminal", { ...terminal, env: { FORCE_COLOR: "0" } }, 0],
    ["NO_COLOR before FORCE_COLOR", { ...pipe, env: { NO_COLOR: "1", FORCE_COLOR: "1" } }, 0],
    ["the flag before NO_COLOR", { ...pipe, flag: true, env: { NO_COLOR: "1" } }, 1],
    ["the flag against it in a terminal", { ...terminal, flag: false }, 0],
  ])("%s", (_name, facts, level) => {
    expect(colourLevel(facts)).toBe(level);
  });
});
