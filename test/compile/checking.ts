import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll } from "vitest";
import { check, type Compilation } from "../../src/flow.ts";
import type { Span } from "../../src/model/diagnostic.ts";
import type { Plan, Scope, Step } from "../../src/model/plan.ts";

const empty = mkdtempSync(join(tmpdir(), "flow-compile-"));
mkdirSync(join(empty, ".git"));
afterAll(() => rmSync(empty, { recursive: true, force: true }));

/** Checks one workflow text in an empty workspace. */
export function checkText(text: string): Promise<Compilation> {
  return check({ file: "-", stdin: Buffer.from(text), cwd: empty });
}

/** Checks `main.yaml` among files of a workspace of its own. */
export function checkFiles(
  files: { readonly [path: string]: string | Buffer },
  file = "main.yaml",
): Promise<Compilation> {
  const cwd = mkdtempSync(join(empty, "files-"));
  mkdirSync(join(cwd, ".git"));
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(cwd, path)), { recursive: true });
    writeFileSync(join(cwd, path), content);
  }
  return check({ file, cwd });
}

/** Every problem as `CODE line:column text under the caret`. */
export function problemsOf({ diagnostics, sources }: Compilation): string[] {
  return diagnostics.map(
    (it) => `${it.code} ${it.at.line}:${it.at.column} ${textAt(sources.get(it.at.file) ?? "", it.at)}`,
  );
}

/** The text of a span, clamped to its first line. */
export function textAt(source: string, at: Span): string {
  const line = source.split("\n")[at.line - 1] ?? "";
  return line.slice(at.column - 1, at.endLine > at.line ? undefined : at.endColumn - 1);
}

/** The plan of a text that has no errors. */
export async function planOf(text: string): Promise<Plan> {
  const compilation = await checkText(text);
  if (!compilation.plan) throw new Error(problemsOf(compilation).join("\n"));
  return compilation.plan;
}

export function rootOf(plan: Plan): Scope {
  const scope = plan.workflows[plan.root]?.scope;
  if (!scope) throw new Error("a plan without its root");
  return scope;
}

/** A step by the ids on the way to it: `group/inner`. */
export function stepOf(plan: Plan, path: string): Step {
  let scope: Scope | undefined = rootOf(plan);
  let found: Step | undefined;
  for (const id of path.split("/")) {
    found = scope?.steps.find((step) => step.id === id);
    scope = found?.scope && "inline" in found.scope ? found.scope.inline : undefined;
  }
  if (!found) throw new Error(`no step ${path}`);
  return found;
}
