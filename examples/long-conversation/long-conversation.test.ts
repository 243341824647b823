import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Place } from "../../test/cli/flow.ts";

let place: Place;
beforeAll(() => {
  place = new Place();
  place.copy("examples/long-conversation");
});
afterAll(() => place.remove());

const workflow = "examples/long-conversation/flow.yaml";

describe("the example long-conversation", () => {
  it("is fitted several times, and what was written down survives word for word", async () => {
    const { code, stdout } = await place.flow(["run", workflow, "--json"]);
    expect(code).toBe(0);
    const { outputs } = JSON.parse(stdout) as { outputs: { incidents: string[] } };
    expect(outputs.incidents).toHaveLength(4);
    const fitted = place.events().flatMap((event) => (event.type === "context.compressed" ? [event] : []));
    const summaries = fitted.flatMap((event) => (event.how === "summarised" ? [event] : []));
    expect(fitted.some(({ how }) => how === "trimmed")).toBe(true);
    expect(summaries.length).toBeGreaterThanOrEqual(2);
    // Instructions and prompt stand before whatever is replaced.
    expect(summaries.map(({ from }) => from)).toEqual(summaries.map(() => 2));
    const pins = JSON.stringify(summaries.at(-1)?.message);
    for (const incident of outputs.incidents.slice(0, 3)) expect(pins).toContain(`Finding: ${incident}`);
    for (const { tokens } of fitted) expect(tokens.after).toBeLessThanOrEqual(tokens.limit ?? 0);
  });

  it("goes on after a crash with the conversation as it had been made, and summarises nothing twice", async () => {
    const log = place.log().split("\n");
    const at = log.findLastIndex((line) => line.includes('"how":"summarised"'));
    const folder = `.flow/runs/${place.runs().at(-1)}`;
    place.write(`${folder}/log.jsonl`, `${log.slice(0, at + 1).join("\n")}\n`);
    const { code, stdout } = await place.flow(["resume", place.runs().at(-1) ?? ""]);
    expect([code, stdout]).toEqual([0, expect.stringContaining("day 11") as string]);
    const whole = log.filter((line) => line.includes('"how":"summarised"')).length;
    expect(
      place.events().filter((event) => event.type === "context.compressed" && event.how === "summarised"),
    ).toHaveLength(whole);
    const asked = (lines: readonly string[]): string[] =>
      lines.flatMap((line) => /"request":"([0-9a-f]+)"/.exec(line)?.[1] ?? []);
    expect(asked(place.log().split("\n"))).toEqual(asked(log));
  });

  it("is replayed from its log, summaries included", async () => {
    const { code, stdout } = await place.flow(["run", workflow, "--replay", place.runs().at(-1) ?? ""]);
    expect([code, stdout]).toEqual([0, expect.stringContaining("day 11") as string]);
    expect(place.events().filter((event) => event.type === "context.compressed").length).toBeGreaterThan(3);
  });

  it("fails when the list and the pages do not agree", async () => {
    place.write("examples/long-conversation/logbook/day-13.txt", "12:00  INCIDENT: nobody wrote this down.\n");
    const { code, stderr } = await place.flow(["run", workflow]);
    expect(code).toBe(1);
    expect(stderr).toContain("5 incidents are in the logbook, 4 in the list");
  });
});
