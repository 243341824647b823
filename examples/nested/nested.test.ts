import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Place } from "../../test/cli/flow.ts";

let place: Place;
beforeAll(() => {
  place = new Place();
  place.copy("examples/nested");
});
afterAll(() => place.remove());

const run = (...args: readonly string[]) => place.flow(["run", "examples/nested/flow.yaml", "--json", ...args]);

function ends(): string[] {
  return place.events().flatMap((event) => {
    if (event.type === "step.finished") return [`${event.step} ${event.outcome}`];
    return event.type === "step.skipped" ? [`${event.step} ${event.reason.kind}`] : [];
  });
}

describe("the example nested", () => {
  it("keeps what the other calls gave when one fails", async () => {
    const { code, stdout } = await run();
    expect(JSON.parse(stdout)).toMatchObject({
      outcome: "success",
      outputs: { next: ["kettle 2.1.1", "cup 0.9.1"], notes: ["", "cup is not stable yet"], wrong: ["teapot"] },
    });
    expect(code).toBe(0);
    expect(ends()).toEqual(
      expect.arrayContaining([
        "packages[1]/check failure",
        "packages[1]/warn needs",
        "packages[1] failure",
        "packages failure",
      ]),
    );
    const end = place.events().find((event) => event.type === "step.finished" && event.step === "packages");
    expect(end).toMatchObject({
      conclusion: "success",
      error: { kind: "exit", step: "packages[1]/check" },
      outputs: {
        items: [{ next: "kettle 2.1.1" }, null, { next: "cup 0.9.1" }],
        failed: [{ index: 1, error: { kind: "exit" } }],
      },
    });
  });

  it("checks the values of a call by the inputs it declares, before anything of it runs", async () => {
    const { stdout } = await run(
      "--input",
      'packages=[{"name": "cup", "version": 3}, {"name": "pot", "version": "1.0.0"}]',
    );
    expect(JSON.parse(stdout)).toMatchObject({ outputs: { next: ["pot 1.0.1"], wrong: ["cup"] } });
    expect(ends()).not.toContain("packages[0]/check failure");
    const failed = place.events().find((event) => event.type === "step.finished" && event.step === "packages[0]");
    const message = expect.stringContaining("the input `version` of `package` must be text, not 3") as string;
    expect(failed).toMatchObject({ error: { kind: "input", message } });
  });
});
