import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createGit } from "../../src/process/git.ts";
import { Marks } from "../../src/process/marks.ts";
import { applyChange, type Change } from "../../src/worktree/apply.ts";
import { type Files, findRepository, type Repository } from "../../src/worktree/repository.ts";
import { git } from "../cli/flow.ts";

let folder: string;
let top: string;
let repository: Repository;

beforeEach(async () => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "flow-apply-")));
  top = join(folder, "top");
  mkdirSync(top);
  git(top, "init", "--quiet");
  writeFileSync(join(top, "a.txt"), "a\n");
  commitAll();
  const found = await findRepository(createGit({ cwd: top, env: process.env, marks: new Marks("test") }), top);
  if (!found.ok) throw new Error(found.error);
  repository = found.value;
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function commitAll(): string {
  git(top, "add", "--all");
  git(top, "commit", "--quiet", "--message", "x");
  return git(top, "rev-parse", "HEAD").trim();
}

/** A change that adds a file, which is not in the workspace yet. */
function adding(name: string): Change {
  const base = git(top, "rev-parse", "HEAD").trim();
  mkdirSync(join(top, name, ".."), { recursive: true });
  writeFileSync(join(top, name), "theirs\n");
  const tree = `${commitAll()}^{tree}`;
  git(top, "reset", "--quiet", "--hard", base);
  return { base, tree };
}

function files(more: Partial<Files> = {}): Files {
  return { repository, folder: top, index: join(folder, "index"), without: [], ...more };
}

describe("a change that meets a file which git does not know", () => {
  test("that comes while it is applied is tried again on what is there now", async () => {
    const change = adding("new.txt");
    let isThere = false;
    const late: Repository = {
      ...repository,
      git: (args, call) => {
        if (args[0] === "diff-tree" && !isThere) {
          isThere = true;
          writeFileSync(join(top, "new.txt"), "mine\n");
        }
        return repository.git(args, call);
      },
    };
    const applied = await applyChange(files({ repository: late }), change, () => undefined);
    expect(applied).toEqual({
      ok: true,
      value: {
        kind: "conflict",
        files: ["new.txt"],
        why: "the workspace has changed meanwhile in a way that does not go together with it",
      },
    });
    expect([isThere, readFileSync(join(top, "new.txt"), "utf8")]).toEqual([true, "mine\n"]);
  });

  test("nor ignores is not said to be ignored", async () => {
    const change = adding("own/new.txt");
    mkdirSync(join(top, "own"), { recursive: true });
    writeFileSync(join(top, "own/new.txt"), "mine\n");
    const applied = await applyChange(files({ without: [join(top, "own")] }), change, () => undefined);
    expect(applied).toEqual({
      ok: true,
      value: { kind: "conflict", files: ["own/new.txt"], why: "the workspace has a file there that git does not know" },
    });
    expect(readFileSync(join(top, "own/new.txt"), "utf8")).toBe("mine\n");
  });
});
