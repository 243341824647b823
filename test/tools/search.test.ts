import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Workspace, canary, makeWorkspace } from "./workspace.ts";

/** The long version takes a million. */
const crowd = Number(process.env["FLOW_CROWD"] ?? 25_000);

let work: Workspace;
beforeAll(() => {
  work = makeWorkspace();
  work.write("README.md", "# Title\nalpha\n");
  work.write("src/a.ts", "const alpha = 1;\nconst beta = 2;\nconst Alpha = 3;\n");
  work.write("src/deep/b.ts", "one\ntwo\nalpha();\nfour\nfive\nsix\nseven\nalpha alpha\n");
  work.write("src/deep/c.js", "nothing\r\nbeta;\r\n");
  work.write(".github/workflows/ci.yaml", "alpha: true\n");
  work.write("node_modules/p/index.js", "alpha\n");
  work.write(".git/HEAD", "alpha\n");
  work.write("ignored/out.log", "alpha\n");
  work.write(".ignore", "ignored/\n");
  symlinkSync("../../outside", join(work.root, "src/outside"));
  symlinkSync("../../outside/secret.txt", join(work.root, "src/secret-link.ts"));
});
afterAll(() => work.remove());

const glob = (pattern: string, more = {}) => work.call("Glob", { pattern, ...more });
const grep = (pattern: string, more = {}) => work.call("Grep", { pattern, ...more });

describe("Glob", () => {
  it.each([
    ["*.md", "README.md"],
    ["**/*.ts", "src/a.ts\nsrc/deep/b.ts"],
    ["*.ts", "[no file matches]"],
    ["src/*", "src/a.ts"],
    ["src/**", "src/a.ts\nsrc/deep/b.ts\nsrc/deep/c.js"],
    ["./src/**/[bc].{ts,js}", "src/deep/b.ts\nsrc/deep/c.js"],
    ["**/ci.yaml", ".github/workflows/ci.yaml"],
    ["node_modules/**/*.js", "node_modules/p/index.js"],
    [".git/*", ".git/HEAD"],
    ["ignored/**", "ignored/out.log"],
    ["**/secret.txt", "[no file matches]"],
    ["!*.md", "[no file matches]"],
  ])("finds %s", async (pattern, expected) => {
    expect(await glob(pattern)).toBe(expected);
  });

  it("starts where it is told and accepts an absolute pattern below it", async () => {
    expect(await glob("*.ts", { path: "src/deep" })).toBe("src/deep/b.ts");
    expect(await glob(join(work.root, "src/*.ts"))).toBe("src/a.ts");
  });

  it.each(["../*", "src/../../outside/*", "/etc/*", "~/*", "a\0b"])("refuses %j", async (pattern) => {
    expect(await glob(pattern)).toMatch(/^error: the pattern/);
  });

  it("answers a pattern made to be slow, or a broken one, at once", async () => {
    work.write(`slow/${"a".repeat(200)}`, "x");
    const started = performance.now();
    expect(await glob(`**/${"*a".repeat(40)}*b`)).toBe("[no file matches]");
    expect(await glob(`**/${"**/".repeat(100)}*`)).toContain("src/a.ts");
    expect(await glob(`{${"{a,b},".repeat(30)}c}`)).toMatch(/no file matches|error: the search failed/);
    expect(await glob("src/[")).toMatch(/^error: the search failed: .*unclosed/s);
    expect(await glob("x".repeat(1_001))).toContain("longer than 1000");
    expect(performance.now() - started).toBeLessThan(5_000);
  });

  it("stops when it is cancelled", async () => {
    expect(await work.call("Glob", { pattern: "**" }, AbortSignal.abort())).toBe("error: cancelled");
  });
});

describe("Grep", () => {
  it("names the files that match, sorted, without ignored ones, links, .git and node_modules", async () => {
    expect(await grep("alpha")).toBe(".github/workflows/ci.yaml\nREADME.md\nsrc/a.ts\nsrc/deep/b.ts");
    expect(await grep(canary)).toBe("[no match]");
    expect(await grep("alpha", { path: "node_modules" })).toBe("node_modules/p/index.js");
  });

  it.each([
    [{}, "src/a.ts:1:const alpha = 1;"],
    [{ "-n": false }, "src/a.ts:const alpha = 1;"],
    [{ "-i": true }, "src/a.ts:1:const alpha = 1;\nsrc/a.ts:3:const Alpha = 3;"],
    [{ "-o": true }, "src/a.ts:1:alpha"],
    [{ "-A": 1 }, "src/a.ts:1:const alpha = 1;\nsrc/a.ts-2-const beta = 2;"],
    [{ "-A": 1, "-n": false }, "src/a.ts:const alpha = 1;\nsrc/a.ts-const beta = 2;"],
  ])("shows lines with %j", async (options, expected) => {
    expect(await grep("alpha", { path: "src/a.ts", output_mode: "content", ...options })).toBe(expected);
  });

  it("parts groups of lines", async () => {
    expect(await grep("alpha", { path: "src/deep", output_mode: "content", "-B": 1, "-A": 1 })).toBe(
      [
        "src/deep/b.ts-2-two",
        "src/deep/b.ts:3:alpha();",
        "src/deep/b.ts-4-four",
        "--",
        "src/deep/b.ts-7-seven",
        "src/deep/b.ts:8:alpha alpha",
      ].join("\n"),
    );
    expect(await grep("four", { path: "src", output_mode: "content", "-C": 1 })).toBe(
      "src/deep/b.ts-3-alpha();\nsrc/deep/b.ts:4:four\nsrc/deep/b.ts-5-five",
    );
  });

  it("counts matches", async () => {
    expect(await grep("alpha", { output_mode: "count", path: "src" })).toBe("src/a.ts:1\nsrc/deep/b.ts:3");
  });

  it("takes a glob, a type, several lines, and the end of a CRLF line", async () => {
    expect(await grep("beta", { glob: "*.js" })).toBe("src/deep/c.js");
    expect(await grep("beta", { type: "ts" })).toBe("src/a.ts");
    expect(await grep("beta", { type: "klingon" })).toMatch(/^error: the search failed: .*klingon/s);
    expect(await grep("beta;$", { output_mode: "content" })).toBe("src/deep/c.js:2:beta;");
    expect(await grep("one.*alpha", { multiline: true, output_mode: "content", path: "src" })).toBe(
      "src/deep/b.ts:1:one\nsrc/deep/b.ts:2:two\nsrc/deep/b.ts:3:alpha();\nsrc/deep/b.ts:4:four\n" +
        "src/deep/b.ts:5:five\nsrc/deep/b.ts:6:six\nsrc/deep/b.ts:7:seven\nsrc/deep/b.ts:8:alpha alpha",
    );
    expect(await grep("two\nalpha", { multiline: true, output_mode: "content", "-o": true })).toMatch(
      /^src\/deep\/b\.ts:2:two\n(?:src\/deep\/b\.ts:3:)?alpha$/,
    );
  });

  it("limits and pages the result", async () => {
    work.write("numbers.txt", Array.from({ length: 600 }, (_, index) => `n ${index + 1}\n`).join(""));
    const options = { path: "numbers.txt", output_mode: "content" };
    const page = (await grep("^n", options)).split("\n");
    expect(page).toHaveLength(251);
    expect(page.at(-1)).toBe("[there is more; continue with offset 250]");
    expect(await grep("^n", { ...options, head_limit: 2, offset: 250 })).toBe(
      "numbers.txt:251:n 251\nnumbers.txt:252:n 252\n[there is more; continue with offset 252]",
    );
    expect((await grep("^n", { ...options, head_limit: 0 })).split("\n")).toHaveLength(600);
    expect(await grep("^n", { ...options, offset: 600 })).toContain("beyond");
  });

  it("pages over more files than are open at once", async () => {
    for (let index = 0; index < 230; index++) work.write(`pages/f${String(index).padStart(3, "0")}`, "needle\n");
    const all = (await grep("needle", { path: "pages", head_limit: 0 })).split("\n");
    expect(all).toEqual(Array.from({ length: 230 }, (_, index) => `pages/f${String(index).padStart(3, "0")}`));
    expect(await grep("needle", { path: "pages", head_limit: 2, offset: 150 })).toBe(
      "pages/f150\npages/f151\n[there is more; continue with offset 152]",
    );
  });

  it("treats patterns as patterns and names as names, never as options", async () => {
    work.write("odd/-e", "--pre=touch -e marker\n");
    work.write("odd/a\nb", "needle-odd\n");
    work.write("odd/--files", "needle-odd\n");
    expect(await grep("--pre=touch", { path: "odd" })).toBe("odd/-e");
    expect(await grep("-e")).toContain("odd/-e");
    expect(await grep("needle-odd", { path: "odd" })).toBe('odd/--files\n"odd/a\\nb"');
    expect(await grep("needle-odd", { path: "odd", output_mode: "content" })).toBe(
      'odd/--files:1:needle-odd\n"odd/a\\nb":1:needle-odd',
    );
    expect(await grep("needle-odd", { path: "odd", glob: "--files" })).toBe("odd/--files");
  });

  it("explains a bad pattern and answers a slow one at once", async () => {
    work.write("slow.txt", `${"a".repeat(50_000)}\n`);
    const started = performance.now();
    expect(await grep("(unclosed")).toMatch(/^error: the search failed: .*unclosed group/s);
    expect(await grep("(a+)+$b", { path: "slow.txt" })).toBe("[no match]");
    expect(await grep("a{1000}{1000}{1000}")).toMatch(/^error: the search failed/);
    expect(await grep("x\0y")).toContain("NUL");
    expect(performance.now() - started).toBeLessThan(10_000);
  });

  it("cuts long lines and results beyond measure, and says so", async () => {
    work.write("wide.txt", `${"w".repeat(100_000)}\n`);
    expect((await grep("w", { path: "wide.txt", output_mode: "content" })).length).toBeLessThan(700);
    work.write("flood.txt", "flood flood flood flood flood flood flood\n".repeat(300_000));
    const flood = await grep("flood", { path: "flood.txt", output_mode: "content", head_limit: 0 });
    expect(flood.length).toBeLessThan(5_000_000);
    expect(flood).toMatch(/\[the result was too large and is cut here; narrow pattern, path or glob\]$/);
  });

  it("reads no configuration and no environment", async () => {
    writeFileSync(join(work.outside, "rc"), "--files\n");
    process.env["RIPGREP_CONFIG_PATH"] = join(work.outside, "rc");
    try {
      expect(await grep("Title")).toBe("README.md");
    } finally {
      delete process.env["RIPGREP_CONFIG_PATH"];
    }
  });

  it("stops when it is cancelled", async () => {
    expect(await work.call("Grep", { pattern: "a" }, AbortSignal.abort())).toBe("error: cancelled");
  });
});

describe("LS", () => {
  it("lists one folder, sorted, folders and links marked", async () => {
    expect(await work.call("LS", { path: "src" })).toBe("a.ts\ndeep/\noutside@\nsecret-link.ts@");
    mkdirSync(join(work.root, "void"));
    expect(await work.call("LS", { path: "void" })).toBe("[the folder is empty]");
    expect(await work.call("LS", { path: "odd" })).toBe('"a\\nb"\n--files\n-e');
  });

  it(`answers for a folder of ${crowd} entries in moments; so do Glob and Grep`, { timeout: 300_000 }, async () => {
    const folder = join(work.root, "crowd");
    mkdirSync(folder);
    for (let index = 0; index < crowd; index++)
      writeFileSync(join(folder, `entry-${index}`), index < 400 ? "crowd\n" : "");
    const before = process.memoryUsage.rss();
    const started = performance.now();
    const listing = (await work.call("LS", { path: "crowd" })).split("\n");
    expect(listing).toHaveLength(1_001);
    expect(listing.at(-1)).toContain("more than 20000 entries");
    const names = (await glob("**", { path: "crowd" })).split("\n");
    expect(names).toHaveLength(1_001);
    expect(names.at(-1)).toContain("there are more");
    expect((await grep("crowd", { path: "crowd" })).split("\n")).toHaveLength(251);
    expect(performance.now() - started).toBeLessThan(20_000);
    expect(process.memoryUsage.rss() - before).toBeLessThan(80 * 1024 * 1024);
  });
});
