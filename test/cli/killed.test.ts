import { describe, expect, it } from "vitest";
import { ended, twelve } from "../engine/resuming.ts";
import { type Ended, Place } from "./flow.ts";

describe("flow killed at any moment", () => {
  const rounds = Number(process.env["FLOW_TORTURE"] ?? 50);

  it(`goes on and ends as if it had not been, ${rounds} times`, { timeout: rounds * 20_000 }, async () => {
    const random = seeded(7);
    const words = ["run", "twelve.yaml", "--quiet", "--approve", "ok", "--form", "why=fine"];
    const first = new Place(twelve);
    // How long it takes here, now: moments of a quiet machine would be all too early or too late on another.
    const begun = performance.now();
    expect((await first.flow(words)).code).toBe(0);
    const whole = performance.now() - begun;
    first.remove();
    let cut = 0;
    for (let round = 0; round < rounds; round++) {
      const own = new Place(twelve);
      const running = own.start(words);
      await new Promise((resolve) => setTimeout(resolve, whole * (0.2 + random())));
      running.kill("SIGKILL");
      const { code } = await running.ended;
      if (code === null) cut++;
      const before = own.runs().length > 0 ? own.log() : "";
      if (!before.includes("\n")) {
        own.remove();
        continue;
      }
      const done = ended(
        before
          .split("\n")
          .slice(0, -1)
          .map((line) => JSON.parse(line)),
      );
      own.write("count", "");
      const resumed: Ended = await own.flow(["resume", "latest", "--json"]);
      expect([round, resumed.code, JSON.parse(resumed.stdout).outputs?.verdict]).toEqual([round, 0, "ship"]);
      expect(
        own
          .read("count")
          .split("\n")
          .filter((path) => done.has(path)),
      ).toEqual([]);
      own.events();
      own.remove();
    }
    expect(cut).toBeGreaterThan(0);
  });
});

function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
