import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Place } from "../../test/cli/flow.ts";

const file = "examples/gated-deploy/flow.yaml";
const [staging, production] = ["deploy[0]/ok", "deploy[1]/ok"];

let place: Place;
beforeEach(() => {
  place = new Place();
  place.copy("examples/gated-deploy");
});
afterEach(() => place.remove());

function report(): unknown {
  const end = place.events().findLast((event) => event.type === "step.finished" && event.step === "report");
  return end?.type === "step.finished" ? end.outputs : undefined;
}

describe("the example gated-deploy", () => {
  it("asks for both targets, ships as the answers come, and reports when all are there", async () => {
    const run = await place.flow(["run", file]);
    expect(run.code).toBe(5);
    expect(run.stderr).toContain(`waiting ${staging}: Ship v1.4.0 to staging?`);
    expect(run.stderr).toContain(`waiting ${production}: Ship v1.4.0 to production?`);
    const yes = ["--form", "reason=all green", "--by", "mei"];
    const first = await place.flow(["resume", "latest", "--approve", staging, ...yes]);
    expect([first.code, report()]).toEqual([5, undefined]);
    const second = await place.flow(["resume", "latest", "--approve", production, ...yes, "--form", "window=tonight"]);
    expect(second.code).toBe(0);
    expect(report()).toEqual({
      shipped: ["app-v1.4.0.tar to staging now, said mei", "app-v1.4.0.tar to production tonight, said mei"],
      refused: [],
    });
    const builds = place.events().filter((event) => event.type === "step.attempt.started" && event.step === "build");
    expect(builds).toHaveLength(1);
  });

  it("ships nothing where the answer is no, and says so", async () => {
    await place.flow(["run", file]);
    const answers = [
      "--approve",
      staging,
      "--form",
      "reason=all green",
      "--deny",
      production,
      "--comment",
      "not today",
    ];
    const { code, stderr } = await place.flow(["resume", "latest", ...answers, "--by", "mei"]);
    expect([code, stderr]).toEqual([1, expect.stringContaining("rejected: not today")]);
    expect(report()).toMatchObject({
      shipped: ["app-v1.4.0.tar to staging now, said mei"],
      refused: ["not today"],
    });
  });

  it("goes through with answers given up front", async () => {
    const answers = [staging, production].flatMap((path) => ["--approve", path]);
    const { code } = await place.flow(["run", file, ...answers, "--form", "reason=nightly"]);
    expect(code).toBe(0);
  });
});
