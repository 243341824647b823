import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Place } from "../../test/cli/flow.ts";

const folder = "examples/fix-failing-test";
const workflow = `${folder}/flow.yaml`;
const source = `${folder}/work/src/duration.js`;
const test = `${folder}/work/test/duration.test.js`;

let place: Place;
beforeAll(() => {
  place = new Place({ ".gitignore": ".flow/\n" });
  place.git("init", "-q");
  place.copy(folder);
  place.git("add", "-A");
  place.git("commit", "-q", "-m", "as it is in the repository");
});
afterAll(() => place.remove());

describe("the example fix-failing-test", () => {
  it("mends the copy, and leaves the repository as it was", async () => {
    const { code, stdout, stderr } = await place.flow(["run", workflow, "--json"]);
    expect([code, stderr]).toEqual([0, expect.stringContaining("test       failed exit") as string]);
    const { outputs } = JSON.parse(stdout) as { outputs: { cause: string; diff: string } };
    expect(outputs.diff).toContain("-  const match = ");
    expect(outputs.diff).toContain("+  if (!/^(\\d+[hms])+$/.test(text)) throw ");
    expect(outputs.diff.match(/^diff --git .*/gm)).toEqual([
      "diff --git a/project/src/duration.js b/work/src/duration.js",
    ]);
    expect(place.git("status", "--porcelain")).toBe("");
  });

  it("sends what the failing check printed back to the model, once", () => {
    expect(place.events().flatMap((event) => (event.type === "check.finished" ? [event.status] : []))).toEqual([
      "failed",
      "passed",
    ]);
    const told = place
      .events()
      .flatMap((event) => (event.type === "message" && event.step === "mend" ? [JSON.stringify(event.message)] : []))
      .filter((text) => text.includes("the check of your work failed"));
    expect(told).toHaveLength(1);
    for (const text of ["✔ adds several units up", "✖ refuses what is no duration", "Missing expected exception"])
      expect(told[0]).toContain(text);
  });

  it("denies a change of the test, which the model reads", () => {
    const denied = place
      .events()
      .flatMap((event) => (event.type === "permission.judged" && event.decision === "deny" ? [event] : []));
    expect(denied).toMatchObject([{ step: "mend", name: "Edit", rule: "Edit(*)", layer: "workflow" }]);
    const edits = place
      .events()
      .flatMap((event) => (event.type === "tool.finished" && event.name === "Edit" ? [event] : []));
    expect(edits.map(({ status }) => status)).toEqual(["error", "completed", "completed"]);
    expect(edits[0]?.text).toContain("is denied by the rule `Edit(*)`");
    expect(place.read(test)).toBe(place.read(`${folder}/project/test/duration.test.js`));
  });

  it.each([
    [`Edit(${source})`, 0, "allow"],
    [`Edit(${test})`, 6, "deny"],
    [`Write(${folder}/work/package.json)`, 6, "deny"],
    [`Edit(${folder}/project/src/duration.js)`, 6, "deny"],
    [`Edit(${folder}/work/src/../test/duration.test.js)`, 6, "deny"],
  ])("judges %s: %s %s", async (call, code, verdict) => {
    const permitted = await place.flow(["permit", workflow, call]);
    expect([permitted.code, permitted.stdout.split(" ", 1)[0]]).toEqual([code, verdict]);
  });

  it("runs a second time, from another folder of the repository", async () => {
    place.write("docs/page.md", "");
    const { code, stdout } = await place.flow(["run", `../${workflow}`], { cwd: "docs" });
    expect([code, stdout]).toEqual([0, expect.stringContaining("+  const parts = ") as string]);
    expect(place.git("status", "--porcelain", folder)).toBe("");
  });

  it("asks no model when there is nothing to mend", async () => {
    const file = `${folder}/project/src/duration.js`;
    const broken = place.read(file);
    place.write(file, place.read(source));
    const { code, stdout } = await place.flow(["run", workflow]);
    expect([code, stdout]).toEqual([0, expect.stringContaining("cause: nothing was wrong") as string]);
    expect(place.events().filter(({ type }) => type === "agent.started")).toEqual([]);
    place.write(file, broken);
  });

  it("fails with what is still wrong when no mend is right", async () => {
    const flow = place.read(workflow);
    place.write(workflow, flow.replace("max: 3", "max: 0"));
    const { code, stderr } = await place.flow(["run", workflow]);
    expect(code).toBe(1);
    expect(stderr).toContain("mend check: the check failed once");
    place.write(workflow, flow);
  });
});
