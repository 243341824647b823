import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { findRun, listRuns, newRunId, runsFolder, workspaceOf } from "../../src/runlog/runs.ts";
import { emptyFolder } from "./open.ts";

describe("run ids", () => {
  it("sort by time and are short enough to type", () => {
    const early = newRunId(new Date("2026-11-21T21:55:46.123Z"), () => 0.999);
    const late = newRunId(new Date("2026-11-21T21:55:47.000Z"), () => 0);
    expect(early).toBe("20261121-215546-5uzzz");
    expect(late).toBe("20261121-215547-22222");
    expect(early < late).toBe(true);
  });
});

describe("the workspace", () => {
  it("is the nearest folder upwards with .git, a folder or the file of a worktree", () => {
    const root = emptyFolder();
    const inner = path.join(root, "inner");
    const deep = path.join(inner, "a", "b");
    mkdirSync(deep, { recursive: true });
    mkdirSync(path.join(root, ".git"));
    expect(workspaceOf(deep)).toBe(root);
    writeFileSync(path.join(inner, ".git"), "gitdir: elsewhere\n");
    expect(workspaceOf(deep)).toBe(inner);
  });

  it("is the working directory outside a repository", () => {
    const folder = emptyFolder();
    expect(workspaceOf(folder)).toBe(folder);
  });

  it("holds the runs unless another folder is named", () => {
    expect(runsFolder("/w")).toBe("/w/.flow/runs");
    expect(runsFolder("/w", "/elsewhere")).toBe("/elsewhere");
  });
});

describe("finding a run", () => {
  const folder = emptyFolder();
  const ids = ["20261121-100000-aaaaa", "20261121-110000-bbbbb", "20261122-100000-ccccc"];
  for (const id of ids) {
    mkdirSync(path.join(folder, id));
    writeFileSync(path.join(folder, id, "log.jsonl"), "");
  }
  mkdirSync(path.join(folder, "20261123-100000-ddddd"));
  mkdirSync(path.join(folder, "notes"));

  it("lists runs that have a log, oldest first", () => {
    expect(listRuns(folder)).toEqual({ ok: true, value: ids });
    expect(listRuns(path.join(folder, "absent"))).toEqual({ ok: true, value: [] });
  });

  it.each([
    ["latest", ids[2]],
    ["20261122", ids[2]],
    ["20261121-11", ids[1]],
    ["20261121-100000-aaaaa", ids[0]],
  ])("takes %s", (name, id) => {
    expect(findRun(folder, name)).toEqual({ ok: true, value: path.join(folder, id ?? "") });
  });

  it.each([
    ["20261121", `"20261121" is the beginning of 2 runs: 20261121-110000-bbbbb, 20261121-100000-aaaaa`],
    ["2025", `no run in ${folder} begins with "2025"; the newest are 20261122-100000-ccccc, `],
    ["../x", `no run in ${folder} begins with "../x"`],
    ["", `no run in ${folder} begins with ""`],
  ])("refuses %j and says what there is", (name, message) => {
    const found = findRun(folder, name);
    expect(found.ok ? "" : found.error.message).toContain(message);
  });

  it("says when there are no runs at all", () => {
    const absent = path.join(folder, "absent");
    expect(findRun(absent, "latest")).toEqual({ ok: false, error: { message: `there are no runs in ${absent}` } });
  });
});
