import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Place } from "../../test/cli/flow.ts";

let place: Place;
beforeAll(() => {
  place = new Place();
  place.copy("examples/claude-agents");
});
afterAll(() => place.remove());

describe("the example claude-agents", () => {
  it("runs agents of two other programs as they are", async () => {
    const { code, stdout, stderr } = await place.flow(["run", "examples/claude-agents/flow.yaml"]);
    expect([code, stdout]).toEqual([
      0,
      'broken: ["harbour.md: ferry.md"]\nnotes: harbour.md speaks of boats and a ferry.\n',
    ]);
    expect(stderr).toContain("hook PreToolUse blocked");
    const events = place.events();
    const [first] = events.filter((event) => event.type === "agent.started");
    expect(first).toMatchObject({ name: "link-checker", tools: ["Glob", "Grep", "Read"] });
    expect(JSON.stringify(events.find((event) => event.type === "message"))).toContain("No adjectives.");
    const refused = events.filter((event) => event.type === "tool.finished" && event.status === "error");
    expect(refused).toMatchObject([{ name: "Read", text: expect.stringContaining("nobody’s business") as string }]);
  });

  it("explains what became of them", async () => {
    const { code, stdout } = await place.flow(["agents", "explain", "link-checker"], { cwd: "examples/claude-agents" });
    expect(code).toBe(0);
    expect(stdout).toMatch(/color +ignored/);
    expect(stdout).toMatch(/model +anthropic\/claude-sonnet-5 +agent \.claude\/agents\/link-checker\.md:5/);
    const list = await place.flow(["agents"], { cwd: "examples/claude-agents" });
    expect(list.stdout).toMatch(/^docs\/note-taker .*\nlink-checker/);
  });
});
