import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Place } from "../../test/cli/flow.ts";

let place: Place;
let folder: string;
beforeEach(() => {
  place = new Place();
  place.copy("examples/saga");
  folder = join(place.folder, "a folder");
  mkdirSync(folder);
});
afterEach(() => place.remove());

function undone(): string[] {
  return place.events().flatMap((event) => (event.type === "step.undone" ? [`${event.step} ${event.outcome}`] : []));
}

describe("the example saga", () => {
  it("gives back what it has booked, newest first, and leaves nothing", async () => {
    const { code, stderr } = await place.flow(["run", "examples/saga/flow.yaml", "--input", `dir=${folder}`]);
    expect(stderr).toContain("the hotel is full");
    expect(code).toBe(1);
    expect(readdirSync(folder)).toEqual([]);
    const [payment, ...seats] = undone();
    expect(payment).toBe("payment success");
    expect(seats.toSorted()).toEqual(["seat[0] success", "seat[1] success"]);
  });

  it("gives back the seat it got when the other one is taken, and not that one", async () => {
    place.write("a folder/seat-12B", "somebody else\n");
    const { code } = await place.flow(["run", "examples/saga/flow.yaml", "--input", `dir=${folder}`]);
    expect(code).toBe(1);
    expect(readdirSync(folder)).toEqual(["seat-12B"]);
    expect(place.read("a folder/seat-12B")).toBe("somebody else\n");
  });

  it("keeps everything when nobody says no", async () => {
    const { code } = await place.flow([
      "run",
      "examples/saga/flow.yaml",
      "--input",
      `dir=${folder}`,
      "--input",
      "rooms=1",
    ]);
    expect(code).toBe(0);
    expect(
      readdirSync(folder)
        .map((name) => name.slice(0, 7))
        .sort(),
    ).toEqual(["receipt", "room", "seat-12", "seat-12"]);
    expect(undone()).toEqual([]);
  });

  it("says when an undo fails, and still runs the others", async () => {
    place.write(
      "saga.yaml",
      place.read("examples/saga/flow.yaml").replace('rm "$RECEIPT"', 'echo "the bank is closed" >&2; exit 9'),
    );
    const { code } = await place.flow(["run", "saga.yaml", "--input", `dir=${folder}`]);
    expect(code).toBe(1);
    expect(undone()[0]).toBe("payment failure");
    expect(undone()).toHaveLength(3);
    expect(readdirSync(folder).map((name) => name.slice(0, 7))).toEqual(["receipt"]);
  });
});
