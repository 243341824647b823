import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { git, Place } from "../../test/cli/flow.ts";

let place: Place;
beforeAll(() => {
  place = new Place({
    "package.json": '{\n  "name": "kettle",\n  "version": "2.1.0"\n}\n',
    "CHANGELOG.md": "# 2.0.0\n",
  });
  place.copy("examples/release-notes");
  git(place.folder, "init", "-q", "-b", "main");
  for (const [subject, tag] of [
    ["First light", "v2.0.0"],
    ["Boil $(touch HACKED) `touch HACKED` faster", ""],
    ['Pour "slowly"', ""],
  ]) {
    place.write("file.txt", `${subject}\n`);
    git(place.folder, "add", "-A");
    git(place.folder, "commit", "-q", "-m", subject ?? "");
    if (tag) git(place.folder, "tag", tag);
  }
});
afterAll(() => place.remove());

const run = (...args: string[]) => place.flow(["run", "examples/release-notes/flow.yaml", ...args]);

describe("the example release-notes", () => {
  it("writes the notes of the commits since a release", async () => {
    const { code, stdout } = await run("--input", "from=v2.0.0");
    expect(stdout).toBe("title: Release notes for kettle 2.1.0\ncommits: 2\nfile: release-notes.md\n");
    expect(code).toBe(0);
    const notes = place.read("release-notes.md").split("\n");
    expect(notes[0]).toBe("# kettle 2.1.0");
    expect(notes[2]).toMatch(/^- Pour "slowly" \([0-9a-f]{7,}\)$/);
    expect(notes[3]).toMatch(/^- Boil \$\(touch HACKED\) `touch HACKED` faster \([0-9a-f]{7,}\)$/);
    expect(() => place.read("HACKED")).toThrow();
    const tools = place
      .events()
      .flatMap((event) => (event.type === "tool.finished" ? [[event.name, event.status]] : []));
    expect(tools).toEqual([
      ["Read", "completed"],
      ["Read", "completed"],
      ["finish", "completed"],
    ]);
  });

  it("takes every commit when no release is named, into the file that is named", async () => {
    const { code, stdout } = await run("--input", "file=notes.md");
    expect(stdout).toContain("commits: 3\nfile: notes.md\n");
    expect(code).toBe(0);
    expect(place.read("notes.md")).toContain("First light");
  });

  it("fails with git's own words for a release that is not there", async () => {
    const { code, stderr } = await run("--input", "from=v9");
    expect(stderr).toContain("| fatal: ");
    expect(stderr).toContain("v9..HEAD");
    expect(code).toBe(1);
  });
});
