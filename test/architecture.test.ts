import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { breaches, importsOf, readHouse, type SourceFile } from "./house-law.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

function planted(path: string, text: string): SourceFile {
  return { path, text, imports: importsOf(path, text) };
}

test("the house keeps its law, its vendor fences, and has no import cycle", () => {
  expect(breaches(readHouse(root))).toEqual([]);
});

describe("a planted fault is found:", () => {
  const faults: [what: string, path: string, text: string][] = [
    ["an island that imports another island", "src/engine/run.ts", 'import { x } from "../agent/loop.ts";'],
    ["an island's type from another island", "src/engine/run.ts", 'import type { X } from "../agent/loop.ts";'],
    ["a lazy import of another island", "src/engine/run.ts", 'const x = await import("../agent/loop.ts");'],
    ["an import type expression", "src/engine/run.ts", 'let x: import("../agent/loop.ts").X;'],
    ["a re-export from another island", "src/engine/run.ts", 'export { x } from "../agent/loop.ts";'],
    ["a ground that imports a ground", "src/expr/parse.ts", 'import { x } from "../source/parse.ts";'],
    ["a ground that imports an island", "src/process/run.ts", 'import { x } from "../engine/run.ts";'],
    ["the model importing anything", "src/model/plan.ts", 'import { x } from "../expr/parse.ts";'],
    ["render knowing more than the model", "src/render/graph.ts", 'import { x } from "../compile/graph.ts";'],
    ["an island that imports flow.ts", "src/steps/run.ts", 'import { run } from "../flow.ts";'],
    ["flow.ts drawing by itself", "src/flow.ts", 'import { x } from "./render/graph.ts";'],
    ["the command line reaching into an island", "src/cli/main.ts", 'import { x } from "../engine/run.ts";'],
    ["index.ts reaching into an island", "src/index.ts", 'export { x } from "./compile/compile.ts";'],
    ["yaml outside source", "src/compile/shape.ts", 'import { parse } from "yaml";'],
    ["ajv outside jsonschema", "src/agent/output.ts", 'import Ajv from "ajv/dist/2020.js";'],
    ["expressions outside expr", "src/engine/step.ts", 'import { Parser } from "@actions/expressions/parser";'],
    ["a process outside process", "src/steps/run.ts", 'import { spawn } from "node:child_process";'],
    ["a lazy SDK outside providers", "src/agent/loop.ts", 'await import("openai");'],
    ["colour outside render", "src/cli/main.ts", 'import chalk from "chalk";'],
  ];
  test.each(faults)("%s", (_what, path, text) => {
    expect(breaches([planted(path, text)])).toHaveLength(1);
  });

  test("an import cycle, by types alone", () => {
    const files = [
      planted("src/model/a.ts", 'import type { B } from "./b.ts";'),
      planted("src/model/b.ts", 'import type { A } from "./a.ts";'),
    ];
    expect(breaches(files)).toEqual(["import cycle: src/model/a.ts -> src/model/b.ts -> src/model/a.ts"]);
  });
});

test("no comment switches a check off", () => {
  const comment = new RegExp(
    ["@ts-(ignore|expect-error|nocheck)", "(ox|es)lint-disable", "prettier-ignore", "oxfmt-ignore"].join("|"),
  );
  const tracked = execFileSync("git", ["ls-files", "src", "test", "bench", "scripts", "examples"], {
    cwd: root,
    encoding: "utf8",
  });
  const found = tracked
    .split("\n")
    .filter((path) => path.endsWith(".ts") && path !== "test/architecture.test.ts")
    .filter((path) => comment.test(readFileSync(`${root}/${path}`, "utf8")));
  expect(found).toEqual([]);
});
