import { spawnSync } from "node:child_process";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { Marks } from "../../src/process/marks.ts";
import { runProcess } from "../../src/process/run.ts";
import { sandboxLaunch } from "../../src/process/sandbox.ts";

const base = realpathSync(mkdtempSync(join(tmpdir(), "flow-sandbox-git-")));
afterAll(() => rmSync(base, { recursive: true, force: true }));
const path = process.env["PATH"] ?? "";
const identity = { GIT_AUTHOR_NAME: "a", GIT_AUTHOR_EMAIL: "a@b", GIT_COMMITTER_NAME: "a", GIT_COMMITTER_EMAIL: "a@b" };
const env = { PATH: path, HOME: base, ...identity };
const marks = new Marks("sandbox-git-test");

/** A folder with a commit in it. */
function repository(folder: string): string {
  mkdirSync(folder, { recursive: true });
  git(folder, "init", "-q", "-b", "main", ".");
  writeFileSync(join(folder, "a.txt"), "a\n");
  git(folder, "add", ".");
  git(folder, "commit", "-qm", "one");
  return folder;
}

function git(cwd: string, ...args: readonly string[]): string {
  const ran = spawnSync("git", ["-c", "protocol.file.allow=always", ...args], { cwd, encoding: "utf8", env });
  return `${ran.stdout}${ran.stderr}`;
}

async function inside(workspace: string, script: string, closesGit = false): Promise<string> {
  const launch = sandboxLaunch({ path, workspace, home: base, network: false, isSecret: () => false, closesGit });
  if (launch === undefined) throw new Error("there is no sandbox");
  const argv = ["bash", "--noprofile", "--norc", "-c", `exec 2>&1\n${script}`];
  const ran = await runProcess({ argv, cwd: workspace, env, marks, launch, grace: 200 });
  return ran.kind === "spawn_failed" ? ran.message : ran.stdout.text.trim();
}

let place = "";
/** A file that is there when something escaped. */
let escaped = "";
beforeEach(() => {
  place = mkdtempSync(join(base, "place-"));
  escaped = join(place, "escaped");
});
const evil = (): string => `touch ${escaped}; false`;
const isOf = sandboxLaunch({ path, workspace: base, home: base, network: false, isSecret: () => false }) !== undefined;

if (!isOf) console.log("skipped: this machine has no bubblewrap that works");
describe.skipIf(!isOf)("a repository below the workspace", () => {
  const attacks: readonly (readonly [string, string])[] = [
    ["its configuration", 'git -C vendor/lib config core.fsmonitor "EVIL"'],
    ["a hook", "printf '#!/bin/sh\\nEVIL' > vendor/lib/.git/hooks/post-index-change; chmod +x vendor/lib/.git/hooks/*"],
    [
      "a new one in its place",
      'mv vendor/lib/.git old; git init -q vendor/lib; git -C vendor/lib config core.fsmonitor "EVIL"',
    ],
    ["its folder renamed", 'mv vendor/lib old; cp -r old vendor/lib; git -C vendor/lib config core.fsmonitor "EVIL"'],
    ["the folder above renamed", 'mv vendor old; cp -r old vendor; git -C vendor/lib config core.fsmonitor "EVIL"'],
    [
      "a folder exchanged for a link",
      'cp -r vendor v; git -C v/lib config core.fsmonitor "EVIL"; rm -rf vendor; ln -s v vendor',
    ],
    [
      "a common folder",
      'cp -r vendor/lib/.git g; git config -f g/config core.fsmonitor "EVIL"; realpath g > vendor/lib/.git/commondir',
    ],
  ];

  it.each(attacks)("runs nothing outside that was written in there: %s", async (_what, script) => {
    repository(join(place, "work"));
    repository(join(place, "work/vendor/lib"));
    await inside(join(place, "work"), script.replaceAll("EVIL", evil()));
    for (const folder of ["work", "work/vendor/lib"]) {
      writeFileSync(join(place, folder, "b.txt"), "b\n");
      expect(git(join(place, folder), "status", "--short")).toContain("b.txt");
      git(join(place, folder), "add", "b.txt");
    }
    expect(existsSync(escaped)).toBe(false);
    expect(existsSync(join(place, "work/vendor/lib/.git/commondir"))).toBe(false);
  });

  it.each<readonly [string, string]>([
    ...attacks.filter(([what]) => !["a hook", "a common folder"].includes(what)),
    [
      "another one behind its file",
      'git init -q evil; git -C evil config core.fsmonitor "EVIL"; echo "gitdir: ../../evil/.git" > vendor/lib/.git',
    ],
    ["its repository", 'git config -f .git/modules/vendor/lib/config core.fsmonitor "EVIL"'],
  ])("runs nothing either where it is a submodule: %s", async (_what, script) => {
    const lib = repository(join(place, "lib"));
    const work = repository(join(place, "work"));
    git(work, "submodule", "--quiet", "add", lib, "vendor/lib");
    git(work, "commit", "-qm", "two");
    expect(lstatSync(join(work, "vendor/lib/.git")).isFile()).toBe(true);
    await inside(work, script.replaceAll("EVIL", evil()));
    writeFileSync(join(work, "vendor/lib/b.txt"), "b\n");
    expect(git(work, "status", "--short")).toMatch(/vendor\/lib/);
    git(join(work, "vendor/lib"), "status");
    expect(existsSync(escaped)).toBe(false);
  });

  it("can be worked in", async () => {
    const work = repository(join(place, "work"));
    repository(join(work, "vendor/lib"));
    const script =
      "cd vendor/lib; echo b > b.txt; git add b.txt; git commit -qm two; git gc -q; git log --format=%s; mv b.txt ../..";
    expect(await inside(work, script)).toBe("two\none");
    expect(readFileSync(join(work, "b.txt"), "utf8")).toBe("b\n");
  });
});

describe.skipIf(!isOf)("a `.git` that is a link", () => {
  it.each([
    ["its configuration", 'git config core.fsmonitor "EVIL"'],
    ["where it leads to", 'mv store s; cp -r s store; git config core.fsmonitor "EVIL"'],
    ["the link", 'cp -r store s; git config -f s/config core.fsmonitor "EVIL"; ln -sfn s .git'],
    ["a folder instead", 'cp -r store s; rm .git; mv s .git; git config core.fsmonitor "EVIL"'],
    ["nothing instead", "rm .git"],
  ])("leads where it led before: %s", async (_what, script) => {
    const work = repository(join(place, "work"));
    renameSync(join(work, ".git"), join(work, "store"));
    symlinkSync("store", join(work, ".git"));
    expect(await inside(work, `git log --format=%s; ${script.replaceAll("EVIL", evil())}`)).toMatch(/^one/);
    expect(git(work, "log", "--format=%s")).toBe("one\n");
    git(work, "status");
    expect(existsSync(escaped)).toBe(false);
  });
});

describe.skipIf(!isOf)("a worktree of a repository that lies elsewhere", () => {
  function worktree(): readonly [main: string, work: string] {
    const main = repository(join(place, "main"));
    const work = join(main, ".flow/worktrees/w");
    git(main, "worktree", "add", "-q", "-b", "side", work);
    git(main, "config", "extensions.worktreeConfig", "true");
    return [main, work];
  }

  it("can be looked at, changed and committed in", async () => {
    const [main, work] = worktree();
    const script =
      "echo b >> a.txt; git status --short; git diff --stat | tail -1; git commit -qam two; git log --format=%s; git branch --show-current";
    expect(await inside(work, script)).toBe("M a.txt\n 1 file changed, 1 insertion(+)\ntwo\none\nside");
    expect(git(main, "log", "--format=%s", "side")).toBe("two\none\n");
  });

  it.each([
    ["the configuration", 'git config core.fsmonitor "EVIL"'],
    ["the configuration of its own", 'git config --worktree core.fsmonitor "EVIL"'],
    ["a hook", "printf '#!/bin/sh\\nEVIL' > MAIN/.git/hooks/post-index-change; chmod +x MAIN/.git/hooks/*"],
    [
      "what it shares",
      'cp -r MAIN/.git g; git config -f g/config core.fsmonitor "EVIL"; realpath g > MAIN/.git/worktrees/w/commondir',
    ],
    [
      "its file",
      'git init -q e; git -C e config core.fsmonitor "EVIL"; echo "gitdir: e/.git" > .git; mv .git x; cp -r e/.git .git',
    ],
    ["the files of the main one", "echo x > MAIN/a.txt; rm -rf MAIN/.git/config MAIN/.git/HEAD"],
  ])("opens nothing of the repository that is run or says what is run: %s", async (_what, script) => {
    const [main, work] = worktree();
    await inside(work, script.replaceAll("EVIL", evil()).replaceAll("MAIN", main));
    for (const folder of [main, work]) {
      expect(git(folder, "status", "--short", "--untracked-files=no")).toBe("");
      git(folder, "add", "a.txt");
    }
    expect(existsSync(escaped)).toBe(false);
  });

  it("has to be known to that repository", async () => {
    const [main] = worktree();
    const work = join(place, "forged");
    mkdirSync(work);
    writeFileSync(join(work, ".git"), `gitdir: ${main}/.git/worktrees/w\n`);
    await inside(work, `rm -rf ${main}/.git/objects ${main}/.git/worktrees; touch ${main}/.git/refs/x`);
    expect(git(main, "fsck")).not.toMatch(/missing|error/);
    expect(existsSync(join(main, ".git/refs/x"))).toBe(false);
  });
});

describe.skipIf(!isOf)("with its repositories closed", () => {
  it("a workspace can be written, and its repositories only be read", async () => {
    const work = repository(join(place, "work"));
    repository(join(work, "sub"));
    const said = await inside(
      work,
      "git log --format=%s; echo b > b.txt; git add b.txt; git -C sub commit --allow-empty -m no",
      true,
    );
    expect(said).toMatch(/^one\n.*Read-only file system.*Read-only file system/s);
    expect(git(work, "status", "--short")).toContain("?? b.txt");
  });
});
