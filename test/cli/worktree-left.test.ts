import { existsSync, lstatSync, mkdirSync, readlinkSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { LogLine } from "../../src/model/event.ts";
import { during, git } from "./flow.ts";
import { Repository, untouched } from "./repository.ts";

const within = <T>(files: Readonly<Record<string, string>>, work: (place: Repository) => Promise<T>): Promise<T> =>
  during(new Repository(files), work);

function failure(events: readonly LogLine[], step: string): string {
  const end = events.find((it) => it.type === "step.finished" && it.step === step);
  return end?.type === "step.finished" ? `${end.error?.kind}: ${end.error?.message}` : "";
}

const commit = "git add --all; git -c user.name=a -c user.email=a@b commit --quiet --message x";
const other = { "other.yaml": "steps: { a: { run: 'true' } }\n" };

describe.concurrent("a worktree that git cannot read whole", () => {
  const cases: readonly [string, string, string][] = [
    ["a repository in it without a commit", "mkdir lib; git init --quiet lib", "lib is a git repository of its own"],
    [
      "a repository in it with commits",
      `mkdir lib; cd lib; git init --quiet; echo work > w.txt; ${commit}; cd ..`,
      "lib is a git repository of its own",
    ],
    ["files in a place of another repository", "echo work > known/w.txt", "files were written into known, which is a"],
    ["no `.git`", "rm .git", "its `.git` was removed"],
  ];
  test.each(cases)("with %s is left, and only a person removes it", (_, command, said) =>
    within(
      {
        ...other,
        "w.yaml": `
steps:
  a: { isolation: worktree, run: "echo precious > top.txt; test -e go || { ${command}; }" }
`,
      },
      async (place) => {
        const known = join(place.folder, "known");
        mkdirSync(known);
        git(known, "init", "--quiet");
        git(known, "commit", "--quiet", "--allow-empty", "--message", "x");
        place.commit("known");
        const ended = await place.flow(["run", "w.yaml"]);
        const [run = ""] = place.runs();
        const folder = join(place.folder, ".flow/runs", run, "worktrees/a-1");
        expect([ended.code, place.status]).toEqual([1, []]);
        const message = failure(place.events(), "a");
        expect(message).toMatch(/^conflict: its changes were not taken over: /);
        expect(message).toContain(said);
        expect(message).toContain(`it is left in ${folder}: take out what you need`);
        place.write("go", "");
        expect((await place.flow(["run", "other.yaml"])).stderr).not.toContain("removed the worktree");
        const resumed = await place.flow(["resume", run]);
        expect([resumed.code, resumed.stderr]).toEqual([0, expect.anything()]);
        expect([place.read("top.txt"), place.read(join(".flow/runs", run, "worktrees/a-1/top.txt"))]).toEqual([
          "precious\n",
          "precious\n",
        ]);
        rmSync(folder, { recursive: true });
        await place.flow(["run", "other.yaml"]);
        expect(place.traces).toEqual(untouched);
      },
    ),
  );

  test("after a crash is left as well", () =>
    within(
      { ...other, "w.yaml": "steps: { a: { isolation: worktree, run: 'git init --quiet lib; sleep 60' } }\n" },
      async (place) => {
        const running = place.start(["run", "w.yaml"]);
        await running.said("start run");
        const [run = ""] = place.runs();
        const folder = join(place.folder, ".flow/runs", run, "worktrees/a-1");
        while (!existsSync(join(folder, "lib/.git/HEAD"))) await new Promise((resolve) => setTimeout(resolve, 10));
        running.kill("SIGKILL");
        await running.ended;
        await place.flow(["run", "other.yaml"]);
        expect(existsSync(join(folder, "lib/.git"))).toBe(true);
        place.write("w.yaml", "steps: { a: { isolation: worktree, run: 'true' } }\n");
        expect((await place.flow(["resume", run])).code).toBe(0);
        expect((await place.flow(["resume", run])).code).toBe(0);
        expect(existsSync(join(folder, "lib/.git"))).toBe(true);
        expect(place.traces[0]).toBe("2 worktree");
      },
    ));

  test("is left when its patch cannot be written whole, which then is none", () =>
    within(
      {
        "w.yaml":
          "steps: { a: { isolation: worktree, run: 'for i in 1 2 3 4 5 6; do seq 100000 > $i.txt; done; echo ok' } }\n",
      },
      async (place) => {
        const ended = await place.shell("ulimit -f 1500; flow run w.yaml");
        const run = join(".flow/runs", place.runs()[0] ?? "");
        expect([ended.code, failure(place.events(), "a")]).toEqual([
          1,
          expect.stringContaining("could not be written"),
        ]);
        const whole = place.read(join(run, "worktrees/a-1/6.txt"));
        expect(existsSync(join(place.folder, run, "files/a-1.patch"))).toBe(false);
        expect((await place.flow(["resume", "latest"])).code).toBe(0);
        expect([place.read("6.txt"), place.read(join(run, "worktrees/a-1/6.txt"))]).toEqual([whole, whole]);
        expect(existsSync(join(place.folder, run, "files/a-1.patch"))).toBe(false);
      },
    ));
});

describe.concurrent("changes of a worktree", () => {
  test("may make a folder of a file or a link, and the other way round", () =>
    within(
      {
        "file.txt": "x\n",
        "folder/deep/in.txt": "x\n",
        "gone/in.txt": "x\n",
        "aim/in.txt": "aim\n",
        "w.yaml": `
steps:
  a:
    isolation: worktree
    run: |
      rm file.txt; mkdir -p file.txt/deep; echo 1 > file.txt/deep/in.txt
      rm -r folder; echo 2 > folder
      rm link; mkdir link; echo 3 > link/in.txt
      rm -r gone; ln -s aim gone
`,
      },
      async (place) => {
        symlinkSync("aim", join(place.folder, "link"));
        place.commit("link");
        const ended = await place.flow(["run", "w.yaml"]);
        expect([ended.code, ended.stderr]).toEqual([0, expect.anything()]);
        expect(["file.txt/deep/in.txt", "folder", "link/in.txt", "aim/in.txt"].map((it) => place.read(it))).toEqual([
          "1\n",
          "2\n",
          "3\n",
          "aim\n",
        ]);
        expect(lstatSync(join(place.folder, "link")).isDirectory()).toBe(true);
        expect(readlinkSync(join(place.folder, "gone"))).toBe("aim");
      },
    ));

  test("never lie over a folder in which something is ignored", () =>
    within(
      {
        ".gitignore": "*.cfg\n",
        "folder/in.txt": "x\n",
        "w.yaml": "steps: { a: { isolation: worktree, run: 'rm -r folder; echo x > folder' } }\n",
      },
      async (place) => {
        place.write("folder/local.cfg", "mine\n");
        expect((await place.flow(["run", "w.yaml"])).code).toBe(1);
        expect([place.read("folder/local.cfg"), place.read("folder/in.txt"), place.status]).toEqual([
          "mine\n",
          "x\n",
          [],
        ]);
        expect(failure(place.events(), "a")).toContain(
          "folder/local.cfg: the workspace has a file there that git ignores",
        );
      },
    ));

  test("that make a file where others make a folder are named by the path that both have", () =>
    within(
      {
        "w.yaml": `
steps:
  a: { isolation: worktree, run: "mkdir z; echo 1 > z/a; sleep 0.3" }
  b: { isolation: worktree, run: "echo 2 > z; sleep 0.3" }
`,
      },
      async (place) => {
        expect((await place.flow(["run", "w.yaml"])).code).toBe(1);
        expect(failure(place.events(), "b")).toMatch(/^conflict: z: the workspace has changed meanwhile/);
      },
    ));
});
