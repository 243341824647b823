import { execFileSync } from "node:child_process";
import { cpSync, existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Ended, git, Place, project } from "../../test/cli/flow.ts";

const workflow = "examples/review/flow.yaml";
let source: Place;
const places: Place[] = [];

beforeAll(() => {
  source = new Place({ "package.json": '{ "name": "reviewed" }\n', "src/main.ts": "export const one = 1;\n" });
  source.copy("examples/review");
  git(source.folder, "init", "-q", "-b", "main");
  commit("First");
  source.write("src/main.ts", "export const one = 1;\nexport const two = 2;\n");
  source.write("package-lock.json", '{ "lockfile": "noise" }\n');
  source.write("src/package-lock.json", '{ "lockfile": "noise" }\n');
  source.write("elsewhere.txt", "not reviewed\n");
  commit("Second");
});
afterAll(() => [source, ...places].forEach((place) => place.remove()));

function commit(subject: string): void {
  git(source.folder, "add", "-A");
  git(source.folder, "commit", "-q", "-m", subject);
}

/** A clone by git's own protocol, as a CI makes it. */
function cloneOf(folder: string, ...args: string[]): Place {
  const place = new Place();
  places.push(place);
  execFileSync("rm", ["-rf", join(place.folder, ".git")]);
  git(place.folder, "clone", "-q", ...args, `file://${folder}`, ".");
  return place;
}

const review = (place: Place, ...args: string[]): Promise<Ended> => place.flow(["run", workflow, ...args]);

/** The diff that the reviewers were given. */
function diffIn(place: Place): string {
  const first = place.events().find((event) => event.type === "step.finished" && event.step === "diff");
  const outputs = first?.type === "step.finished" ? first.outputs : undefined;
  return (outputs as { readonly stdout: string }).stdout;
}

describe("the example review", () => {
  it("in a full clone reviews the last commit, within the paths and without lockfiles", async () => {
    const place = cloneOf(source.folder);
    const { code, stdout } = await review(place);
    expect(stdout).toMatch(
      /^approve: true\nsummary: The changes since [0-9a-f]{40} were reviewed; files changed: +1\. Neither reviewer found anything/,
    );
    expect(code).toBe(0);
    const diff = diffIn(place);
    expect(diff).toContain("+export const two = 2;");
    expect(diff).not.toMatch(/lockfile|not reviewed|export const one = 1;\n.*new file/);
    const tools = place.events().flatMap((event) => (event.type === "tool.finished" ? [event] : []));
    expect(tools.map(({ name }) => name).sort()).toEqual([
      "Glob",
      "Grep",
      "Grep",
      "Grep",
      "Read",
      "finish",
      "finish",
      "finish",
    ]);
    expect(tools.filter(({ status }) => status !== "completed")).toEqual([]);
  });

  it("reviews the last commit that touched the paths when the newest touched none of them", async () => {
    const place = cloneOf(source.folder);
    place.write("elsewhere.txt", "still not reviewed\n");
    git(place.folder, "commit", "-q", "-a", "-m", "Third");
    const { code } = await review(place);
    expect(code).toBe(0);
    expect(diffIn(place)).toContain("+export const two = 2;");
  });

  it("in a clone of depth 1 reviews everything there is", async () => {
    const place = cloneOf(source.folder, "--depth", "1");
    expect(git(place.folder, "rev-list", "--count", "HEAD").trim()).toBe("1");
    const { code } = await review(place);
    expect(code).toBe(0);
    expect(diffIn(place)).toContain("+export const one = 1;\n+export const two = 2;");
  });

  it("in a repository of one commit reviews that", async () => {
    const place = cloneOf(source.folder);
    git(place.folder, "reset", "-q", "--hard", "HEAD~1");
    git(place.folder, "checkout", "-q", "--orphan", "only");
    git(place.folder, "commit", "-q", "-m", "Only");
    const { code } = await review(place);
    expect(code).toBe(0);
    expect(diffIn(place)).toContain("+export const one = 1;");
  });

  it("compares with the base it is given, whatever characters are in it", async () => {
    const place = cloneOf(source.folder);
    git(place.folder, "branch", "odd;touch-HACKED", "HEAD~1");
    const { code } = await review(place, "--input", "base=odd;touch-HACKED");
    expect(code).toBe(0);
    expect(() => place.read("HACKED")).toThrow();
  });

  it("cuts a long diff and says so where the reviewers read it", async () => {
    const place = cloneOf(source.folder);
    const { code } = await review(place, "--input", "limit=40");
    expect(code).toBe(0);
    expect(diffIn(place)).toMatch(/^[^]{40}\n\[the diff is cut here: 40 of \d+ characters\]$/);
  });

  it("fails with a hint when nothing changed", async () => {
    const place = cloneOf(source.folder);
    const { code, stdout, stderr } = await review(place, "--input", "paths=docs");
    expect(stderr).toMatch(
      /nothing changed between [0-9a-f]{40} and HEAD in: docs \(choose another --input base=REF or paths=…\)/,
    );
    expect([code, stdout]).toEqual([1, ""]);
  });

  it("objects to code that turns text into code, with what it found", async () => {
    const place = cloneOf(source.folder);
    place.write("src/bad.ts", "export const run = (text: string): unknown => eval(text);\n");
    git(place.folder, "add", "-A");
    git(place.folder, "commit", "-q", "-m", "Bad");
    const { code, stdout } = await review(place);
    expect(stdout).toContain("approve: false\n");
    expect(stdout).toContain("Changes are needed first.");
    expect(stdout).toContain("src/bad.ts");
    expect(code).toBe(0);
  });

  it("reviews this very project, from clones of every depth", async ({ skip }) => {
    if (!existsSync(join(project, ".git"))) skip("this copy of the project is no git repository");
    for (const depth of [[], ["--depth", "1"]]) {
      const place = cloneOf(project, ...depth);
      cpSync(join(project, "examples/review"), join(place.folder, "examples/review"), { recursive: true });
      const empty = git(place.folder, "hash-object", "-t", "tree", "/dev/null").trim();
      const { code, stdout } = await review(place, "--input", `base=${empty}`);
      expect(stdout).toMatch(/^approve: (true|false)\n/);
      expect(code).toBe(0);
      expect(diffIn(place)).toMatch(/\[the diff is cut here: 60000 of \d+ characters\]$/);
    }
  });
});
