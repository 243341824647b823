import { readdirSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Place } from "./flow.ts";

let place: Place;
beforeEach(() => {
  place = new Place({
    "main.yaml": `
name: main
inputs: { x: { type: string, default: one } }
steps:
  build:
    run: echo ran >> count; echo "$X"
    env: { X: "\${{ inputs.x }}" }
    cache: { files: [lock] }
  each: { foreach: [a, b], run: 'echo "$I"', env: { I: "\${{ item }}" }, cache: true }
outputs: { o: "\${{ steps.build.outputs.stdout }}" }
`,
    lock: "1",
  });
});
afterEach(() => place.remove());

const kept = (): string[] => readdirSync(join(place.folder, ".flow/cache")).filter((name) => name.endsWith(".json"));

describe("a run with cached steps", () => {
  it("says so while it runs and at its end, in `show` and in `why`", async () => {
    await place.flow(["run", "main.yaml"]);
    const [from = ""] = place.runs();
    const { code, stdout, stderr } = await place.flow(["run", "main.yaml"]);
    expect([code, stdout, place.read("count")]).toEqual([0, "o: one\n", "ran\n"]);
    expect(stderr).toContain(`cached: run ${from} executed the same`);
    expect(stderr).toMatch(/steps {3}2 ok, 0 failed, 0 skipped, 3 from the cache/);
    const shown = (await place.flow(["show", "latest"])).stdout;
    expect(shown).toMatch(/✓ build +ok +run, cached/);
    expect(shown).toMatch(/✓ \[1\] +ok +run, cached/);
    const why = (await place.flow(["why", "latest", "build"])).stdout.replaceAll("\n", " ");
    expect(why).toContain(`It was not run: run ${from} executed the same, and its outputs, kept 20`);
    const json = JSON.parse((await place.flow(["why", "latest", "each[0]", "--json"])).stdout) as object;
    expect(json).toMatchObject({ cache: { hit: { run: from } } });
    const tree = JSON.parse((await place.flow(["show", "latest", "--json"])).stdout) as object;
    expect(tree).toMatchObject({ steps: [{ path: "build", cache: { hit: { run: from } } }, {}] });
    expect(place.events().filter((event) => event.type === "step.cached")).toHaveLength(3);
  });

  it("`why` names what has changed since the last outputs that were kept", async () => {
    const first = await place.flow(["run", "main.yaml"]);
    expect(first.stderr).not.toContain("cache");
    const [from = ""] = place.runs();
    const never = await place.flow(["why", "latest", "build"]);
    expect(never.stdout).toContain("It was run, because no outputs of it are in the cache.");
    place.write("lock", "2");
    const { stderr } = await place.flow(["run", "main.yaml", "-i", "x=two"]);
    expect(stderr).toContain("not cached: env.X, file lock changed");
    const { stdout } = await place.flow(["why", "latest", "build"]);
    expect(stdout).toContain(`because this has changed against what run ${from} kept`);
    expect(stdout).toContain("\n  env.X\n  file lock\n");
  });

  it("runs them with --no-cache, and keeps what they give", async () => {
    await place.flow(["run", "main.yaml"]);
    const { stderr } = await place.flow(["run", "main.yaml", "--no-cache"]);
    expect(stderr).toContain("not cached: --no-cache");
    expect((await place.flow(["why", "latest", "build"])).stdout).toContain("not looked for in the cache: --no-cache");
    expect(place.read("count")).toBe("ran\nran\n");
    await place.flow(["run", "main.yaml"]);
    const [, refreshed = ""] = place.runs();
    expect((await place.flow(["why", "latest", "build"])).stdout).toContain(refreshed);
  });
});

describe("flow cache prune", () => {
  it("removes what was not used for so long, and says how much", async () => {
    await place.flow(["run", "main.yaml"]);
    const old = new Date(Date.now() - 8 * 24 * 3600 * 1000);
    const [first = ""] = kept();
    utimesSync(join(place.folder, ".flow/cache", first), old, old);
    expect((await place.flow(["cache", "prune"])).stdout).toMatch(
      /^removed 0 entries \(0 B\), kept 3 entries \(1\.\d KiB\) in \.flow\/cache\n$/,
    );
    const { code, stdout } = await place.flow(["cache", "prune", "--older-than", "7d", "--json"]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      schemaVersion: 1,
      removed: [{ key: first.slice(0, 64), step: expect.stringMatching(/^main\.yaml (build|each\[\d\])$/) }],
      kept: { entries: 2 },
    });
    expect(kept()).toHaveLength(2);
  });

  it("spares what was used since, and removes what cannot be read", async () => {
    await place.flow(["run", "main.yaml"]);
    const old = new Date(Date.now() - 40 * 24 * 3600 * 1000);
    for (const name of kept()) utimesSync(join(place.folder, ".flow/cache", name), old, old);
    await place.flow(["run", "main.yaml"]);
    place.write(`.flow/cache/${"0".repeat(64)}.json`, "{");
    place.write(".flow/cache/notes.txt", "somebody's");
    expect((await place.flow(["cache", "prune"])).stdout).toMatch(/^removed 1 entry \(1 B\), kept 3 entries/);
    expect(readdirSync(join(place.folder, ".flow/cache"))).toContain("notes.txt");
  });

  it("--all leaves nothing, and nothing is no mistake", async () => {
    await place.flow(["run", "main.yaml"]);
    expect((await place.flow(["cache", "prune", "--all"])).stdout).toContain("removed 3 entries");
    expect((await place.flow(["cache", "prune", "--all"])).stdout).toContain("removed 0 entries");
    expect(readdirSync(join(place.folder, ".flow/cache/last"))).toEqual([]);
    await place.flow(["run", "main.yaml"]);
    expect(place.read("count")).toBe("ran\nran\n");
  });

  it.each([
    [["cache", "prune", "--older-than", "soon"], "it is a duration such as 7d"],
    [["cache", "prune", "--older-than", "7d", "--all"], "cannot be used with"],
    [["cache", "prunes"], "unknown command"],
  ])("%j is wrong usage", async (args, text) => {
    const { code, stderr } = await place.flow(args);
    expect([code, stderr]).toEqual([2, expect.stringContaining(text)]);
  });
});
