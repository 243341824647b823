import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { check, prepare, run, validate } from "../../src/flow.ts";
import { codes } from "../../src/model/codes.ts";
import type { Diagnostic } from "../../src/model/diagnostic.ts";
import { renderDiagnostics } from "../../src/render/diagnostics.ts";
import { plainPalette } from "../../src/render/palette.ts";

/**
 * The fixtures are the specification of every diagnostic: a file `CODE-what.yaml`, or a folder with `main.yaml`, and
 * beside it the text that `flow validate` prints for it. `UPDATE=1 npm test` writes the texts anew; read the difference.
 * A first line `# args: …` gives the inputs of a run, `# env: NAME=value` runs it.
 */
const errFolder = fileURLToPath(new URL("./err", import.meta.url));
const okFolder = fileURLToPath(new URL("./ok", import.meta.url));
const temporary = mkdtempSync(join(tmpdir(), "flow-fixtures-"));
afterAll(() => rmSync(temporary, { recursive: true, force: true }));

function fixtures(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith(".yaml") || statSync(join(folder, name)).isDirectory())
    .sort();
}

/** A folder is copied to where it is a workspace of its own: a `.git` of its own cannot be committed here. */
function placeOf(folder: string, name: string): { readonly cwd: string; readonly file: string } {
  if (name.endsWith(".yaml")) return { cwd: folder, file: name };
  const cwd = join(temporary, name);
  cpSync(join(folder, name), cwd, { recursive: true });
  mkdirSync(join(cwd, ".git"), { recursive: true });
  return { cwd, file: "main.yaml" };
}

async function diagnose(folder: string, name: string): Promise<{ diagnostics: readonly Diagnostic[]; text: string }> {
  const { cwd, file } = placeOf(folder, name);
  const source = readFileSync(join(cwd, file), "utf8");
  const args = /^# args:(.*)$/m.exec(source)?.[1];
  const env = /^# env: (\w+)=(.*)$/m.exec(source);
  if (env?.[1] !== undefined) {
    const diagnostics: Diagnostic[] = [];
    const result = await run({
      file,
      cwd,
      env: { ...process.env, [env[1]]: env[2] },
      runsDir: temporary,
      onEvent: (line) => line.type === "diagnostic" && diagnostics.push(line.diagnostic),
    });
    let sources: ReadonlyMap<string, string> = new Map();
    if (!result.started && result.refusal.kind === "invalid") {
      diagnostics.push(...result.refusal.diagnostics);
      sources = result.refusal.sources;
    }
    return { diagnostics, text: renderDiagnostics(diagnostics, sources, { palette: plainPalette }) };
  }
  if (args !== undefined) {
    const texts = [...args.matchAll(/--input (\w+)=(\S+)/g)].map((match) => ({
      name: match[1] ?? "",
      text: match[2] ?? "",
    }));
    const refusal = await prepare({ file, cwd, inputTexts: texts });
    if (!("diagnostics" in refusal)) return { diagnostics: [], text: "" };
    return {
      diagnostics: refusal.diagnostics,
      text: renderDiagnostics(refusal.diagnostics, refusal.sources, { palette: plainPalette }),
    };
  }
  const { diagnostics, sources } = await validate({ file, cwd });
  return { diagnostics, text: renderDiagnostics(diagnostics, sources, { palette: plainPalette }) };
}

describe("a wrong file is explained:", () => {
  test.each(fixtures(errFolder))("%s", async (name) => {
    const { diagnostics, text } = await diagnose(errFolder, name);
    expect(diagnostics.map((diagnostic) => diagnostic.code)).toContain(name.slice(0, 8));
    const expected = join(errFolder, `${name.replace(/\.yaml$/, "")}.txt`);
    if (process.env["UPDATE"] || !existsSync(expected)) writeFileSync(expected, text);
    expect(text).toBe(readFileSync(expected, "utf8"));
  });
});

describe("a right file is compiled to a plan:", () => {
  test.each(fixtures(okFolder))("%s", async (name) => {
    const { plan, diagnostics } = await check(placeOf(okFolder, name));
    expect(diagnostics).toEqual([]);
    expect(plan).toBeDefined();
    expect(JSON.parse(JSON.stringify(plan))).toEqual(plan);
  });
});

/** Codes about a whole file, made by the tests below because a fixture cannot be such a file. */
const madeHere = ["FLOW1001", "FLOW1002", "FLOW1003", "FLOW1015", "FLOW2010", "FLOW3013", "FLOW6014"];

describe("a file that no fixture can be:", () => {
  const codesOf = async (file: string): Promise<string[]> =>
    (await check({ file, cwd: temporary })).diagnostics.map((it) => it.code);

  test("is not there (FLOW1001)", async () => expect(await codesOf("nowhere.yaml")).toEqual(["FLOW1001"]));
  test("is a folder, a device (FLOW1002)", async () => {
    mkdirSync(join(temporary, "folder.yaml"));
    expect(await codesOf("folder.yaml")).toEqual(["FLOW1002"]);
    expect(await codesOf("/dev/zero")).toEqual(["FLOW1002"]);
  });
  test("is over 8 MiB (FLOW1003)", async () => {
    writeFileSync(join(temporary, "big.yaml"), Buffer.alloc(8 * 1024 * 1024 + 1, 35));
    expect(await codesOf("big.yaml")).toEqual(["FLOW1003"]);
  });
  test("has a mapping of over 100,000 pairs (FLOW1015)", async () => {
    const pairs = Array.from({ length: 100_001 }, (_, index) => `  k${index}: 1`).join("\n");
    writeFileSync(join(temporary, "pairs.yaml"), `vars:\n${pairs}\nsteps:\n  a: { run: "true" }\n`);
    expect(await codesOf("pairs.yaml")).toContain("FLOW1015");
  });
  test("has over 100,000 steps in its groups (FLOW2010)", { timeout: 90_000 }, async () => {
    const group = (name: string): string =>
      `  ${name}:\n    steps:\n${Array.from({ length: 50_001 }, (_, index) => `      s${index}: {set: {a: 1}}`).join("\n")}`;
    writeFileSync(join(temporary, "steps.yaml"), `steps:\n${group("a")}\n${group("b")}\n`);
    expect(await codesOf("steps.yaml")).toEqual(["FLOW2010"]);
  });
  test("holds a prompt over its model's window (FLOW6014)", async () => {
    const prompt = (words: number): string => `        ${"fox ".repeat(words)}\n`;
    const asking = (words: number): string =>
      `steps:\n  a:\n    agent:\n      model: qwen/qwen-max\n      prompt: |\n${prompt(words)}`;
    const found = async (words: number): Promise<string[]> => {
      writeFileSync(join(temporary, "prompt.yaml"), asking(words));
      return (await validate({ file: "prompt.yaml", cwd: temporary })).diagnostics.map((it) => it.code);
    };
    expect(await found(33_000)).toEqual(["FLOW6014"]);
    expect(await found(32_000)).toEqual([]);
  });
  test("names workflows of over 32 MiB together (FLOW3013)", async () => {
    const filler = `# ${"x".repeat(7 * 1024 * 1024)}\n`;
    for (let index = 0; index < 5; index++)
      writeFileSync(join(temporary, `part${index}.yaml`), `${filler}steps:\n  a: { run: "true" }\n`);
    const steps = Array.from({ length: 5 }, (_, index) => `  s${index}: { workflow: ./part${index}.yaml }`).join("\n");
    writeFileSync(join(temporary, "closure.yaml"), `steps:\n${steps}\n`);
    expect(await codesOf("closure.yaml")).toEqual(["FLOW3013"]);
  });
});

test("every code has a fixture, and a line in docs/diagnostics.md", () => {
  const fixed = new Set([...fixtures(errFolder).map((name) => name.slice(0, 8)), ...madeHere]);
  expect(Object.keys(codes).filter((code) => !fixed.has(code))).toEqual([]);
  const docs = readFileSync(fileURLToPath(new URL("../../docs/diagnostics.md", import.meta.url)), "utf8");
  expect(Object.keys(codes).filter((code) => !new RegExp(`^\\| ${code} \\|`, "m").test(docs))).toEqual([]);
});
