import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Place } from "../../test/cli/flow.ts";

let place: Place;
beforeAll(() => {
  place = new Place();
  place.copy("examples/hello");
});
afterAll(() => place.remove());

describe("the example hello", () => {
  it("greets the world without a key, and costs nothing", async () => {
    const { code, stdout, stderr } = await place.flow(["run", "examples/hello/flow.yaml"]);
    expect(stdout).toBe("greeting: Hello! You said: Greet world.\n");
    expect(stderr).toContain("$0 (scripted)");
    expect(code).toBe(0);
    place.events();
  });

  it("greets who is named", async () => {
    const { stdout } = await place.flow(["run", "examples/hello/flow.yaml", "--input", "name=Mei 修"]);
    expect(stdout).toBe("greeting: Hello! You said: Greet Mei 修.\n");
  });
});
