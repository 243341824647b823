import { expect, it } from "vitest";
import { Place } from "./flow.ts";

it("lets a project's own agent `compact` write the summaries, by its own model", async () => {
  const place = new Place();
  place.copy("examples/long-conversation");
  place.write("agents/compact.md", "---\nmodel: scripted/summary.yaml\n---\nBe short.\n");
  place.write("examples/long-conversation/summary.yaml", "agents: { compact: [{ text: 'mine alone' }] }\n");
  const { code } = await place.flow(["run", "examples/long-conversation/flow.yaml"]);
  expect(code).toBe(0);
  const summaries = place
    .events()
    .flatMap((line) =>
      line.type === "context.compressed" && line.how === "summarised" ? [JSON.stringify(line.message)] : [],
    );
  expect(summaries.length).toBeGreaterThan(0);
  for (const summary of summaries) expect(summary).toContain("mine alone");
  place.remove();
});
