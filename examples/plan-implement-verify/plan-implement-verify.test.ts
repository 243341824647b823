import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Place } from "../../test/cli/flow.ts";

const folder = "examples/plan-implement-verify";
const workflow = `${folder}/flow.yaml`;

let place: Place;
beforeAll(() => {
  place = new Place({ ".gitignore": ".flow/\n" });
  place.git("init", "-q");
  place.copy(folder);
  place.git("add", "-A");
  place.git("commit", "-q", "-m", "as it is in the repository");
});
afterAll(() => place.remove());

describe("the example plan-implement-verify", () => {
  it("goes round until the verifier has seen the tests pass, and leaves the repository as it was", async () => {
    const { code, stdout, stderr } = await place.flow(["run", workflow, "--json"]);
    expect(code, stderr).toBe(0);
    const { outputs } = JSON.parse(stdout) as { outputs: { rounds: number; verified: string; diff: string } };
    expect(outputs).toMatchObject({ rounds: 2, verified: "node --test: 3 of 3 passed" });
    expect(outputs.diff.match(/^diff --git .*/gm)).toEqual([
      "diff --git a/project/src/slug.js b/work/src/slug.js",
      "diff --git a/project/src/title.js b/work/src/title.js",
    ]);
    expect(outputs.diff).toContain('+  const words = text.normalize("NFD")');
    expect(place.git("status", "--porcelain")).toBe("");
  });

  it("runs the tests for each verdict, and sends back one part of two", () => {
    const events = place.events();
    const checks = events.flatMap((event) =>
      event.type === "tool.finished" && event.name === "Bash" ? [[event.step, event.status]] : [],
    );
    expect(checks).toEqual([
      ["build#1/verify", "error"],
      ["build#2/verify", "completed"],
    ]);
    const closed = events.flatMap((event) =>
      event.type === "worktree.closed" ? [`${event.step} ${event.status} ${event.files.join()}`] : [],
    );
    expect(closed).toEqual([
      `build#1/implement[0] applied ${folder}/work/src/slug.js`,
      `build#1/implement[1] applied ${folder}/work/src/title.js`,
      `build#2/implement[0] applied ${folder}/work/src/slug.js`,
    ]);
  });

  it("is refused where something is changed and not committed, before anybody is asked", async () => {
    place.write(`${folder}/project/src/title.js`, "");
    const { code, stderr } = await place.flow(["run", workflow]);
    expect([code, stderr]).toEqual([2, expect.stringContaining("changed and not committed") as string]);
  });
});
