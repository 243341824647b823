import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import type { Event } from "../../src/model/event.ts";
import { noUsage } from "../../src/model/message.ts";
import { isWellFormed } from "../../src/runlog/shape.ts";
import { skimRun } from "../../src/runlog/skim.ts";
import { allSamples } from "./events-of-every-type.ts";
import { emptyFolder } from "./open.ts";

const started = allSamples.find((event) => event.type === "run.started") as Event;
const usage = { ...noUsage, input: 90, output: 10, cost: 0.5 };
const agent = {
  step: "a",
  agent: "a-1",
  parent: null,
  outcome: "done",
  reason: "",
  turns: 1,
  text: "",
  duration: 1,
} as const;
const steps = ["a", "b", "c", "a/inner", "a[1]", "b#2"];

const root: fc.Arbitrary<Event> = fc.oneof(
  fc.record({
    type: fc.constant("step.started" as const),
    step: fc.constantFrom(...steps),
    kind: fc.constant("run" as const),
  }),
  fc.record({
    type: fc.constant("step.finished" as const),
    step: fc.constantFrom(...steps),
    outcome: fc.constantFrom("success" as const, "failure" as const, "cancelled" as const),
    conclusion: fc.constantFrom("success" as const, "failure" as const, "cancelled" as const),
    duration: fc.constant(1),
  }),
  fc.record({
    type: fc.constant("step.skipped" as const),
    step: fc.constantFrom(...steps),
    reason: fc.constant({ kind: "empty" } as const),
  }),
  fc.constant({ type: "agent.finished", ...agent, usage } as const),
);

function skim(text: string): ReturnType<typeof skimRun> {
  const folder = emptyFolder();
  writeFileSync(path.join(folder, "log.jsonl"), text);
  return skimRun(folder);
}

function logOf(events: readonly Event[], turned = false): string {
  return events
    .map((event, index) => {
      const line = { seq: index + 1, time: new Date(Date.UTC(2026, 10, 21) + index * 1000).toISOString(), ...event };
      // A log that somebody wrote with other tools has its fields in another order.
      return `${JSON.stringify(turned ? Object.fromEntries(Object.entries(line).reverse()) : line)}\n`;
    })
    .join("");
}

describe("skimming a log", () => {
  it("counts the workflow's own steps by their last conclusion, and what agents spent", () => {
    fc.assert(
      fc.property(fc.array(root, { maxLength: 40 }), fc.boolean(), (events, turned) => {
        const last = new Map<string, string>();
        for (const event of events) {
          if (!("step" in event) || /[/[#]/.test(event.step)) continue;
          if (event.type === "step.started") last.delete(event.step);
          else if (event.type === "step.skipped") last.set(event.step, "skipped");
          else if (event.type === "step.finished") last.set(event.step, event.conclusion);
        }
        const count = (what: string): number => [...last.values()].filter((it) => it === what).length;
        const agents = events.filter(({ type }) => type === "agent.finished").length;
        expect(skim(logOf([started, ...events], turned))).toMatchObject({
          outcome: null,
          steps: {
            ok: count("success"),
            failed: count("failure"),
            skipped: count("skipped"),
            cancelled: count("cancelled"),
          },
          tokens: agents * 100,
          cost: agents * 0.5,
          duration: events.length * 1000,
          problem: null,
        });
      }),
      { numRuns: 200 },
    );
  });

  it("takes the last end, and none that a resume has followed", () => {
    const end: Event = { type: "run.finished", outcome: "failure", outputs: {}, usage, duration: 7, exitCode: 1 };
    const resumed: Event = { type: "run.resumed", flow: "", run: "", workflow: "", name: "", digest: "" };
    expect(skim(logOf([started, end]))).toMatchObject({ outcome: "failure", duration: 7, tokens: 100 });
    expect(skim(logOf([started, end, resumed]))).toMatchObject({ outcome: null });
    expect(skim(logOf([started, end, resumed, { ...end, outcome: "success" }]))).toMatchObject({ outcome: "success" });
  });

  it("reads only the two ends of a long log, and counts nothing there", () => {
    const middle: Event = {
      type: "step.finished",
      step: "a",
      outcome: "success",
      conclusion: "success",
      outputs: "x".repeat(50_000),
      duration: 1,
    };
    const end: Event = { type: "run.finished", outcome: "success", outputs: {}, usage, duration: 7, exitCode: 0 };
    const long = [started, ...Array.from({ length: 100 }, () => middle), end];
    expect(skim(logOf(long))).toMatchObject({ outcome: "success", steps: null, tokens: 100, problem: null });
    expect(skim(logOf(long.slice(0, -1)))).toMatchObject({ outcome: null, steps: null, tokens: null, problem: null });
  });

  it("never throws, wherever a log is cut", () => {
    const text = logOf([started, ...allSamples]);
    for (let length = 0; length < text.length; length += 7)
      expect(typeof skim(text.slice(0, length)).problem).toMatch(/string|object/);
    expect(skimRun("/nowhere/at/all").problem).toContain("there is no such file");
  });
});

describe("the shape of a line", () => {
  it.each(allSamples.map((event) => [event.type, event] as const))("of %s is what we write", (_, event) => {
    expect(isWellFormed(event)).toBe(true);
  });

  it("is not that of an event whose step, outcome or reason is something else", () => {
    for (const event of allSamples) {
      if ("step" in event) expect(isWellFormed({ ...event, step: 5 } as never), event.type).toBe(false);
      if ("outcome" in event && event.type.startsWith("step"))
        expect(isWellFormed({ ...event, outcome: "splendid" } as never)).toBe(false);
      if (event.type === "step.skipped")
        expect(isWellFormed({ ...event, reason: { kind: "toString" } } as never)).toBe(false);
    }
  });

  const whole: readonly Event[] = [
    started,
    { type: "step.started", step: "a", kind: "run" },
    { type: "step.finished", step: "a", outcome: "failure", conclusion: "failure", duration: 1 },
    allSamples.find((event) => event.type === "run.finished") as Event,
  ];

  it.each([
    ["a line is missing", (lines: string[]) => lines.toSpliced(1, 1)],
    ["a line is there twice", (lines: string[]) => lines.toSpliced(1, 0, lines[1] ?? "")],
    ["two lines are glued", (lines: string[]) => lines.toSpliced(1, 2, `${lines[1]}${lines[2]}`)],
    ["the last two lines are glued", (lines: string[]) => lines.toSpliced(2, 2, `${lines[2]}${lines[3]}`)],
  ])("says that a log is damaged in which %s", (_, change) => {
    const lines = logOf(whole).trimEnd().split("\n");
    expect(skim(`${lines.join("\n")}\n`).problem).toBeNull();
    expect(skim(`${change(lines).join("\n")}\n`).problem).toContain("damaged");
  });

  it("bears a byte order mark and blank lines, as the other readers do", () => {
    expect(skim(`\uFEFF${logOf(whole)}`.replace("\n", "\n  \n"))).toMatchObject({
      problem: null,
      steps: { failed: 1 },
    });
  });

  it("waits for no pipe in the place of a log", () => {
    const folder = emptyFolder();
    execFileSync("mkfifo", [path.join(folder, "log.jsonl")]);
    expect(skimRun(folder).problem).toContain("not a regular file");
  });
});
