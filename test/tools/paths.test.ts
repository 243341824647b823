import { execFileSync } from "node:child_process";
import { mkdirSync, renameSync, symlinkSync, unlinkSync } from "node:fs";
import { join, relative } from "node:path";
import { Worker } from "node:worker_threads";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openInside, placeOf } from "../../src/tools/workspace-path.ts";
import { type Workspace, canary, makeWorkspace } from "./workspace.ts";

/** A fifth of what `npm run torture` does. */
const tries = process.env["FLOW_TORTURE"] === undefined ? 2_000 : 10_000;

let work: Workspace;
beforeAll(() => {
  work = makeWorkspace();
  work.write("src/a.txt", "inside\n");
  const link = (target: string, name: string) => symlinkSync(target, join(work.root, name));
  link("../outside/secret.txt", "file-link");
  link("../outside", "folder-link");
  link(work.outside, "absolute-link");
  link("/proc/self/environ", "environ-link");
  link("/dev/zero", "zero-link");
  link("loop-b", "loop-a");
  link("loop-a", "loop-b");
  link("nowhere", "dangling");
  link("src/a.txt", "good-link");
  link("src", "good-folder");
  link("file-link", "chain-0");
  for (let index = 1; index <= 45; index++) link(`chain-${index - 1}`, `chain-${index}`);
  execFileSync("mkfifo", [join(work.root, "fifo")]);
  mkdirSync(join(work.root, "folder"));
});
afterAll(() => work.remove());

/** Every call that could show something of a path, as one text. */
async function everyTool(path: string): Promise<string[]> {
  return Promise.all([
    work.call("Read", { file_path: path }),
    work.call("LS", { path }),
    work.call("Glob", { pattern: "**", path }),
    work.call("Grep", { pattern: ".", path, output_mode: "content" }),
    work.call("Grep", { pattern: ".", path, output_mode: "count" }),
  ]);
}

describe("a path that leads out of the workspace", () => {
  const attacks = [
    "..",
    "../sibling.txt",
    "../outside/secret.txt",
    "src/../../outside/secret.txt",
    "./src/.././../sibling.txt",
    "/",
    "/etc/passwd",
    "/etc/../etc/shadow",
    "//etc/passwd",
    "~",
    "~/x",
    "~root/.ssh/id_rsa",
    "file:///etc/passwd",
    "FILE:/etc/passwd",
    "http://127.0.0.1/x",
    "C:\\x",
    "c:/x",
    "\\\\host\\share\\x",
    "src/a.txt\0.png",
    "file-link",
    "folder-link",
    "folder-link/secret.txt",
    "absolute-link/secret.txt",
    "folder-link/../sibling.txt/../outside/secret.txt",
    "chain-10",
    "chain-45",
    "environ-link",
    "zero-link",
    "/proc/self/environ",
    "/proc/self/cwd/..",
    "/proc/self/root/etc/passwd",
    "/proc/self/fd/0",
    "/dev/stdin",
    "/dev/zero",
    "/dev/tty",
    "dangling",
    "loop-a",
  ];

  it.each(attacks)("is refused by every tool: %j", async (path) => {
    for (const answer of await everyTool(path)) {
      expect(answer).toMatch(/^error: "/);
      expect(answer).not.toContain(canary);
      expect(answer).not.toContain("root:");
    }
  });

  it("is refused with the same words whether it exists or not", async () => {
    const existing = await work.call("Read", { file_path: "../outside/secret.txt" });
    const missing = await work.call("Read", { file_path: "../outside/absent.txt" });
    const through = await work.call("Read", { file_path: "../outside/secret.txt/below" });
    expect(existing.replace("secret", "absent")).toBe(missing);
    expect(through.replace("secret.txt/below", "absent.txt")).toBe(missing);
  });

  it("is refused for a file that is yet to be written below a linked folder, or through a link to nowhere", async () => {
    for (const path of ["folder-link/new.txt", "dangling", "folder-link/a/b/c", "../new.txt"])
      expect(await placeOf(work.root, path)).toMatchObject({ ok: false });
    expect(await placeOf(work.root, "good-folder/new/file.txt")).toEqual({
      ok: true,
      value: { real: join(work.root, "src/new/file.txt"), relative: "src/new/file.txt" },
    });
  });

  it("is not mistaken for a neighbour with the same beginning", async () => {
    mkdirSync(`${work.root}-evil`);
    expect(await work.call("LS", { path: `${work.root}-evil` })).toContain("outside the workspace");
  });
});

describe("a path inside the workspace", () => {
  it.each([
    ["relative", "src/a.txt"],
    ["with dots that stay inside", "./src/../src//a.txt"],
    ["through a link to a file inside", "good-link"],
    ["through a link to a folder inside", "good-folder/a.txt"],
  ])("is read: %s", async (_, path) => {
    expect(await work.call("Read", { file_path: path })).toBe("     1\tinside");
    expect(await work.call("Read", { file_path: join(work.root, path) })).toBe("     1\tinside");
  });

  it("may be given by another name of the workspace itself", async () => {
    const alias = join(work.outside, "alias");
    symlinkSync(work.root, alias);
    expect(await work.call("Read", { file_path: join(alias, "src/a.txt") })).toBe("     1\tinside");
    expect(await placeOf(alias, join(alias, "src/a.txt"))).toMatchObject({ ok: true });
  });

  it("opens regular files only, and never waits for a FIFO", async () => {
    const started = performance.now();
    expect(await work.call("Read", { file_path: "fifo" })).toBe('error: "fifo" is not a regular file');
    expect(await work.call("Grep", { pattern: "x", path: "fifo" })).toBe('error: "fifo" is not a regular file');
    expect(await work.call("Read", { file_path: "folder" })).toBe('error: "folder" is a folder; use LS or Glob');
    expect(await work.call("Grep", { pattern: "inside" })).toBe("src/a.txt");
    expect(performance.now() - started).toBeLessThan(5_000);
  });

  it("has an understandable error", async () => {
    const read = (path: string) => work.call("Read", { file_path: path });
    expect(await read("absent")).toBe('error: "absent" does not exist');
    expect(await read("src/a.txt/b")).toContain("goes through a file");
    expect(await read("x".repeat(300))).toContain("a name that is too long");
    expect(await read("a/".repeat(3_000))).toContain("too long");
    expect(await read("")).toContain("is a folder");
    expect(await work.call("LS", { path: "src/a.txt" })).toContain("is not a folder");
  });
});

describe("flow's own state", () => {
  it("is not readable and not listed", async () => {
    work.write(".flow/runs/1/log.jsonl", canary);
    for (const path of [".flow", ".flow/runs/1/log.jsonl", "src/../.flow/runs", ".FLOW"])
      for (const answer of await everyTool(path)) expect(answer).toContain("flow's own state");
    const all = [
      ...(await everyTool(".")).slice(1),
      await work.call("Grep", { pattern: "CANARY", glob: "**/.flow/**" }),
    ];
    expect(all.join("\n")).not.toMatch(/\.flow|CANARY/);
  });
});

/** Swaps names in a thread of its own, as fast as the system can, until it is stopped. */
function swapper(pairs: readonly (readonly [string, string])[]): Worker {
  const source = `
    const { renameSync } = require("node:fs");
    const { workerData } = require("node:worker_threads");
    for (;;) for (const [a, b] of workerData) {
      try { renameSync(a, a + ".tmp"); renameSync(b, a); renameSync(a + ".tmp", b); } catch {}
    }`;
  return new Worker(source, { eval: true, workerData: pairs });
}

describe("a name that is swapped between check and opening", () => {
  it(
    `never shows anything from outside: ${tries} tries on a file and on its folder`,
    { timeout: 60_000 + tries * 30 },
    async () => {
      work.write("race/file.txt", "inside\n");
      work.write("race/folder/secret.txt", "inside\n");
      symlinkSync("../../outside/secret.txt", join(work.root, "race/evil-file"));
      symlinkSync("../../outside", join(work.root, "race/evil-folder"));
      const at = (name: string) => join(work.root, "race", name);
      const worker = swapper([
        [at("file.txt"), at("evil-file")],
        [at("folder"), at("evil-folder")],
      ]);
      const seen = new Map<string, number>();
      try {
        for (let attempt = 0; attempt < tries; attempt++) {
          for (const path of ["race/file.txt", "race/folder/secret.txt"]) {
            const answer = await work.call("Read", { file_path: path });
            seen.set(answer, (seen.get(answer) ?? 0) + 1);
          }
          const listing = await work.call("LS", { path: "race/folder" });
          expect(listing.startsWith("error:") || listing === "secret.txt").toBe(true);
        }
      } finally {
        await worker.terminate();
      }
      expect([...seen.keys()].join("\n")).not.toContain(canary);
      // The race was real: both sides of it were seen.
      expect(seen.get("     1\tinside") ?? 0).toBeGreaterThan(0);
      expect([...seen.keys()].some((answer) => answer.includes("outside the workspace"))).toBe(true);
    },
  );

  it("shows Grep and Glob nothing from outside either", { timeout: 60_000 + tries * 30 }, async () => {
    work.write("race2/folder/deep/secret.txt", "inside\n");
    mkdirSync(join(work.outside, "deep"));
    renameSync(join(work.outside, "secret.txt"), join(work.outside, "deep/secret.txt"));
    work.write("race2/canary-name", "x");
    symlinkSync(work.outside, join(work.root, "race2/evil"));
    const worker = swapper([[join(work.root, "race2/folder"), join(work.root, "race2/evil")]]);
    const answers = new Set<string>();
    try {
      for (let attempt = 0; attempt < tries / 40; attempt++) {
        answers.add(await work.call("Grep", { pattern: ".", path: "race2/folder", output_mode: "content" }));
        answers.add(await work.call("Grep", { pattern: ".", path: "race2", output_mode: "content" }));
        answers.add(await work.call("Glob", { pattern: "**", path: "race2" }));
      }
    } finally {
      await worker.terminate();
      renameSync(join(work.outside, "deep/secret.txt"), join(work.outside, "secret.txt"));
    }
    expect([...answers].join("\n")).not.toContain(canary);
    expect([...answers].join("\n")).not.toContain("alias");
    expect([...answers].join("\n")).toContain("inside");
  });

  it("refuses what was replaced after the place was found", async () => {
    work.write("late.txt", "inside\n");
    const place = await placeOf(work.root, "late.txt");
    expect(place.ok).toBe(true);
    unlinkSync(join(work.root, "late.txt"));
    symlinkSync("../outside/secret.txt", join(work.root, "late.txt"));
    expect(await openInside(work.root, "late.txt", "file")).toMatchObject({ ok: false });
    expect(relative(work.root, work.outside)).toBe("../outside");
  });
});
