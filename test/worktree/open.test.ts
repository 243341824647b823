import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Event } from "../../src/model/event.ts";
import { createWorktrees, type OpenWorktree, type Worktrees } from "../../src/flow/worktrees.ts";
import { Marks } from "../../src/process/marks.ts";
import { RecordedWorktrees } from "../../src/worktree/recorded.ts";
import { git } from "../cli/flow.ts";

const signal = new AbortController().signal;
let top: string;
let events: Event[];
let all: Worktrees;

beforeEach(() => {
  top = realpathSync(mkdtempSync(join(tmpdir(), "flow-worktree-")));
  git(top, "init", "--quiet");
  writeFileSync(join(top, ".gitignore"), ".flow*\n");
  writeFileSync(join(top, "a.txt"), "1\n2\n3\n4\n5\n6\n");
  git(top, "add", "--all");
  git(top, "commit", "--quiet", "--message", "x");
  events = [];
  all = worktrees();
});
afterEach(() => rmSync(top, { recursive: true, force: true }));

function worktrees(before?: RecordedWorktrees): Worktrees {
  return createWorktrees({
    workspace: top,
    cwd: top,
    env: process.env,
    marks: new Marks("test"),
    masking: {
      mask: { mask: (text) => text, stream: () => ({ push: (it) => it, end: () => "" }), warnings: [] },
      hasSecrets: false,
      keys: [],
    },
    folder: join(top, ".flow/runs/20261121-215546-4qk3f"),
    tempFolder: realpathSync(mkdtempSync(join(top, ".flow-index-"))),
    run: "20261121-215546-4qk3f",
    emit: (event) => void events.push(event),
    before,
    kill: signal,
  });
}

async function open(
  order: readonly number[],
  more: { into?: string; agentRun?: string; signal?: AbortSignal } = {},
): Promise<OpenWorktree> {
  const opened = await all.open({ step: "lead", order, signal, ...more });
  if (!opened.ok) throw new Error(opened.error.message);
  return opened.value;
}

function change(folder: string, from: string, to: string): void {
  const file = join(folder, "a.txt");
  writeFileSync(file, readFileSync(file, "utf8").replace(from, to));
}

const wanted = { apply: true } as const;

describe("what is written in a worktree", () => {
  test("in the moment in which it was made, and as long as what was there, is not lost", async () => {
    git(top, "config", "core.trustctime", "false");
    const { folder, close } = await open([0]);
    const file = join(folder, "a.txt");
    const moment = Math.floor(Date.now() / 1000) - 10;
    utimesSync(file, moment, moment);
    git(folder, "update-index", "--refresh");
    utimesSync(git(folder, "rev-parse", "--path-format=absolute", "--git-path", "index").trim(), moment, moment);
    change(folder, "3", "x");
    utimesSync(file, moment, moment);
    expect((await close(wanted)).status).toBe("applied");
    expect(readFileSync(join(top, "a.txt"), "utf8")).toBe("1\n2\nx\n4\n5\n6\n");
  });
});

describe("worktrees for members of a team", () => {
  test("are open side by side, and come in by their order", async () => {
    const [one, two] = await Promise.all([
      open([0, 0], { agentRun: "lead@1/a" }),
      open([0, 1], { agentRun: "lead@1/b" }),
    ]);
    change(one.folder, "1", "one");
    change(two.folder, "6", "six");
    const second = two.close(wanted);
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(git(top, "status", "--porcelain")).toBe("");
    expect([(await one.close(wanted)).status, (await second).status]).toEqual(["applied", "applied"]);
    expect(readFileSync(join(top, "a.txt"), "utf8")).toBe("one\n2\n3\n4\n5\nsix\n");
    const applied = events.flatMap((it) => (it.type === "worktree.applying" ? [it.worktree] : []));
    expect(applied).toEqual([one, two].map(({ folder }) => basename(folder)));
    const opened = events.filter((it) => it.type === "worktree.opened");
    expect(opened.map((it) => it.agentRun)).toEqual(["lead@1/a", "lead@1/b"]);
    expect(git(top, "worktree", "list").trim().split("\n")).toHaveLength(1);
  });

  test("of a lead with a worktree of its own go into that, and do not wait for the lead", async () => {
    const lead = await open([0]);
    change(lead.folder, "1", "one");
    const member = await open([0, 0], { into: lead.folder, agentRun: "lead@1/a" });
    expect(readFileSync(join(member.folder, "a.txt"), "utf8")).toMatch(/^one\n/);
    change(member.folder, "6", "six");
    expect((await member.close(wanted)).status).toBe("applied");
    expect(readFileSync(join(lead.folder, "a.txt"), "utf8")).toBe("one\n2\n3\n4\n5\nsix\n");
    expect(git(top, "status", "--porcelain")).toBe("");
    expect(await lead.close(wanted)).toMatchObject({ status: "applied", files: ["a.txt"] });
    expect(readFileSync(join(top, "a.txt"), "utf8")).toBe("one\n2\n3\n4\n5\nsix\n");
  });

  test("conflict with their lead as with a workspace, and leave it as it was", async () => {
    const lead = await open([0]);
    const member = await open([0, 0], { into: lead.folder });
    change(lead.folder, "3", "three");
    change(member.folder, "3", "III");
    expect(await member.close(wanted)).toMatchObject({ status: "conflict", conflicts: ["a.txt"] });
    expect(readFileSync(join(lead.folder, "a.txt"), "utf8")).toContain("three");
    await lead.close({ apply: false });
  });
});

describe("what flow was doing for a member when it died", () => {
  test.each(["worktree.applying", "worktree.closed"] as const)(
    "up to %s is in its lead's worktree, once",
    async (type) => {
      const lead = await open([0], { agentRun: "lead@1" });
      change(lead.folder, "1", "one");
      const member = await open([0, 0], { into: lead.folder, agentRun: "lead@1/a" });
      change(member.folder, "6", "six\nmore");
      await member.close({ apply: true, result: "mine" });
      if (type === "worktree.applying") change(lead.folder, "six\nmore", "6");
      const before = new RecordedWorktrees();
      const end = events.findIndex((it) => it.type === type) + 1;
      for (const [index, event] of events.slice(0, end).entries()) before.add({ ...event, seq: index + 1, time: "" });
      events = [];
      const resumed = worktrees(before);
      await resumed.recover();
      expect(events.map((it) => [it.type, "status" in it && it.status])).toEqual([
        ...(type === "worktree.applying" ? [["worktree.closed", "applied"]] : []),
        ["worktree.closed", "kept"],
      ]);
      expect(resumed.finished("lead@1/a")?.result).toMatchObject({ outcome: "success", result: "mine" });
      expect([git(top, "status", "--porcelain"), git(top, "worktree", "list").trim().split("\n").length]).toEqual([
        "",
        1,
      ]);
      const again = await resumed.open({ step: "lead", agentRun: "lead@1", order: [0], goesOn: true, signal });
      if (!again.ok) throw new Error(again.error.message);
      expect(readFileSync(join(again.value.folder, "a.txt"), "utf8")).toBe("one\n2\n3\n4\n5\nsix\nmore\n");
      expect([again.value.goesOn, (await again.value.close(wanted)).status]).toEqual([true, "applied"]);
    },
  );
});

describe("a worktree", () => {
  test("whose folder was removed while it was in use brings nothing in, least of all that", async () => {
    const one = await open([0]);
    rmSync(one.folder, { recursive: true });
    expect(await one.close(wanted)).toMatchObject({
      status: "lost",
      why: expect.stringContaining("was removed or replaced"),
    });
    expect([git(top, "status", "--porcelain"), git(top, "worktree", "list").trim().split("\n").length]).toEqual([
      "",
      1,
    ]);
  });

  test("that waits for its turn gives it up when it is cancelled, and is kept", async () => {
    const one = await open([0]);
    const cancel = new AbortController();
    const two = await open([1], { signal: cancel.signal });
    change(two.folder, "6", "six");
    const closing = two.close(wanted);
    setTimeout(() => cancel.abort(), 50);
    expect(await closing).toMatchObject({
      status: "kept",
      files: ["a.txt"],
      why: "the run was cancelled before it was its turn",
    });
    expect((await one.close(wanted)).status).toBe("empty");
  });

  test("is not asked by git for what an agent wrote into its `.git`", async () => {
    const one = await open([0]);
    const evil = join(top, ".flow", "evil");
    git(top, "init", "--quiet", evil);
    git(evil, "config", "core.fsmonitor", `touch ${join(top, ".flow", "touched")}; false`);
    writeFileSync(join(one.folder, ".git"), `gitdir: ${join(evil, ".git")}\n`);
    change(one.folder, "1", "one");
    expect((await one.close(wanted)).status).toBe("applied");
    expect([readFileSync(join(top, "a.txt"), "utf8").slice(0, 4), existsSync(join(top, ".flow", "touched"))]).toEqual([
      "one\n",
      false,
    ]);
    expect(git(top, "worktree", "list").trim().split("\n")).toHaveLength(1);
  });

  test("opens for a dozen at once, and all of them arrive", async () => {
    const many = await Promise.all(Array.from({ length: 12 }, (_, index) => open([index])));
    const closed = await Promise.all(
      many.toReversed().map((one, index) => {
        writeFileSync(join(one.folder, `new-${index}.txt`), "x\n");
        return one.close(wanted);
      }),
    );
    expect(closed.map(({ status }) => status)).toEqual(many.map(() => "applied"));
    expect(git(top, "status", "--porcelain").trim().split("\n")).toHaveLength(12);
    expect(git(top, "worktree", "list").trim().split("\n")).toHaveLength(1);
  }, 60_000);
});
