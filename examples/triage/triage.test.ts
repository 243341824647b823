import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Place } from "../../test/cli/flow.ts";

let place: Place;
beforeAll(() => {
  place = new Place();
  place.copy("examples/triage");
});
afterAll(() => place.remove());

describe("the example triage", () => {
  it("wakes somebody for a crash", async () => {
    const { code, stdout } = await place.flow(["run", "examples/triage/flow.yaml"]);
    expect(stdout).toBe("severity: high\nalert: Waking somebody up. Whoever meets a crash loses work.\n");
    expect(code).toBe(0);
  });

  it("wakes nobody for a typing error, and says why the step was skipped", async () => {
    const { code, stdout, stderr } = await place.flow(["run", "examples/triage/flow.yaml", "--input", "report=A typing error"]);
    expect(stdout).toBe("severity: low\nalert: nobody was woken\n");
    expect(stderr).toContain("skipped: steps.rate.outputs.severity == 'high' is false (steps.rate.outputs.severity = \"low\")");
    expect(code).toBe(0);
  });
});
