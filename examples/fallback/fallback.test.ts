import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Place } from "../../test/cli/flow.ts";

let place: Place;
beforeAll(() => {
  place = new Place();
  place.copy("examples/fallback");
});
afterAll(() => place.remove());

describe("the example fallback", () => {
  it("is answered by the second model, and says all that went wrong before", async () => {
    const { code, stdout, stderr } = await place.flow(["run", "examples/fallback/flow.yaml"]);
    expect(stdout).toBe("notes: This release does it: two bugs fixed, one feature added.\ntitle: This release\n");
    expect(code).toBe(0);
    for (const text of [
      "scripted/down.yaml failed: scripted: the server cannot be reached",
      "scripted/down.yaml failed, scripted/busy.yaml is asked",
      "scripted/busy.yaml again in 1.",
    ])
      expect(stderr).toContain(text);
  });

  it("has each failure, wait and switch in its log, with what was lost", () => {
    const told = place.events().flatMap((event) => {
      if (event.type === "model.failed") return [`${event.step} failed ${event.model} ${event.error.kind}`];
      if (event.type === "model.fallback") return [`${event.step} falls back on ${event.model}`];
      if (event.type !== "model.retry") return [];
      expect(event.delay).toBeGreaterThanOrEqual(1_500);
      expect(event.usage?.output).toBeGreaterThan(0);
      return [`${event.step} retries ${event.model} ${event.error.kind}`];
    });
    expect(told).toEqual([
      "draft failed scripted/down.yaml unavailable",
      "draft falls back on scripted/busy.yaml",
      "draft retries scripted/busy.yaml provider_error",
      "title failed scripted/down.yaml unavailable",
      "title falls back on scripted/busy.yaml",
    ]);
    const text = place.events().flatMap((event) => (event.type === "message" ? event.message.blocks : []));
    expect(JSON.stringify(text)).not.toContain('"This rele"');
  });

  it("fails with exit 3 when no model of the list answers", async () => {
    place.write("examples/fallback/busy.yaml", "agents: { editor: [{ error: unreachable }] }\n");
    const { code, stderr } = await place.flow(["run", "examples/fallback/flow.yaml"]);
    expect(stderr).toContain("scripted/busy.yaml failed");
    expect(code).toBe(3);
  });
});
