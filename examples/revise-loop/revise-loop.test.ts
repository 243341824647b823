import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Place } from "../../test/cli/flow.ts";

let place: Place;
beforeAll(() => {
  place = new Place();
  place.copy("examples/revise-loop");
});
afterAll(() => place.remove());

function finished(): string[] {
  return place.events().flatMap((event) => (event.type === "step.finished" ? [`${event.step} ${event.outcome}`] : []));
}

describe("the example revise-loop", () => {
  it("goes round until the critic is content, each round with the word on the one before", async () => {
    const { code, stdout } = await place.flow(["run", "examples/revise-loop/flow.yaml"]);
    expect(stdout).toBe("text: A teapot pours tea; mine fills four cups.\nrounds: 3\n");
    expect(code).toBe(0);
    expect(finished()).toEqual([
      "draft#1/write success",
      "draft#1/critique success",
      "draft#1 success",
      "draft#2/write success",
      "draft#2/critique success",
      "draft#2 success",
      "draft#3/write success",
      "draft#3/critique success",
      "draft#3 success",
      "draft success",
    ]);
  });

  it("fails when four rounds do not content the critic", async () => {
    const reply = "calls: [{ name: finish, args: { score: 7, feedback: Hm. } }]";
    place.write("strict.yaml", `agents:\n  writer: [{ text: Tea. }]\n  critic: [{ ${reply} }]\n`);
    const { code, stdout, stderr } = await place.flow([
      "run",
      "examples/revise-loop/flow.yaml",
      "--script",
      "strict.yaml",
    ]);
    expect(stdout).toBe("");
    expect(stderr).toContain("`until` (steps.critique.outputs.score >= 8) did not hold after 4 iterations");
    expect(code).toBe(1);
    expect(finished().slice(-2)).toEqual(["draft#4 success", "draft failure"]);
  });
});
