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
    const { code, stdout, stderr } = await place.flow([
      "run",
      "examples/triage/flow.yaml",
      "--input",
      "report=A typing error",
    ]);
    expect(stdout).toBe("severity: low\nalert: nobody was woken\n");
    expect(stderr).toContain(
      "skipped: steps.rate.outputs.severity == 'high' is false (steps.rate.outputs.severity = \"low\")",
    );
    expect(code).toBe(0);
  });
});

describe("the example triage over a backlog", () => {
  it("rates what is open, eight at a time, in the order of the reports", async () => {
    const { issues } = JSON.parse(place.read("examples/triage/issues.json")) as { issues: Issue[] };
    expect(issues).toHaveLength(200);
    const open = issues.filter(({ state }) => state === "open");
    const urgent = open.flatMap(({ number, title }) => (title.includes("crash") ? [number] : []));
    const { code, stdout } = await place.flow(["run", "examples/triage/backlog.yaml", "--json"]);
    const summary = `${urgent.length} of ${open.length} open reports are urgent`;
    expect(JSON.parse(stdout)).toMatchObject({ outcome: "success", outputs: { summary, urgent } });
    expect(code).toBe(0);
    let now = 0;
    let most = 0;
    for (const event of place.events()) {
      if (event.type === "agent.started") most = Math.max(most, ++now);
      if (event.type === "agent.finished") now -= 1;
    }
    expect(most).toBeLessThanOrEqual(8);
    expect(most).toBeGreaterThan(1);
  });

  it("names the reports that nobody could rate, after all others were", async () => {
    place.write(
      "silent.yaml",
      "agents:\n  triager:\n    - when: \"!contains(prompt, 'search')\"\n      calls: [{ name: finish, args: { severity: low, reason: Fine. } }]\n",
    );
    const { code } = await place.flow(["run", "examples/triage/backlog.yaml", "--script", "silent.yaml"]);
    expect(code).toBe(3);
    const end = place.events().find((event) => event.type === "step.finished" && event.step === "rate");
    const { items, failed } = (end?.type === "step.finished" ? end.outputs : undefined) as unknown as {
      items: unknown[];
      failed: Failed[];
    };
    expect(items.filter((item) => item === null)).toHaveLength(failed.length);
    expect(failed.every(({ item }) => item.title.includes("search"))).toBe(true);
    expect(failed.length).toBeGreaterThan(10);
  });
});

interface Issue {
  readonly number: number;
  readonly state: string;
  readonly title: string;
}

interface Failed {
  readonly item: Issue;
}
