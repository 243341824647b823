import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { JsonObject } from "../../src/model/json.ts";
import { makeWorkspace, type Workspace } from "./workspace.ts";

const tries = process.env["FLOW_TORTURE"] === undefined ? 1_000 : 10_000;
let work: Workspace;
beforeAll(() => {
  work = makeWorkspace();
});
afterAll(() => work.remove());

const text = (path: string): string => readFileSync(join(work.root, path), "utf8");
/** A call as one agent makes it, which remembers what it has seen. */
function agent(): (tool: string, args: JsonObject) => Promise<string> {
  const seen = new Map<string, string>();
  return (tool, args) => work.call(tool, args, undefined, { seen });
}
const edit = (path: string, old: string, now: string, more: JsonObject = {}): JsonObject => ({
  file_path: path,
  old_string: old,
  new_string: now,
  ...more,
});

describe("Write", () => {
  it("makes a file with the folders it needs, and replaces one that was read", async () => {
    const call = agent();
    expect(await call("Write", { file_path: "new/deep/a.txt", content: "one\ntwo\n" })).toBe(
      'Created "new/deep/a.txt": 2 lines.',
    );
    expect(await call("Write", { file_path: "new/deep/a.txt", content: "three" })).toBe(
      'Replaced "new/deep/a.txt": 1 line.',
    );
    expect(text("new/deep/a.txt")).toBe("three");
    expect(readdirSync(join(work.root, "new/deep"))).toEqual(["a.txt"]);
  });

  it("refuses a file that was not read, or has changed since", async () => {
    work.write("known.txt", "a\n");
    const call = agent();
    expect(await call("Write", { file_path: "known.txt", content: "x" })).toContain("was not read yet");
    await call("Read", { file_path: "known.txt" });
    work.write("known.txt", "by somebody else\n");
    expect(await call("Write", { file_path: "known.txt", content: "x" })).toContain("has changed since it was read");
    await call("Read", { file_path: "known.txt" });
    expect(await call("Write", { file_path: "known.txt", content: "x" })).toContain("Replaced");
  });

  it("needs no reading where no agent calls", async () => {
    work.write("step.txt", "a\n");
    expect(await work.call("Write", { file_path: "step.txt", content: "b" })).toContain("Replaced");
  });

  it("keeps the mode of a file", async () => {
    chmodSync(work.write("run.sh", "#!/bin/sh\n"), 0o755);
    await work.call("Write", { file_path: "run.sh", content: "#!/bin/bash\n" });
    expect(statSync(join(work.root, "run.sh")).mode & 0o777).toBe(0o755);
  });

  it.each([
    ["../x", "outside the workspace"],
    ["/tmp/flow-never", "outside the workspace"],
    ["~/x", "starts with ~"],
    ["a\0b", "NUL"],
    [".env", "credentials"],
    ["src/.npmrc", "credentials"],
    [".flow/x", "flow's own state"],
    [".git/hooks/pre-commit", "belongs to git"],
    ["sub/.GIT/config.x", "belongs to git"],
    [".", "is the workspace itself"],
    ["x".repeat(300), "too long"],
    ["out/x", "outside the workspace"],
    ["dangling", "leads nowhere"],
    ["folder", "is a folder"],
    ["file.txt/below", "not a folder"],
  ])("refuses %s", async (path, why) => {
    if (!existsSync(join(work.root, "folder"))) {
      symlinkSync(work.outside, join(work.root, "out"));
      symlinkSync(join(work.outside, "new"), join(work.root, "dangling"));
      mkdirSync(join(work.root, "folder"));
      work.write("file.txt", "a");
    }
    expect(await work.call("Write", { file_path: path, content: "x" })).toContain(why);
    expect(readdirSync(work.outside)).toEqual(["secret.txt"]);
  });

  it(
    `never writes outside while a folder is swapped for a link, ${tries} tries`,
    { timeout: 60_000 + tries * 30 },
    async () => {
      work.write("race/folder/a.txt", "");
      symlinkSync(work.outside, join(work.root, "race/link"));
      const at = (name: string): string => join(work.root, "race", name);
      const worker = new Worker(
        `const { renameSync } = require("node:fs"); const [a, b] = require("node:worker_threads").workerData;
       for (;;) try { renameSync(a, a + ".tmp"); renameSync(b, a); renameSync(a, b); renameSync(a + ".tmp", a); } catch {}`,
        { eval: true, workerData: [at("folder"), at("link")] },
      );
      let written = 0;
      try {
        for (let attempt = 0; attempt < tries; attempt++) {
          const answer = await work.call("Write", { file_path: "race/folder/a.txt", content: `${attempt}` });
          if (!answer.startsWith("error:")) written += 1;
        }
      } finally {
        await worker.terminate();
      }
      expect(readdirSync(work.outside)).toEqual(["secret.txt"]);
      expect(written).toBeGreaterThan(0);
    },
  );
});

describe("Edit", () => {
  it("replaces a text that stands there once, and shows the place", async () => {
    work.write("a.ts", "one\ntwo\nthree\n");
    const call = agent();
    await call("Read", { file_path: "a.ts" });
    expect(await call("Edit", edit("a.ts", "two", "$& 2"))).toBe(
      'Changed "a.ts".\n     1\tone\n     2\t$& 2\n     3\tthree\n     4\t',
    );
    expect(await call("Edit", edit("a.ts", "three", "3"))).toContain("Changed");
    expect(text("a.ts")).toBe("one\n$& 2\n3\n");
  });

  it.each([
    ["b", "B", {}, "stands there 3 times"],
    ["nothing", "x", {}, "is not there"],
    ["a", "a", {}, "are the same"],
    ["  b\n  b", "x", {}, "with other white space"],
    ["     1\ta", "x", {}, "numbers of Read"],
  ])("refuses %j", async (old, now, more, why) => {
    work.write("b.txt", "a\nb\n b\nb\n");
    expect(await work.call("Edit", edit("b.txt", old, now, more))).toContain(why);
    expect(text("b.txt")).toBe("a\nb\n b\nb\n");
  });

  it("replaces all when it is asked to", async () => {
    work.write("c.txt", "b b b");
    expect(await work.call("Edit", edit("c.txt", "b", "x", { replace_all: true }))).toContain("in 3 places");
    expect(text("c.txt")).toBe("x x x");
  });

  it("keeps line endings and a byte order mark", async () => {
    work.write("crlf.txt", "\ufeffone\r\ntwo\r\nthree\r\n");
    await work.call("Edit", edit("crlf.txt", "one\ntwo", "1\n2\n2b"));
    expect(text("crlf.txt")).toBe("\ufeff1\r\n2\r\n2b\r\nthree\r\n");
    await work.call("Edit", edit("crlf.txt", "three", "3\n4"));
    expect(text("crlf.txt")).toBe("\ufeff1\r\n2\r\n2b\r\n3\r\n4\r\n");
  });

  it("refuses what was not read, what changed, and what is no text", async () => {
    work.write("d.txt", "a");
    writeFileSync(join(work.root, "bin"), Buffer.from([0x61, 0xff, 0x00]));
    const call = agent();
    expect(await call("Edit", edit("d.txt", "a", "b"))).toContain("was not read yet");
    await call("Read", { file_path: "d.txt" });
    renameSync(work.write("other.txt", "a"), join(work.root, "d.txt"));
    expect(await call("Edit", edit("d.txt", "a", "b"))).toContain("has changed since");
    expect(await work.call("Edit", edit("bin", "a", "b"))).toContain("no UTF-8 text");
    expect(await work.call("Edit", edit("absent", "a", "b"))).toContain("does not exist");
  });
});

describe("TodoWrite", () => {
  it("counts the plan", async () => {
    const todos = [
      { content: "a", status: "completed" },
      { content: "b", status: "in_progress", activeForm: "Doing b" },
      { content: "c", status: "pending" },
    ];
    expect(await work.call("TodoWrite", { todos })).toBe(
      "The plan has 3 items: 1 pending, 1 in progress, 1 completed.",
    );
    expect(await work.call("TodoWrite", { todos: [] })).toBe("The plan is empty.");
  });
});
