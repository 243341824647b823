import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Place } from "../../test/cli/flow.ts";

let place: Place;
beforeAll(() => {
  place = new Place();
  place.copy("examples/typed-extraction");
});
afterAll(() => place.remove());

const workflow = "examples/typed-extraction/flow.yaml";

describe("the example typed-extraction", () => {
  it("makes one report of every letter, with answers that were repaired on the way", async () => {
    const { code, stdout } = await place.flow(["run", workflow, "--json"]);
    expect(code).toBe(0);
    const { outputs } = JSON.parse(stdout) as { outputs: { bills: number; report: string } };
    expect(outputs.bills).toBe(4);
    expect(outputs.report).toContain("| Brewster & Sons | B-3391 | 2026-10-28 | 1260.00 USD |  |");
    expect(outputs.report).toMatch(/Together 525\.40 EUR\n\nTogether 1260\.00 USD$/);
    const events = place.events();
    const refused = events.flatMap((event) =>
      event.type === "tool.finished" && event.status === "error" ? [event] : [],
    );
    expect(refused).toMatchObject([{ step: "extract[1]", name: "finish" }]);
    for (const path of ["/date", "/lines/0/amount", "/total"]) expect(refused[0]?.text).toContain(`- ${path}: `);
    expect(events.filter(({ type }) => type === "guard")).toMatchObject([{ step: "extract[2]", rule: "output" }]);
  });

  it("fails one letter whose answer never fits, after all others are done", async () => {
    const replies = place.read("examples/typed-extraction/replies.yaml");
    const stubborn = replies.replaceAll("total: 1260\n", "total: about a thousand\n");
    expect(stubborn).not.toBe(replies);
    place.write("stubborn.yaml", stubborn);
    const { code, stderr } = await place.flow(["run", workflow, "--script", "stubborn.yaml"]);
    expect(code).not.toBe(0);
    const items = place
      .events()
      .flatMap((event) => (event.type === "agent.finished" ? [[event.step, event.outcome]] : []));
    expect(Object.fromEntries(items)).toMatchObject({
      "extract[0]": "done",
      "extract[2]": "done",
      "extract[3]": "done",
    });
    expect(Object.fromEntries(items)["extract[1]"]).not.toBe("done");
    expect(stderr).toContain("extract[1]");
  });
});
