import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { check } from "../src/flow.ts";
import { Place } from "./cli/flow.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const readme = read("README.md");
const place = new Place();
afterAll(() => place.remove());

function read(path: string): string {
  return readFileSync(join(root, path), "utf8");
}

/** The insides of the fenced blocks of one language, in order. */
function blocks(text: string, language: string): string[] {
  return [...text.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].flatMap((block) =>
    block[1] === language ? [block[2] ?? ""] : [],
  );
}

function copy(folder: string): void {
  for (const path of readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }))
    if (/\.\w+$/.test(path)) place.write(`${folder}/${path}`, read(`${folder}/${path}`));
}

describe("the README's first workflow", () => {
  const file = "examples/triage/flow.yaml";
  const [workflow = ""] = blocks(readme, "yaml");
  const [shown = ""] = blocks(readme, "console");

  test("is the example of the command below it, and compiles", async () => {
    expect(read(file).replace(/^# yaml-language-server.*\n/, "")).toBe(workflow);
    const { plan, diagnostics } = await check({ file, cwd: root });
    expect(diagnostics).toEqual([]);
    expect(plan?.workflows[plan.root]?.name).toBe("triage");
  });

  test("prints what the README says, but for run ids, times and durations", async () => {
    copy("examples/triage");
    const [prompt = "", ...output] = shown.split("\n");
    expect(prompt).toBe(`$ npx flow run ${file}`);
    const { stdout, code } = await place.shell(`flow run ${file} 2>&1`, { env: { npm_command: "exec" } });
    expect(masked(stdout)).toBe(masked(output.join("\n")));
    expect(code).toBe(0);
  });

  test("does nothing about a report that is harmless", async () => {
    copy("examples/triage");
    const { stdout } = await place.flow(["run", file, "--input", "report=A typing error", "-q"]);
    expect(stdout).toBe("severity: low\nalert: nobody was woken\n");
  });
});

function masked(text: string): string {
  return text
    .replaceAll(/\b\d{8}-\d{6}-[a-z0-9]{5}\b/g, "RUN")
    .replaceAll(/^\d\d:\d\d\.\d/gm, "TIME")
    .replaceAll(/\b\d+\.\ds\b/g, "DURATION");
}

test("the README's diagnostic is what validate prints", async () => {
  const [, , shown = ""] = blocks(readme, "console");
  const [prompt, ...output] = shown.split("\n");
  expect(prompt).toBe("$ npx flow validate flow.yaml");
  place.write("flow.yaml", "inputs: { who: { type: string } }\nsteps:\n  greet:\n    run: echo ${{ inputs.who }}\n");
  const { stdout, code } = await place.flow(["validate", "flow.yaml"]);
  expect(stdout).toBe(`${output.join("\n")}\n1 error\n`);
  expect(code).toBe(2);
});

test("the README names every command with the options it has, and none that is not there", async () => {
  const { stdout } = await place.flow(["--help"]);
  const commands = [...(/Commands:\n([\s\S]*?)\n\n/.exec(stdout)?.[1] ?? "").matchAll(/^ {2}(\w+)/gm)];
  const known = commands.map((match) => match[1] ?? "").filter((name) => name !== "help");
  const calls = [...readme.matchAll(/(?:`|\bnpx )flow (\w+)([^`\n]*)/g)];
  expect([...new Set(calls.map((call) => call[1] ?? ""))].sort()).toEqual(known.sort());
  for (const [, name = "", rest = ""] of calls) {
    const help = (await place.flow([name, "--help"])).stdout;
    for (const [option] of rest.matchAll(/--[a-z-]+/g)) expect(help, `flow ${name}`).toContain(option);
  }
});

test("the README's exit codes are those of --help", async () => {
  const { stdout } = await place.flow(["--help"]);
  const listed = [...(stdout.split("Exit codes:")[1] ?? "").matchAll(/\b\d+(?= )/g)].map(([code]) => code);
  const [, section = ""] = /## How a run ends\n([\s\S]*?)\n## /.exec(readme) ?? [];
  const told = [...section.matchAll(/^(?:\| )?(\d+)(?:, (\d+))? (?:\||\()|and (\d+) \(/gm)].flatMap(([, ...codes]) =>
    codes.filter((code) => code !== undefined),
  );
  expect(told.sort()).toEqual(listed.sort());
});

const guides = ["ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "README.md", "docs/decisions.md"];

test.each(guides)("every path that %s names exists", (guide) => {
  const missing = pathsIn(read(guide)).filter((path) => !existsSync(join(root, path)));
  expect(missing).toEqual([]);
});

/** Words in backticks, and in blocks without a language, that stand for a file or folder of this repository. */
function pathsIn(text: string): string[] {
  const quoted = [...text.replaceAll(/^```[\s\S]*?^```$/gm, "").matchAll(/`([^`\s]+)`/g)].map(([, word]) => word ?? "");
  const drawn = blocks(text, "").flatMap((block) => block.split(/[\s,]+/));
  return [...quoted, ...drawn].filter((word) =>
    /^(?:\.?(?:ci|github)|src|test|docs|schemas|examples|bench|dist)\/|^\w+\.(?:md|json)$/.test(word),
  );
}

test.each([...guides, "docs/agents.md", "docs/events.md", "docs/library.md", "docs/scripted.md"])(
  "every link in %s leads somewhere",
  (guide) => {
    const links = [...read(guide).matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)].map(([, link]) => link ?? "");
    const local = links.filter((link) => !/^[a-z]+:/.test(link));
    const missing = local.filter((link) => !existsSync(join(root, posix.join(dirname(guide), link))));
    expect(missing).toEqual([]);
  },
);

test("the functions that ARCHITECTURE.md follows a step through are exported where it says", () => {
  const lines = blocks(read("ARCHITECTURE.md"), "").flatMap((block) => block.split("\n"));
  const claims = lines.flatMap((line) => [...line.matchAll(/(src\/[\w/-]+\.ts) +([a-z]\w+)/g)]);
  expect(claims.length).toBeGreaterThan(15);
  const wrong = claims.filter(([, path = "", name = ""]) => !new RegExp(`function\\*? ${name}\\b`).test(read(path)));
  expect(wrong.map(([claim]) => claim)).toEqual([]);
});

test("the README and ARCHITECTURE.md stay short", () => {
  expect(read("README.md").split("\n").length).toBeLessThanOrEqual(171);
  expect(read("ARCHITECTURE.md").split("\n").length).toBeLessThanOrEqual(151);
});
