import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ends, of } from "../../test/cli/lineage.ts";
import { Place } from "../../test/cli/flow.ts";

let place: Place;
beforeAll(() => {
  place = new Place();
  place.copy("examples/deep-tree");
});
afterAll(() => place.remove());

describe("the example deep-tree", () => {
  it("goes three levels down, and the denial of the first holds on all of them", async () => {
    const before = place.read("examples/deep-tree/project/config.js");
    const { code, stdout } = await place.flow(["run", "examples/deep-tree/flow.yaml"]);
    expect([code, stdout]).toEqual([
      0,
      "report: PORT is read in config.js and used in server.js. No other variable is read.\n",
    ]);
    const events = place.events();
    expect(ends(events).sort()).toEqual([
      "audit@1 lead done",
      "audit@1.1 expert done",
      "audit@1.1.1 explore done",
      "audit@1.2 explore done",
    ]);
    const denied = of(events, "permission.judged").filter(({ decision }) => decision === "deny");
    expect(denied).toMatchObject([
      { agent: "audit@1.1", name: "Write", layer: "agent", file: "examples/deep-tree/agents/lead.md", line: 5 },
    ]);
    expect(place.read("examples/deep-tree/project/config.js")).toBe(before);
  });
});
