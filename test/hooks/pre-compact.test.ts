import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { LogLine } from "../../src/model/event.ts";
import { Place } from "../cli/flow.ts";

let place: Place;
beforeEach(() => {
  const page = (name: string): string =>
    `    - { text: "Reading ${name}.", calls: [{ name: Read, args: { file_path: ${name} } }] }\n`;
  const pages = Array.from({ length: 8 }, (_, index) => `page-${index}.txt`);
  place = new Place({
    "flow.yaml": `name: long
model: scripted/r.yaml
steps: { a: { agent: { name: reader, instructions: You read., tools: [Read] }, prompt: Read all pages. } }
`,
    "r.yaml": `window: 2000
max-output: 300
agents:
  reader:
${pages.map(page).join("")}    - { text: All is read. }
  compact:
    - { text: What was read so far. }
    - { text: What was read since. }
    - { text: What was read at last. }
`,
    ...Object.fromEntries(
      pages.map((name) => [name, `${name}: ${"the quick brown fox and the lazy dog ".repeat(45)}\n`]),
    ),
  });
});
afterEach(() => place.remove());

function configure(command: string, more: object = {}): void {
  const hooks = { PreCompact: [{ matcher: "auto", hooks: [{ type: "command", command, ...more }] }] };
  place.write("flow.config.yaml", `hooks: ${JSON.stringify(hooks)}\n`);
}

function of<T extends LogLine["type"]>(type: T): Extract<LogLine, { type: T }>[] {
  return place.events().filter((event): event is Extract<LogLine, { type: T }> => event.type === type);
}

function summaries(): number {
  return of("context.compressed").filter(({ how }) => how === "summarised").length;
}

describe("a hook before the conversation is summarised", () => {
  it("is told once before each summary, and of nothing else", async () => {
    configure("cat >> told.txt");
    expect((await place.flow(["run", "flow.yaml"])).code).toBe(0);
    const told = place.read("told.txt").trim().split("\n");
    expect(summaries()).toBeGreaterThan(0);
    expect(told).toHaveLength(summaries());
    expect(JSON.parse(told[0] ?? "")).toMatchObject({
      hook_event_name: "PreCompact",
      trigger: "auto",
      session_id: "a@1",
      step: "a",
      cwd: place.folder,
    });
    const order = place.events().flatMap((event) => {
      if (event.type === "hook.finished") return ["hook"];
      return event.type === "context.compressed" && event.how === "summarised" ? ["summary"] : [];
    });
    expect(order).toEqual(Array.from({ length: summaries() }, () => ["hook", "summary"]).flat());
  });

  it.each([
    ["says no with exit code 2", "echo no >&2; exit 2", {}, "blocked"],
    ["says no in JSON", `echo '{"decision":"block","reason":"no"}'`, {}, "blocked"],
    ["fails", "exit 1", {}, "failed"],
    ["is not there", "./no-such-hook", {}, "broken"],
    ["takes too long", "sleep 20", { timeout: 0.2 }, "broken"],
  ])("that %s keeps nothing from it: the conversation would not fit", async (_, command, more, status) => {
    configure(command, more);
    expect((await place.flow(["run", "flow.yaml"])).code).toBe(0);
    expect(new Set(of("hook.finished").map((it) => it.status))).toEqual(new Set([status]));
    expect(summaries()).toBeGreaterThan(0);
    expect(of("hook.finished")).toHaveLength(summaries());
    expect(of("agent.finished")[0]).toMatchObject({ outcome: "done", text: "All is read." });
  });

  it("ends the agent where it says `continue: false`", async () => {
    configure(`echo '${JSON.stringify({ continue: false, stopReason: "too long a talk" })}'`);
    expect((await place.flow(["run", "flow.yaml"])).code).toBe(6);
    expect(summaries()).toBe(0);
    expect(of("agent.finished")[0]).toMatchObject({
      outcome: "denied",
      reason: "a hook ended it: too long a talk",
    });
  });

  it("is not asked by a matcher of another kind", async () => {
    place.write("flow.config.yaml", "hooks: { PreCompact: [{ matcher: manual, hooks: [{ command: exit 1 }] }] }\n");
    expect((await place.flow(["run", "flow.yaml"])).code).toBe(0);
    expect(of("hook.finished")).toEqual([]);
  });
});
