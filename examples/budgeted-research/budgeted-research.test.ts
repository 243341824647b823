import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Place } from "../../test/cli/flow.ts";

const file = "examples/budgeted-research/flow.yaml";
let place: Place;
beforeAll(() => {
  place = new Place();
  place.copy("examples/budgeted-research");
});
afterAll(() => place.remove());

describe("the example budgeted-research", () => {
  it("stops at its budget with exit code 4, and keeps what was found", async () => {
    const { code, stderr } = await place.flow(["run", file]);
    expect(stderr).toContain("`limits.cost` of the run: $0.05, spent $0.0387");
    const findings = JSON.parse(place.read("findings.json")) as ({ text: string } | null)[];
    expect(findings).toHaveLength(8);
    expect(findings.filter((finding) => finding !== null)).toHaveLength(5);
    expect(stderr).toContain("budget  $0.0387 of $0.05");
    expect(code).toBe(4);
    const taken = place.events().flatMap((event) => (event.type === "budget.settled" ? (event.cost ?? 1) : []));
    expect(taken.reduce((sum, cost) => sum + cost, 0)).toBeLessThanOrEqual(0.05);
  });

  it("shows what was spent of the limit", async () => {
    expect((await place.flow(["show", "latest"])).stdout).toContain("budget  $0.0387 of $0.05");
    const shown = JSON.parse((await place.flow(["show", "latest", "--json"])).stdout) as { budget: unknown };
    expect(shown.budget).toEqual([{ limit: "cost", most: 0.05, spent: 0.0387 }]);
  });

  it("goes on with the same account once the limit is raised, and asks nothing twice", async () => {
    place.write(file, place.read(file).replace("cost: 0.05", "cost: 0.09"));
    const { code, stdout } = await place.flow(["resume", "latest"]);
    expect(stdout).toContain("conclusion: ");
    expect(code).toBe(0);
    const replies = place.events().filter((event) => event.type === "message" && event.usage !== undefined);
    expect(replies).toHaveLength(9);
  });
});
