import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Place } from "../../test/cli/flow.ts";

const file = "examples/team-analysis/flow.yaml";
let place: Place;
beforeAll(() => {
  place = new Place();
  place.copy("examples/team-analysis");
});
afterAll(() => place.remove());

describe("the example team-analysis", () => {
  it("reads three modules at once, compares them after that, and says what lies between them", async () => {
    const { code, stdout, stderr } = await place.flow(["run", file]);
    expect([code, stdout], stderr).toEqual([
      0,
      expect.stringMatching(/^summary: Each module[^]*- cart\.js:7[^]*\n {2}- cart\.js:6/) as string,
    ]);
    const changes = place
      .events()
      .flatMap((event) => (event.type === "team.task.updated" ? [`${event.task} ${event.change.status ?? ""}`] : []));
    expect(changes.slice(0, 3)).toEqual(["1 in_progress", "2 in_progress", "3 in_progress"]);
    expect(changes.slice(3, 6).toSorted()).toEqual(["1 completed", "2 completed", "3 completed"]);
    expect(changes.slice(6)).toEqual(["4 in_progress", "4 completed"]);
  });

  it("gives whoever compares what the others found in the files", () => {
    const given = place
      .events()
      .flatMap((event) =>
        event.type === "message" && event.agent === "analyse@1.4" ? [JSON.stringify(event.message)] : [],
      );
    for (const text of ["gives a sum in cents", "gives euros with fractions", "below zero too"])
      expect(given.join()).toContain(text);
  });

  it("fails with what no reader saw any more once the module is mended", async () => {
    place.write("examples/team-analysis/shop/prices.js", "/** In cents. */\nexport const priceOf = () => 420;\n");
    const { code, stderr } = await place.flow(["run", file]);
    expect(code).not.toBe(0);
    expect(stderr).toContain("task 2 failed");
    expect(stderr).toContain(
      "team ended (deadlock): nothing can go on: task 4 (compare): it depends on task 2, which is failed",
    );
  });
});
