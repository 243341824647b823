import { chmodSync, existsSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { LogLine } from "../../src/model/event.ts";
import { during, git, Place } from "./flow.ts";
import { Repository, untouched } from "./repository.ts";

const lines = (text: string): string => `${text.split(" ").join("\n")}\n`;
const ten = lines("1 2 3 4 5 6 7 8 9 10");

const within = <T>(files: Readonly<Record<string, string>>, work: (place: Repository) => Promise<T>): Promise<T> =>
  during(new Repository(files), work);

function closed(events: readonly LogLine[]): readonly string[] {
  return events.flatMap((it) => (it.type === "worktree.closed" ? [`${it.step} ${it.status}`] : []));
}

function outputs(events: readonly LogLine[], step: string): { readonly [name: string]: unknown } {
  const end = events.find((it) => it.type === "step.finished" && it.step === step);
  return end?.type === "step.finished" ? (end.outputs as { [name: string]: unknown }) : {};
}

function failure(events: readonly LogLine[], step: string): string {
  const end = events.find((it) => it.type === "step.finished" && it.step === step);
  return end?.type === "step.finished" ? `${end.error?.kind}: ${end.error?.message}` : "";
}

describe.concurrent("isolation: worktree", () => {
  test("lets a command work in a worktree of its own and brings its changes back", () =>
    within(
      {
        "a.txt": ten,
        "gone.txt": "x\n",
        "w.yaml": `
steps:
  work:
    isolation: worktree
    run: |
      pwd; git status --short; test ! -e "$OUT"/b.txt
      sed -i 's/^5$/five/' a.txt; rm gone.txt; echo new > b.txt
      test ! -e "$OUT"/b.txt && test -e "$OUT"/gone.txt
    env: { OUT: "\${{ inputs.out }}" }
  after:
    run: cat a.txt b.txt
    env: { P: "\${{ steps.work.outputs.patch }}", F: "\${{ steps.work.outputs.files }}" }
inputs: { out: { type: string } }
outputs: { patch: "\${{ steps.work.outputs.patch }}" }
`,
      },
      async (place) => {
        const ended = await place.flow(["run", "w.yaml", "--input", `out=${place.folder}`]);
        expect([ended.code, ended.stderr]).toEqual([0, expect.stringContaining("patch applied: 3 files")]);
        const events = place.events();
        const [run] = place.runs();
        const { stdout, patch, files } = outputs(events, "work");
        expect(stdout).toBe(join(place.folder, ".flow/runs", run ?? "", "worktrees/work-1"));
        expect(files).toEqual(["a.txt", "b.txt", "gone.txt"]);
        expect(patch).toBe(join(place.folder, ".flow/runs", run ?? "", "files/work-1.patch"));
        expect(outputs(events, "after")["stdout"]).toBe(`${ten.replace("5", "five")}new`);
        expect(place.status).toEqual([" M a.txt", " D gone.txt", "?? b.txt"]);
        expect(place.traces).toEqual(untouched);
        expect(existsSync(join(place.folder, ".flow/runs", run ?? "", "worktrees"))).toBe(false);
        // The patch is one that git takes.
        place.git("stash", "--include-untracked");
        place.git("apply", String(patch));
        expect(place.read("b.txt")).toBe("new\n");
      },
    ));

  test("gives no patch where nothing was changed, and counts no file that git ignores", () =>
    within(
      {
        ".gitignore": "out\n.flow/\n",
        "w.yaml": "steps: { a: { isolation: worktree, run: 'echo x > out; test ! -e kept' } }",
      },
      async (place) => {
        const ended = await place.flow(["run", "w.yaml"]);
        expect([ended.code, closed(place.events())]).toEqual([0, ["a empty"]]);
        expect(outputs(place.events(), "a")).toMatchObject({ patch: null, files: [] });
        expect([place.status, existsSync(join(place.folder, "out"))]).toEqual([[], false]);
      },
    ));

  test("brings files of every kind back as they are", () =>
    within(
      {
        "run.sh": "#!/bin/sh\n",
        "crlf.txt": "a\r\nb\r\n",
        "dir/inner.txt": "x\n",
        "w.yaml": `
steps:
  a:
    isolation: worktree
    run: |
      printf '\\000\\001\\377binary' > data.bin; chmod +x run.sh; ln -s run.sh link
      printf 'a\\r\\nc\\r\\n' > crlf.txt; printf 'caf\\351\\n' > latin1.txt; rm -r dir; echo file > dir
      mkdir -p 'deep/with space'; echo x > 'deep/with space/näme.txt'; echo q > "quo'te\\"x.txt"
`,
      },
      async (place) => {
        expect((await place.flow(["run", "w.yaml"])).code).toBe(0);
        expect(readFileSync(join(place.folder, "data.bin"))).toEqual(
          Buffer.from([0, 1, 255, ...Buffer.from("binary")]),
        );
        expect(readFileSync(join(place.folder, "latin1.txt"))).toEqual(Buffer.from([0x63, 0x61, 0x66, 0xe9, 0x0a]));
        expect([place.read("crlf.txt"), place.read("dir"), place.read("link")]).toEqual([
          "a\r\nc\r\n",
          "file\n",
          "#!/bin/sh\n",
        ]);
        expect(statSync(join(place.folder, "run.sh")).mode & 0o111).toBe(0o111);
        expect(place.read("deep/with space/näme.txt")).toBe("x\n");
        expect(outputs(place.events(), "a")["files"]).toContain("deep/with space/näme.txt");
        place.git("checkout", "--quiet", ".");
        place.git("clean", "--quiet", "--force", "-d");
        place.git("apply", String(outputs(place.events(), "a")["patch"]));
        expect(readFileSync(join(place.folder, "data.bin"))).toEqual(
          Buffer.from([0, 1, 255, ...Buffer.from("binary")]),
        );
      },
    ));

  test("keeps to git's filters, by which a file is not in git as it lies in a folder", () =>
    within(
      {
        ".gitattributes": "*.loud filter=loud\n",
        "a.txt": "a\n",
        "w.yaml": `
steps:
  work: { isolation: worktree, run: "cat old.loud; echo MORE >> old.loud; echo NEW > new.loud" }
`,
      },
      async (place) => {
        place.git("config", "filter.loud.clean", "tr A-Z a-z");
        place.git("config", "filter.loud.smudge", "tr a-z A-Z");
        place.write("old.loud", "OLD\n");
        place.commit("kept in small letters");
        expect(place.git("show", "HEAD:old.loud")).toBe("old\n");
        const { code, stderr } = await place.flow(["run", "w.yaml"]);
        expect(code, stderr).toBe(0);
        expect(outputs(place.events(), "work")["stdout"]).toBe("OLD");
        expect([place.read("old.loud"), place.read("new.loud")]).toEqual(["OLD\nMORE\n", "NEW\n"]);
        expect(place.status).toEqual([" M old.loud", "?? new.loud"]);
      },
    ));

  test("starts from the workspace as it is, with the changes of steps before and new files", () =>
    within(
      {
        "a.txt": "1\n",
        "w.yaml": `
steps:
  plain: { run: "echo 2 >> a.txt" }
  one: { needs: [plain], isolation: worktree, run: "cat a.txt note.txt; echo 3 >> a.txt" }
  two: { needs: [one], isolation: worktree, run: "cat a.txt; echo 4 >> a.txt; git log --format=%s" }
`,
      },
      async (place) => {
        place.write("note.txt", "not committed\n");
        expect((await place.flow(["run", "w.yaml"])).code).toBe(0);
        expect(outputs(place.events(), "one")["stdout"]).toBe("1\n2\nnot committed");
        expect(outputs(place.events(), "two")["stdout"]).toMatch(
          /^1\n2\n3\nflow: the workspace as two-1 found it .*\nstart$/,
        );
        expect([place.read("a.txt"), place.traces]).toEqual(["1\n2\n3\n4\n", untouched]);
      },
    ));

  test("works from a folder below the top, where flow was started and where `cwd` says", () =>
    within(
      {
        "app/w.yaml": `
steps:
  a: { isolation: worktree, run: "pwd; echo x > here.txt" }
  b: { isolation: worktree, cwd: src, run: "pwd; echo x > there.txt" }
  c: { isolation: worktree, cwd: "\${{ inputs.top }}/lib", run: "pwd; echo x > abs.txt" }
inputs: { top: { type: string } }
`,
        "app/src/x": "",
        "lib/x": "",
      },
      async (place) => {
        const ended = await place.flow(["run", "w.yaml", "--input", `top=${place.folder}`], { cwd: "app" });
        expect([ended.code, ended.stderr]).toEqual([0, expect.anything()]);
        const said = ["a", "b", "c"].map((step) => String(outputs(place.events(), step)["stdout"]));
        expect(said.map((text) => text.replace(/.*worktrees\//, ""))).toEqual(["a-1/app", "b-1/app/src", "c-1/lib"]);
        expect(place.status).toEqual(["?? app/here.txt", "?? app/src/there.txt", "?? lib/abs.txt"]);
        expect(outputs(place.events(), "b")["files"]).toEqual(["app/src/there.txt"]);
      },
    ));
});

describe.concurrent("patches", () => {
  test("are applied in the order of declaration, whoever ends first, and no wait counts as work", () =>
    within(
      {
        "a.txt": ten,
        "w.yaml": `
steps:
  slow: { isolation: worktree, run: "until test -e ../quick-1; do sleep 0.02; done; sleep 2.6; sed -i 's/^1$/one/' a.txt" }
  quick: { isolation: worktree, timeout: 2s, run: "sed -i 's/^10$/ten/' a.txt" }
  items:
    isolation: worktree
    foreach: [0.4, 0.2, 0]
    timeout: 2s
    run: 'sleep "$S"; echo "$S" > "$S.txt"'
    env: { S: "\${{ item }}" }
`,
      },
      async (place) => {
        const ended = await place.flow(["run", "w.yaml"]);
        expect([ended.code, ended.stderr]).toEqual([0, expect.anything()]);
        const order = ["slow", "quick", "items[0]", "items[1]", "items[2]"].map((step) => `${step} applied`);
        expect(closed(place.events())).toEqual(order);
        expect(place.read("a.txt")).toBe(ten.replace(/^1$/m, "one").replace("10", "ten"));
      },
    ));

  test("that do not fit are failures of kind conflict, change nothing, and are kept", () =>
    within(
      {
        "a.txt": ten,
        "w.yaml": `
steps:
  first: { isolation: worktree, run: "sleep 0.3; sed -i 's/^5$/five/' a.txt" }
  second: { isolation: worktree, run: "sed -i 's/^5$/FIVE/' a.txt; echo other > b.txt" }
  told: { if: failure('second'), run: 'echo "$K $P"', env: { K: "\${{ steps.second.error.kind }}", P: "\${{ default(steps.second.outputs.patch, 'none') }}" } }
`,
      },
      async (place) => {
        const ended = await place.flow(["run", "w.yaml"]);
        expect(ended.code).toBe(1);
        expect(closed(place.events())).toEqual(["first applied", "second conflict"]);
        expect(place.status).toEqual([" M a.txt"]);
        expect(place.read("a.txt")).toBe(ten.replace("5", "five"));
        const patch = join(".flow/runs", place.runs()[0] ?? "", "files/second-1.patch");
        expect(failure(place.events(), "second")).toBe(
          `conflict: a.txt: the workspace has changed meanwhile in a way that does not go together with it; nothing of it was applied, and it is kept in ${patch}. \`flow resume\` runs it again on what is there now`,
        );
        expect(place.read(patch)).toContain("+FIVE");
        expect(outputs(place.events(), "told")["stdout"]).toBe(`conflict ${join(place.folder, patch)}`);
        expect(place.traces).toEqual(untouched);
        // On what is there now it has nothing to change in that line any more.
        const resumed = await place.flow(["resume", "latest"]);
        expect([resumed.code, place.read("b.txt"), place.read("a.txt")]).toEqual([
          0,
          "other\n",
          ten.replace("5", "five"),
        ]);
      },
    ));

  test("of a retry on conflict begin with what is there by then", () =>
    within(
      {
        "list.txt": "start\n",
        "w.yaml": `
steps:
  add:
    foreach: [a, b, c, d]
    isolation: worktree
    retry: { max: 5, backoff: 1ms, on: [conflict] }
    run: echo "$X" >> list.txt
    env: { X: "\${{ item }}" }
`,
      },
      async (place) => {
        const ended = await place.flow(["run", "w.yaml"]);
        expect([ended.code, ended.stderr]).toEqual([0, expect.anything()]);
        expect(place.read("list.txt").split("\n").toSorted()).toEqual(["", "a", "b", "c", "d", "start"]);
        expect(place.traces).toEqual(untouched);
      },
    ));

  test("of iterations build on each other, and those of a renamed file find it", () =>
    within(
      {
        "n.txt": "0\n",
        "long.txt": ten,
        "w.yaml": `
steps:
  up:
    isolation: worktree
    repeat: { until: "result.stdout == '3'", max: 5 }
    run: echo $(($(cat n.txt) + 1)) > n.txt; cat n.txt
  move: { isolation: worktree, run: "sleep 0.3; git mv long.txt moved.txt" }
  edit: { isolation: worktree, run: "sed -i 's/^9$/nine/' long.txt" }
`,
      },
      async (place) => {
        const ended = await place.flow(["run", "w.yaml"]);
        expect([ended.code, ended.stderr]).toEqual([0, expect.anything()]);
        expect([place.read("n.txt"), place.read("moved.txt")]).toEqual(["3\n", ten.replace("9", "nine")]);
      },
    ));

  test("of executions that fail or are cancelled are kept and not applied", () =>
    within(
      {
        "w.yaml": `
steps:
  bad: { isolation: worktree, continue-on-error: true, run: "echo half > bad.txt; exit 3" }
  late: { isolation: worktree, continue-on-error: true, timeout: 2s, run: "echo half > late.txt; sleep 30" }
  all:
    isolation: worktree
    foreach: [0, 9]
    run: 'echo half > all.txt; until test -e ../all-1-1/all.txt; do sleep 0.02; done; sleep "$S"; exit 1'
    env: { S: "\${{ item }}" }
`,
      },
      async (place) => {
        const ended = await place.flow(["run", "w.yaml"]);
        expect([ended.code, place.status, place.traces]).toEqual([1, [], untouched]);
        expect(closed(place.events()).toSorted()).toEqual(["all[0] kept", "all[1] kept", "bad kept", "late kept"]);
        const files = join(".flow/runs", place.runs()[0] ?? "", "files");
        expect(failure(place.events(), "bad")).toBe(
          `exit: exited with 3 (its changes are kept in ${files}/bad-1.patch)`,
        );
        for (const name of ["bad-1", "late-1", "all-0-1", "all-1-1"])
          expect(place.read(`${files}/${name}.patch`)).toContain("+half");
        const shown = await place.flow(["show", "latest"]);
        expect(shown.stdout).toContain("patch not applied (bad.txt), because this did not succeed");
      },
    ));

  test("can be taken back by an undo, which works in the workspace", () =>
    within(
      {
        "a.txt": ten,
        "w.yaml": `
steps:
  work:
    isolation: worktree
    run: "sed -i 's/^5$/five/' a.txt; echo new > b.txt"
    undo: { run: 'pwd; git apply --reverse "$P"', env: { P: "\${{ steps.work.outputs.patch }}" } }
  fails: { needs: [work], run: "exit 1" }
`,
      },
      async (place) => {
        const ended = await place.flow(["run", "w.yaml"]);
        expect([ended.code, place.status]).toEqual([1, []]);
        expect(place.events()).toContainEqual(expect.objectContaining({ type: "step.undone", outcome: "success" }));
      },
    ));

  test("never lie over a file that git ignores", () =>
    within(
      {
        ".gitignore": "local.cfg\n",
        "w.yaml":
          "steps: { a: { isolation: worktree, run: 'rm .gitignore; echo theirs > local.cfg; echo x > b.txt' } }",
      },
      async (place) => {
        place.write("local.cfg", "mine\n");
        const ended = await place.flow(["run", "w.yaml"]);
        expect([ended.code, place.read("local.cfg"), place.status]).toEqual([1, "mine\n", []]);
        expect(failure(place.events(), "a")).toContain("local.cfg: the workspace has a file there that git ignores");
      },
    ));

  test("wait for no one in a circle: parallel limits, groups, needs and a failing scope beside", () =>
    within(
      {
        "w.yaml": `
limits: { parallel: 2 }
steps:
  g1:
    continue-on-error: true
    steps:
      long: { isolation: worktree, run: "sleep 0.8; echo x > long.txt" }
      fails: { run: "exit 1" }
  g2:
    limits: { parallel: 1 }
    continue-on-error: true
    steps:
      quick: { isolation: worktree, run: "echo x > quick.txt" }
      other: { isolation: worktree, run: "echo x > other.txt" }
      fails: { run: "exit 1" }
  g3: { steps: { b: { isolation: worktree, foreach: [1, 2, 3, 4], parallel: 2, run: 'echo x > "$N.txt"', env: { N: "\${{ item }}" } } } }
  z: { needs: [g2], isolation: worktree, run: "echo x > z.txt" }
`,
      },
      async (place) => {
        const ended = await place.flow(["run", "w.yaml"]);
        expect([ended.code, ended.stderr]).toEqual([0, expect.anything()]);
        expect(closed(place.events()).filter((it) => !it.endsWith(" applied"))).toEqual([]);
        expect(place.status).toHaveLength(8);
        expect(place.traces).toEqual(untouched);
      },
    ));

  test("hide secrets that a command has written, and still bring them in", () =>
    within(
      {
        "w.yaml":
          "secrets: [TOKEN]\nsteps: { a: { isolation: worktree, env: { T: '${{ secrets.TOKEN }}' }, run: 'echo \"key=$T\" > a.cfg' } }",
      },
      async (place) => {
        const ended = await place.flow(["run", "w.yaml"], { env: { TOKEN: "hunter2-hunter2" } });
        expect([ended.code, place.read("a.cfg")]).toEqual([0, "key=hunter2-hunter2\n"]);
        const patch = place.read(join(".flow/runs", place.runs()[0] ?? "", "files/a-1.patch"));
        expect(patch).toContain("+key=***");
        expect(patch + place.log()).not.toContain("hunter2");
      },
    ));
});

describe.concurrent("a run with worktrees does not start", () => {
  const workflow = "steps: { a: { isolation: worktree, run: 'true' } }";
  const about = "step `a` has `isolation: worktree`, and ";

  async function refusedIn(place: Place, said: string): Promise<void> {
    for (const args of [
      ["run", "w.yaml"],
      ["run", "w.yaml", "--dry-run"],
    ]) {
      const ended = await place.flow(args);
      expect([ended.code, ended.stdout, ended.stderr]).toEqual([2, "", expect.stringContaining(about + said)]);
    }
    expect((await place.flow(["validate", "w.yaml"])).code).toBe(0);
    expect(existsSync(join(place.folder, ".flow"))).toBe(false);
    place.remove();
  }

  test("outside of a repository, or in an empty or bare one", async () => {
    const none = new Place({ "w.yaml": workflow });
    await refusedIn(none, `${none.folder} is in no git repository; make one with \`git init\``);
    const empty = new Place({ "w.yaml": workflow });
    empty.git("init", "--quiet");
    await refusedIn(empty, "the repository has no commit yet, so there is nothing to start from");
    const bare = new Place({ "w.yaml": workflow });
    bare.git("init", "--quiet", "--bare", ".git");
    await refusedIn(bare, "the repository is bare: it has no files");
  });

  test("in a dirty tree, which it lists; new files do not count", async () => {
    const place = new Repository({ "w.yaml": workflow, "a.txt": "a", "b.txt": "b" });
    place.write("new.txt", "x");
    expect((await place.flow(["run", "w.yaml"])).code).toBe(0);
    place.write(".flow/x", "");
    git(place.folder, "clean", "--quiet", "--force", "-dx");
    place.write("a.txt", "changed");
    place.write("b.txt", "staged");
    place.git("add", "b.txt");
    await refusedIn(place, "2 files are changed and not committed: a.txt, b.txt. What the run brings in");
  });

  test("without git, or with one that is too old", async () => {
    for (const [version, said] of [
      ["", "git cannot be used"],
      ["git version 2.34.1", "it takes git 2.38 or newer, and here is 2.34.1"],
    ]) {
      const place = new Repository({ "w.yaml": workflow });
      place.write("bin/git", `#!/bin/sh\necho '${version}'\n`);
      chmodSync(join(place.folder, "bin/git"), 0o755);
      const path = version === "" ? join(place.folder, "nowhere") : join(place.folder, "bin");
      const ended = await place.flow(["run", "w.yaml"], { env: { PATH: path } });
      expect([ended.code, ended.stderr]).toEqual([2, expect.stringContaining(about + said)]);
      place.remove();
    }
  });
});

describe.concurrent("the repository around", () => {
  test("runs none of its hooks, and none of the caller's variables leads elsewhere", () =>
    within(
      { "w.yaml": "steps: { a: { isolation: worktree, run: 'git rev-parse --show-toplevel; echo x > a.txt' } }" },
      async (place) => {
        for (const hook of ["post-checkout", "reference-transaction", "post-index-change"]) {
          writeFileSync(
            join(place.folder, ".git/hooks", hook),
            `#!/bin/sh\necho ${hook} >> "${place.folder}/../$(basename "${place.folder}").hooks"\n`,
          );
          chmodSync(join(place.folder, ".git/hooks", hook), 0o755);
        }
        const other = new Repository({ "x.txt": "x" });
        const env = {
          GIT_DIR: join(other.folder, ".git"),
          GIT_WORK_TREE: other.folder,
          GIT_INDEX_FILE: join(other.folder, ".git/index"),
        };
        const ended = await place.flow(["run", "w.yaml"], { env });
        expect([ended.code, ended.stderr]).toEqual([0, expect.anything()]);
        expect(outputs(place.events(), "a")["stdout"]).toContain("/worktrees/a-1");
        // Asked first: the test's own git runs them.
        expect(existsSync(`${place.folder}.hooks`)).toBe(false);
        expect([place.status, other.status]).toEqual([["?? a.txt"], []]);
        rmSync(`${place.folder}.hooks`, { force: true });
        other.remove();
      },
    ));

  test("may itself be a worktree, and may be reached by a link", () =>
    within({ "w.yaml": "steps: { a: { isolation: worktree, run: 'echo x > a.txt' } }" }, async (place) => {
      const linked = join(place.folder, "linked");
      place.git("worktree", "add", "--quiet", linked);
      symlinkSync(linked, join(place.folder, "way"));
      const ended = await place.flow(["run", "w.yaml"], { cwd: "way" });
      expect([ended.code, ended.stderr]).toEqual([0, expect.anything()]);
      expect([readFileSync(join(linked, "a.txt"), "utf8"), git(linked, "status", "--porcelain")]).toEqual([
        "x\n",
        "?? a.txt\n",
      ]);
      expect(place.git("worktree", "list").trim().split("\n")).toHaveLength(2);
    }));

  test("keeps the run's own folder out of every tree, wherever it lies", () =>
    within(
      {
        "w.yaml":
          "steps: { a: { isolation: worktree, foreach: [1, 2], run: 'ls; echo x > \"$N\"', env: { N: '${{ item }}' } } }",
      },
      async (place) => {
        const ended = await place.flow(["run", "w.yaml", "--runs-dir", "our/runs"]);
        expect([ended.code, ended.stderr]).toEqual([0, expect.anything()]);
        const [run] = place.runs("our/runs");
        expect(place.read(`our/runs/${run}/files/a-0-1.patch`)).not.toContain("log.jsonl");
        expect(place.status.filter((line) => !line.includes("our/runs"))).toEqual(["?? 1", "?? 2"]);
      },
    ));
});
