import { describe, expect, it } from "vitest";
import { of, replies } from "../cli/lineage.ts";
import { Place } from "../cli/flow.ts";

const ways = [
  ["says no with exit code 2", { command: "exit 2" }, "blocked", "error"],
  ["says no in JSON", { command: `echo '{"decision":"block"}'` }, "blocked", "error"],
  ["fails", { command: "exit 1" }, "failed", "completed"],
  ["is not there", { command: "./no-such-check" }, "broken", "error"],
  ["takes too long", { command: "sleep 20", timeout: 0.2 }, "broken", "error"],
  ["is not there, with `on_error: allow`", { command: "./no-such-check", on_error: "allow" }, "broken", "completed"],
] as const;

describe("a hook on `TaskCompleted`", () => {
  it.concurrent.each(ways)("that %s", async (_, hook, status, ended) => {
    const lead = `{ calls: [{ name: TeamCreate, args: { name: crew } }, { name: TaskCreate, args: { subject: one, description: do } }] }`;
    const member = `{ calls: [{ name: TaskUpdate, args: { taskId: "1", status: completed, report: fine } }] }`;
    const place = new Place({
      "flow.config.yaml": `hooks: ${JSON.stringify({ TaskCompleted: [{ hooks: [hook] }] })}\n`,
      "w.yaml": `model: scripted/s.yaml
agents:
  lead: { instructions: You lead., prompt: Go., team: { members: [reader] } }
  reader: { instructions: You read., tools: [Read] }
steps: { a: { agent: lead } }
`,
      "s.yaml": replies({
        lead: [lead, "{ text: waiting }", "{ text: heard }"],
        reader: [member, "{ text: I go }"],
      }),
    });
    try {
      await place.flow(["run", "w.yaml"]);
      const events = place.events();
      expect(new Set(of(events, "hook.finished").map((it) => it.status))).toEqual(new Set([status]));
      const [told] = of(events, "tool.finished").filter(({ name }) => name === "TaskUpdate");
      expect(told?.status).toBe(ended);
    } finally {
      place.remove();
    }
  });

  it.each(["lead", "reader"])("in the file of the %s is asked about a member's task", async (who) => {
    const hook = `hooks: { TaskCompleted: [{ hooks: [{ command: "echo not like this >&2; exit 2" }] }] }`;
    const keysOf = (name: string): string => (name === who ? `, ${hook}` : "");
    const place = new Place({
      "w.yaml": `model: scripted/s.yaml
agents:
  lead: { instructions: You lead., prompt: Go., team: { members: [reader] }${keysOf("lead")} }
  reader: { instructions: You read., tools: [Read]${keysOf("reader")} }
steps: { a: { agent: lead } }
`,
      "s.yaml": replies({
        lead: [
          `{ calls: [{ name: TeamCreate, args: { name: crew } }, { name: TaskCreate, args: { subject: one, description: do } }] }`,
          "{ text: waiting }",
          "{ text: heard }",
        ],
        reader: [
          `{ calls: [{ name: TaskUpdate, args: { taskId: "1", status: completed, report: fine } }] }`,
          "{ text: I go }",
        ],
      }),
    });
    try {
      await place.flow(["run", "w.yaml"]);
      const [told] = of(place.events(), "tool.finished").filter(({ name }) => name === "TaskUpdate");
      expect([told?.status, told?.text]).toEqual(["error", expect.stringContaining("not like this") as string]);
    } finally {
      place.remove();
    }
  });

  it("is asked as well when a member ends without a word about its task, and when the lead says it is done", async () => {
    const place = new Place({
      "flow.config.yaml": `hooks: { TaskCompleted: [{ hooks: [{ command: "echo not like this >&2; exit 2" }] }] }\n`,
      "w.yaml": `model: scripted/s.yaml
agents:
  lead: { instructions: You lead., prompt: Go., team: { members: [reader] } }
  reader: { instructions: You read., tools: [Read] }
steps: { a: { agent: lead } }
`,
      "s.yaml": replies({
        lead: [
          `{ calls: [{ name: TeamCreate, args: { name: crew } }, { name: TaskCreate, args: { subject: one, description: do } }] }`,
          "{ text: waiting }",
          `{ calls: [{ name: TaskUpdate, args: { taskId: "1", status: completed } }] }`,
          "{ text: heard }",
        ],
        reader: ["{ text: I think that is it }"],
      }),
    });
    try {
      await place.flow(["run", "w.yaml"]);
      const events = place.events();
      const ends = of(events, "team.task.updated").map(({ change }) => change.status);
      expect(ends).toEqual(["in_progress", "failed"]);
      const told = of(events, "tool.finished").find(({ name }) => name === "TaskUpdate");
      expect(told).toMatchObject({ status: "error", text: "not like this" });
    } finally {
      place.remove();
    }
  });
});
